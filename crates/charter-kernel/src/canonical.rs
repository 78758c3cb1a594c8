//! Canonical JSON (RFC 8785), the input of digests, written directly as text.
//!
//! Keys are sorted by UTF-16 code units, numbers have the shortest form as in ECMAScript, and there
//! are no spaces. All functions append to a `String`, so types with a fixed order of keys (a
//! snapshot, a record) need no intermediate [`Json`].

use std::cmp::Ordering;

use serde_json::Value as Json;

/// Upper limit of the nesting; deeper values are written as `null`. Data accepted by the kernel
/// does not nest deeper than 300.
const MAX_DEPTH: usize = 1_000;

/// Appends the canonical JSON of a value.
pub fn write(out: &mut String, value: &Json) {
    write_at(out, value, 0, &write_number);
}

/// Like [`write()`], but 64-bit integers keep all their digits, so two different values never have
/// the same text. The text follows RFC 8785 wherever RFC 8785 preserves the value.
pub fn write_exact(out: &mut String, value: &Json) {
    let exact = |out: &mut String, n: &serde_json::Number| match (n.as_i64(), n.as_u64()) {
        (Some(i), _) => out.push_str(itoa::Buffer::new().format(i)),
        (None, Some(u)) => out.push_str(itoa::Buffer::new().format(u)),
        (None, None) => write_number(out, n),
    };
    write_at(out, value, 0, &exact);
}

type NumberWriter<'w> = &'w dyn Fn(&mut String, &serde_json::Number);

fn write_at(out: &mut String, value: &Json, depth: usize, number: NumberWriter<'_>) {
    let deeper = depth.saturating_add(1);
    match value {
        _ if depth > MAX_DEPTH => out.push_str("null"),
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(n) => number(out, n),
        Json::String(s) => write_str(out, s),
        Json::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_at(out, item, deeper, number);
            }
            out.push(']');
        }
        Json::Object(map) => {
            let entries = map.iter().map(|(k, v)| (k.as_str(), v));
            write_object(out, entries, |out, value| write_at(out, value, deeper, number));
        }
    }
}

/// Returns an upper bound of the length of the canonical JSON of a value, exact but for numbers.
/// Does not recurse.
#[must_use]
pub fn length(value: &Json) -> u64 {
    /// The length of the longest number, `-1.2345678901234567e-308`, rounded up.
    const NUMBER: u64 = 25;
    let mut sum = 0u64;
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        sum = sum.saturating_add(match value {
            Json::Null | Json::Bool(_) => 5,
            Json::Number(_) => NUMBER,
            Json::String(s) => length_of_str(s),
            Json::Array(items) => {
                todo.extend(items);
                (items.len() as u64).saturating_add(2)
            }
            Json::Object(fields) => {
                todo.extend(fields.values());
                let keys = fields.keys().map(|key| length_of_str(key).saturating_add(2));
                keys.fold(2, u64::saturating_add)
            }
        });
    }
    sum
}

/// Returns the length of a string in canonical JSON, with its quotes.
#[must_use]
pub fn length_of_str(s: &str) -> u64 {
    let escapes = s.bytes().map(|b| match b {
        b'"' | b'\\' => 1,
        _ if b < 0x20 => 5,
        _ => 0u64,
    });
    (s.len() as u64).saturating_add(escapes.sum()).saturating_add(2)
}

/// Appends an object. The entries may be in any order, but their keys must differ; `value` writes
/// one value.
pub fn write_object<'k, V: Copy>(
    out: &mut String,
    entries: impl Iterator<Item = (&'k str, V)> + Clone,
    mut value: impl FnMut(&mut String, V),
) {
    let mut all = |out: &mut String, entries: &mut dyn Iterator<Item = (&'k str, V)>| {
        out.push('{');
        let mut first = true;
        for (key, v) in entries {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            write_str(out, key);
            out.push(':');
            value(out, v);
        }
        out.push('}');
    };
    // The entries are usually sorted already: maps are sorted by UTF-8 bytes, which differs from
    // UTF-16 only for rare characters.
    if entries.clone().is_sorted_by(|a, b| compare_keys(a.0, b.0) != Ordering::Greater) {
        all(out, &mut { entries });
    } else {
        let mut sorted: Vec<_> = entries.collect();
        sorted.sort_by(|a, b| compare_keys(a.0, b.0));
        all(out, &mut sorted.into_iter());
    }
}

/// Compares keys by UTF-16 code units (RFC 8785, 3.2.3).
#[must_use]
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    match (a.as_bytes().get(same), b.as_bytes().get(same)) {
        // The orders differ only if one character is beyond U+FFFF (first byte F0 or above) and the
        // other is between U+E000 and U+FFFF (first byte EE or EF).
        (Some(x), Some(y)) if *x < 0xee || *y < 0xee => x.cmp(y),
        (Some(_), Some(_)) => a.encode_utf16().cmp(b.encode_utf16()),
        (x, y) => x.is_some().cmp(&y.is_some()),
    }
}

/// The largest integer that a double represents safely: 2^53-1.
const SAFE: u64 = (1 << 53) - 1;

/// Appends a number: an integer within ±(2^53-1) as an integer, any other number as the nearest
/// double.
pub fn write_number(out: &mut String, n: &serde_json::Number) {
    match n.as_i64() {
        Some(i) => write_int(out, i),
        // A JSON number is always finite.
        None => out.push_str(ryu_js::Buffer::new().format(n.as_f64().unwrap_or_default())),
    }
}

/// Appends an integer, as the nearest double if it is beyond ±(2^53-1).
pub fn write_int(out: &mut String, i: i64) {
    if i.unsigned_abs() <= SAFE {
        out.push_str(itoa::Buffer::new().format(i));
    } else {
        out.push_str(ryu_js::Buffer::new().format(i as f64));
    }
}

/// Appends an integer, as the nearest double if it is beyond 2^53-1.
pub fn write_uint(out: &mut String, i: u64) {
    if i <= SAFE {
        out.push_str(itoa::Buffer::new().format(i));
    } else {
        out.push_str(ryu_js::Buffer::new().format(i as f64));
    }
}

/// Appends a string in quotes, with the escapes of RFC 8785 (3.2.2.2).
pub fn write_str(out: &mut String, s: &str) {
    out.push('"');
    let mut rest = s;
    // Strings rarely need escaping. The fold is vectorized, the search for the position is not.
    let any = s.bytes().fold(false, |any, b| any | is_escaped(b));
    while any && let Some(at) = rest.bytes().position(is_escaped) {
        // An escaped character is one byte, so both parts end at character boundaries.
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut tail = tail.chars();
        match tail.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(c) => {
                out.push_str("\\u00");
                let digit = |d: u32| char::from_digit(d, 16).unwrap_or('0');
                out.push(digit(u32::from(c) >> 4));
                out.push(digit(u32::from(c) & 15));
            }
            None => {}
        }
        rest = tail.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

fn is_escaped(b: u8) -> bool {
    (b < 0x20) | (b == b'"') | (b == b'\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(value: &Json) -> String {
        let mut out = String::new();
        write(&mut out, value);
        out
    }

    /// Generates any JSON: hostile strings, keys whose UTF-8 and UTF-16 orders differ, all kinds of
    /// numbers.
    fn any_json() -> impl Strategy<Value = Json> {
        let string = prop_oneof![
            any::<String>(),
            "[\u{0}-\u{20}\"\\\\/\u{7f}]{0,8}",
            "[\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}a]{0,4}"
        ];
        let key = string.clone();
        let number = prop_oneof![
            any::<i64>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from), // null if not finite
            (-1_000i64..1_000).prop_map(Json::from),
            (-1_000i32..1_000).prop_map(|i| Json::from(f64::from(i) / 8.0)),
            (any::<u64>(), -30i32..30).prop_map(|(m, e)| Json::from(m as f64 * 10f64.powi(e))),
        ];
        let leaf =
            prop_oneof![Just(Json::Null), any::<bool>().prop_map(Json::from), number, string.prop_map(Json::from)];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
                prop::collection::vec((key.clone(), inner), 0..6).prop_map(|kv| kv.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_the_published_canonicalizer_writes(value in any_json()) {
            prop_assert_eq!(text(&value), serde_json_canonicalizer::to_string(&value).unwrap());
        }

        #[test]
        fn keys_are_ordered_as_utf16(a in any::<String>(), b in "[\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}a]{0,4}", c in "[\u{e000}\u{10000}a]{0,4}") {
            for (a, b) in [(&a, &b), (&b, &c), (&c, &a), (&b, &b)] {
                prop_assert_eq!(compare_keys(a, b), a.encode_utf16().cmp(b.encode_utf16()));
            }
        }

        #[test]
        fn the_exact_text_tells_integers_apart(a in any::<u64>(), b in any::<u64>()) {
            let exact = |u: u64| { let mut out = String::new(); write_exact(&mut out, &json!({"n": [u]})); out };
            prop_assert_eq!(exact(a) == exact(b), a == b);
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        let value: Json = serde_json::from_str(
            r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#,
        )
        .unwrap();
        let expected = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(text(&value), expected);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = (0..2_000).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
        assert_eq!(text(&deep).len(), (MAX_DEPTH + 1) * 2 + 4);
    }
}

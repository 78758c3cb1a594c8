//! Where the members of a record begin and end, found without reading what they say: replaying and verifying need a third of them.
//!
//! It is told what it is told: what it passes over may be no JSON at all. Verification compares the whole text anyway.

/// Calls `member` with the name and the text of each member of the object that `line` is; a name as it is written, without its quotes.
/// None: it is not an object, or one with an escape in a name.
pub(super) fn members<'a>(line: &'a str, mut member: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let mut rest = line.strip_prefix('{')?;
    if rest == "}" {
        return Some(());
    }
    loop {
        let name = plain_string(rest)?;
        rest = rest.get(name.len().checked_add(2)?..)?.strip_prefix(':')?;
        let end = value(rest.as_bytes())?;
        let (text, behind) = rest.split_at_checked(end)?;
        member(name, text);
        rest = match behind.as_bytes() {
            [b',', ..] => behind.get(1..)?,
            b"}" => return Some(()),
            _ => return None,
        };
    }
}

/// What is between the quotes of the string that a text begins with, if nothing in it is escaped.
pub(super) fn plain_string(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?;
    let end = inner.bytes().position(|b| b == b'"' || b == b'\\')?;
    let (inner, rest) = inner.split_at_checked(end)?;
    rest.starts_with('"').then_some(inner)
}

/// Where a value ends.
fn value(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => string(bytes.get(1..)?)?.checked_add(1),
        b'{' | b'[' => {
            let (mut at, mut depth) = (0usize, 0usize);
            loop {
                let rest = bytes.get(at..)?;
                let next = rest
                    .iter()
                    .position(|b| matches!(b, b'"' | b'{' | b'[' | b'}' | b']'))?;
                at = at.checked_add(next)?.checked_add(1)?;
                match rest.get(next)? {
                    b'"' => at = at.checked_add(string(bytes.get(at..)?)?)?,
                    b'{' | b'[' => depth = depth.checked_add(1)?,
                    _ => depth = depth.checked_sub(1)?,
                }
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => bytes.iter().position(|b| matches!(b, b',' | b'}')),
    }
}

/// Where a string ends whose first quote is passed, its last quote included.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 0usize;
    loop {
        let next = bytes
            .get(at..)?
            .iter()
            .position(|b| matches!(b, b'"' | b'\\'))?;
        at = at.checked_add(next)?.checked_add(1)?;
        if bytes.get(at.checked_sub(1)?)? == &b'"' {
            return Some(at);
        }
        // Whatever is escaped.
        at = at.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::*;

    fn found(line: &str) -> Option<Vec<(String, Json)>> {
        let mut list = Vec::new();
        members(line, |name, text| {
            list.push((name.to_owned(), serde_json::from_str(text).unwrap()));
        })?;
        Some(list)
    }

    #[test]
    fn members_are_found() {
        let line = r#"{"a":"x\"}\\","b":[{"c":"]"},[]],"d":-1.5e3,"e":true,"f":{}}"#;
        let json: Json = serde_json::from_str(line).unwrap();
        let list = found(line).unwrap();
        assert_eq!(Json::Object(list.into_iter().collect()), json);
        assert_eq!(found("{}"), Some(vec![]));
        for bad in [
            "",
            "{",
            "[]",
            "{}}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            r#"{"a":"x}"#,
            r#"{"a":[}"#,
            r#"{"a\n":1}"#,
            r#"{"a":1,}"#,
            r#"{"a":"\"#,
            "\"{\"",
        ] {
            let result = members(bad, |_, text| {
                assert!(!text.is_empty() || bad.contains(":}"))
            });
            assert!(result.is_none() || bad.contains(":}"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn as_a_reader_finds_them(map in prop::collection::btree_map("[a-zé]{0,5}", any::<(String, f64)>(), 0..6)) {
            let line = serde_json::to_string(&map).unwrap();
            let json: Json = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(Json::Object(found(&line).unwrap().into_iter().collect()), json);
        }

        #[test]
        fn anything_is_no_panic(text in any::<String>(), cut in any::<prop::sample::Index>()) {
            let _ = members(&text, |_, _| {});
            let line = format!("{{\"a\":{text}");
            let _ = members(&line, |_, _| {});
            let line = r#"{"a":"x\"}\\","b":[{"é":"]"},[]],"d":-1.5e3}"#;
            let cut = cut.index(line.len());
            if line.is_char_boundary(cut) {
                let found = members(&line[..cut], |_, _| {});
                prop_assert_eq!(found, None);
            }
        }
    }
}

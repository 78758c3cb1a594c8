//! An example of a text for `format`, `pattern` and the limits of its length.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value as Json;

use super::Schema;
use super::pattern::translated;

/// Maximum length of an example, in characters.
const MAX_LENGTH: usize = 10_000;

/// Returns a text that matches the keywords for texts in a schema (`format`, `pattern`,
/// `minLength`, `maxLength`); `None` if none was found. References and other keywords are not
/// followed. `plain` is a character for places that the schema leaves open.
#[must_use]
pub fn example_text(schema: &Json, plain: char) -> Option<String> {
    let keywords = ["format", "pattern", "minLength", "maxLength"];
    let mut text: serde_json::Map<String, Json> =
        keywords.into_iter().filter_map(|key| Some((key.to_owned(), schema.get(key)?.clone()))).collect();
    text.insert("type".into(), "string".into());
    let limit = |key: &str| schema.get(key).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
    let (least, most) = (limit("minLength").unwrap_or(0).min(MAX_LENGTH), limit("maxLength").unwrap_or(MAX_LENGTH));
    let usual = if plain == '.' { 3 } else { 1 };
    let plain = plain.to_string().repeat(least.max(usual).min(most).min(MAX_LENGTH));
    let mut found = Vec::new();
    if let Some(format) = schema.get("format").and_then(Json::as_str) {
        for (start, end) in formatted(format) {
            let missing = least.saturating_sub(start.chars().count().saturating_add(end.chars().count()));
            found.push(format!("{start}{}{end}", "a".repeat(missing)));
            found.push(format!("{start}{}{end}", "0".repeat(missing)));
        }
    }
    // Before the pattern: a placeholder is easier to recognize as one than text that was generated.
    found.push(plain);
    if let Some(pattern) = schema.get("pattern").and_then(Json::as_str) {
        let hir = translated(pattern).ok().and_then(|pattern| regex_syntax::parse(&pattern).ok());
        let mut missing = 0;
        for _ in 0..2 {
            let mut out = String::new();
            if hir.as_ref().is_some_and(|hir| Shortest { missing }.write(hir, &mut out).is_some()) {
                missing = least.saturating_sub(out.chars().count());
                let more = "a".repeat(missing);
                found.extend([out.clone(), format!("{out}{more}"), format!("{more}{out}")]);
            }
        }
    }
    let schema = Schema::compile(&Json::Object(text)).ok()?;
    found.into_iter().find(|text| schema.accepts(&Json::from(text.as_str())))
}

/// Examples of a format, each in two parts between which more characters fit.
fn formatted(format: &str) -> &'static [(&'static str, &'static str)] {
    match format {
        "date" => &[("2026-01-01", "")],
        "date-time" => &[("2026-01-01T00:00:00Z", ""), ("2026-01-01T00:00:00.0", "Z")],
        "time" => &[("00:00:00Z", ""), ("00:00:00.0", "Z")],
        "duration" => &[("PT1S", ""), ("P1", "D")],
        "email" | "idn-email" => &[("a", "@example.org"), ("a", "@b.c")],
        "hostname" | "idn-hostname" => &[("example.org", ""), ("a", "")],
        "ipv4" => &[("192.0.2.1", ""), ("0.0.0.0", "")],
        "ipv6" => &[("2001:db8::1", ""), ("::", ""), ("2001:0db8:0000:0000:0000:0000:0000:0001", "")],
        "uri" | "iri" | "url" => &[("https://example.org/a", ""), ("a:", "")],
        "uri-reference" | "iri-reference" => &[("https://example.org/a", ""), ("/", ""), ("", "")],
        "uri-template" => &[("https://example.org/{id}", ""), ("a", ""), ("", "")],
        "uuid" => &[("00000000-0000-4000-8000-000000000000", "")],
        "json-pointer" => &[("/a", ""), ("", "")],
        "relative-json-pointer" => &[("0", ""), ("0/", "")],
        "regex" => &[("a", ""), ("", "")],
        _ => &[],
    }
}

/// Writes a short text that an expression matches; anchors and boundaries are left to the check of
/// the result.
struct Shortest {
    /// How many more characters are wanted than the shortest text has, at most.
    missing: usize,
}

impl Shortest {
    fn write(&mut self, hir: &Hir, out: &mut String) -> Option<()> {
        if out.len() > MAX_LENGTH {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(Class::Unicode(class)) => {
                let has = |c: char| class.ranges().iter().any(|range| range.start() <= c && c <= range.end());
                let first = class.ranges().first()?.start();
                let printable = || (' '..='~').find(|c| has(*c));
                out.push(['a', 'A', '0'].into_iter().find(|c| has(*c)).or_else(printable).unwrap_or(first));
            }
            HirKind::Class(Class::Bytes(_)) => return None,
            HirKind::Capture(capture) => self.write(&capture.sub, out)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.write(part, out)?;
                }
            }
            HirKind::Alternation(parts) => {
                let length = |part: &&Hir| part.properties().minimum_len().unwrap_or(usize::MAX);
                self.write(parts.iter().min_by_key(length)?, out)?;
            }
            HirKind::Repetition(repetition) => {
                let least = usize::try_from(repetition.min).ok()?;
                let most = repetition.max.map_or(Some(usize::MAX), |max| usize::try_from(max).ok())?;
                for count in 0..most {
                    let before = out.len();
                    if count >= least && self.missing == 0 {
                        break;
                    }
                    self.write(&repetition.sub, out)?;
                    if out.len() == before {
                        break;
                    }
                    if count >= least {
                        self.missing = self.missing.saturating_sub(out.len().saturating_sub(before));
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fits(schema: &Json) -> Option<String> {
        let text = example_text(schema, '.')?;
        assert!(Schema::compile(schema).unwrap().accepts(&json!(text)), "{schema}: {text:?}");
        Some(text)
    }

    #[test]
    fn every_format_has_an_example() {
        for format in [
            "date",
            "date-time",
            "time",
            "duration",
            "email",
            "hostname",
            "ipv4",
            "ipv6",
            "uri",
            "iri",
            "uri-reference",
            "iri-reference",
            "uri-template",
            "uuid",
            "json-pointer",
            "relative-json-pointer",
            "regex",
        ] {
            assert!(fits(&json!({"type": "string", "format": format})).is_some(), "{format}");
            assert!(!Schema::compile(&json!({"format": format})).unwrap().accepts(&json!("%(\u{0}")), "{format}");
        }
        for format in ["email", "uri", "date-time", "duration", "uri-template", "regex", "json-pointer"] {
            assert!(fits(&json!({"format": format, "minLength": 40})).is_some(), "{format}");
        }
        assert_eq!(fits(&json!({"format": "email", "maxLength": 5})).unwrap(), "a@b.c");
    }

    #[test]
    fn examples_of_patterns_are_short() {
        for (schema, text) in [
            (json!({"pattern": "^[A-Z]{3}-\\d{4}$"}), "AAA-0000"),
            (json!({"pattern": "^(?:[a-z]+|x)@\\w+\\.(com|org)$"}), "a@a.com"),
            (json!({"pattern": "^a+$", "minLength": 5, "maxLength": 5}), "aaaaa"),
            (json!({"pattern": "^[^a-z0.]+$", "minLength": 2}), "AA"),
            (json!({"pattern": "x", "minLength": 3}), "xaa"),
            (json!({"pattern": "^\\p{Lu}", "maxLength": 1}), "A"),
            (json!({"minLength": 5}), "....."),
            (json!({"minLength": 1, "pattern": "\\S"}), "..."),
            (json!({"maxLength": 1}), "."),
        ] {
            assert_eq!(fits(&schema).unwrap(), text, "{schema}");
        }
        for none in [json!({"pattern": "^a$", "minLength": 2}), json!({"pattern": "a\\bb"}), json!({"pattern": "[]"})] {
            assert_eq!(fits(&none), None);
        }
        // Nothing unbounded is built.
        assert_eq!(fits(&json!({"pattern": "^(a{900}){900}$"})), None);
    }

    fn pattern() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a", "-", r"\d", "[A-Z]", r"\w", "[^a]", r"\.", "[0-9a-f]", r"\s", "é", r"\S", ".", r"[^\d]",
        ]);
        let leaf = leaf.prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("(?:{one}|{two})")),
                (inner.clone(), 0..3u8, 0..3u8).prop_map(|(x, n, more)| format!("({x}){{{n},{}}}", n + more)),
                (inner, prop::sample::select(vec!["+", "*", "?"])).prop_map(|(x, op)| format!("(?:{x}){op}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_example_of_a_pattern_matches_it(pattern in pattern(), anchored in any::<bool>(), least in 0..6usize) {
            let pattern = if anchored { format!("^{pattern}$") } else { pattern };
            prop_assert!(fits(&json!({"pattern": pattern})).is_some(), "{pattern}");
            // There may be no text of this length.
            fits(&json!({"pattern": pattern, "minLength": least}));
        }
    }
}

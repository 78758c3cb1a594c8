//! A way through a record as the journal writes it: key after key in their fixed order, stepping over what is not asked for.
//!
//! It is told what it is told: what it steps over may be no JSON at all. Verification compares the whole text anyway.

use memchr::memchr2;
use serde::Deserialize;

/// A place in a text. Each step is none, and the way at its end, if what is there is not what the step is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text }
    }

    /// Steps over exactly this.
    #[inline(always)] // compared with a constant, not with a string
    pub(super) fn word(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    /// As [`Skim::word`]; where something else is, it stays there.
    #[inline(always)]
    pub(super) fn has(&mut self, word: &str) -> bool {
        self.word(word).is_some()
    }

    /// So many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// The rest of a string whose first quote is passed, its last quote stepped over. Not with an escape in it.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let end = memchr2(b'"', b'\\', self.rest.as_bytes())?;
        let inner = self.take(end)?;
        self.word("\"")?;
        Some(inner)
    }

    /// An unsigned integer.
    pub(super) fn number(&mut self) -> Option<u64> {
        let end = self.rest.bytes().position(|b| !b.is_ascii_digit())?;
        self.take(end)?.parse().ok()
    }

    /// A value, read.
    pub(super) fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter();
        let value = values.next()?.ok()?;
        let end = values.byte_offset();
        self.take(end)?;
        Some(value)
    }

    /// Over an object or array, without looking at it.
    pub(super) fn pass(&mut self) -> Option<()> {
        let (mut at, mut depth) = (0usize, 0usize);
        let bytes = self.rest.as_bytes();
        loop {
            match bytes.get(at)? {
                b'"' => {
                    let inside = at.checked_add(1)?;
                    at = inside.checked_add(string(bytes.get(inside..)?)?)?;
                    continue;
                }
                b'{' | b'[' => depth = depth.checked_add(1)?,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at = at.checked_add(1)?;
            if depth == 0 {
                self.take(at)?;
                return Some(());
            }
        }
    }
}

/// Where a string ends whose first quote is passed, its last quote included.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 0usize;
    loop {
        let next = memchr2(b'"', b'\\', bytes.get(at..)?)?;
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
    use serde_json::{Value as Json, json};

    use super::*;

    #[test]
    fn steps() {
        let mut s = Scanner::new(r#"{"a":"x","b":17,"c":[{"d":"]\"}"},[]],"e":{"f":1.5},"g":"\n"}"#);
        assert_eq!(s.word("{\"b\""), None);
        assert_eq!(s.word("{\"a\":\""), Some(()));
        assert_eq!(s.string(), Some("x"));
        assert!(!s.has("}"));
        assert!(s.has(",\"b\":"));
        assert_eq!(s.number(), Some(17));
        assert_eq!(s.take(5), Some(",\"c\":"));
        assert_eq!(s.pass(), Some(()));
        assert_eq!(s.word(",\"e\":"), Some(()));
        assert_eq!(s.value::<Json>(), Some(json!({"f": 1.5})));
        assert_eq!(s.word(",\"g\":\""), Some(()));
        assert_eq!(s.string(), None);
        for bad in ["", "[", "{", "[\"", "[\"\\", "[}"] {
            // Brackets are counted, not compared: verification compares the text.
            assert_eq!(Scanner::new(bad).pass().is_some(), bad == "[}", "{bad}");
        }
        assert_eq!(Scanner::new("é").take(1), None);
        assert_eq!(Scanner::new("17").number(), None);
        assert_eq!(Scanner::new("99999999999999999999,").number(), None);
    }

    proptest! {
        #[test]
        fn values_are_passed_to_their_end(map in prop::collection::btree_map(any::<String>(), any::<(String, f64)>(), 0..6), behind in "[^]]{0,3}") {
            let text = serde_json::to_string(&map).unwrap();
            let line = format!("{text}{behind}");
            let mut s = Scanner::new(&line);
            prop_assert_eq!(s.pass(), Some(()));
            prop_assert_eq!(s.rest, behind);
        }

        #[test]
        fn anything_is_no_panic(text in any::<String>()) {
            let _ = Scanner::new(&text).pass();
            let _ = Scanner::new(&format!("[{text}")).pass();
            let _ = Scanner::new(&format!("[\"{text}")).pass();
            let _ = Scanner::new(&text).string();
            let _ = Scanner::new(&text).number();
            let _ = Scanner::new(&text).value::<Json>();
        }
    }
}

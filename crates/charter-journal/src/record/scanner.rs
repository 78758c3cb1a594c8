//! A scanner for records as the journal writes them: keys in their fixed order, skipping values
//! that are not needed.
//!
//! Skipped text is not validated and may not be JSON. Verification compares the whole text anyway.

use memchr::memchr2;
use serde::Deserialize;

/// A position in a line. Each step returns `None` if the line does not match; the scan then ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text }
    }

    /// Skips exactly this text.
    #[inline(always)] // so that the text is compared with a constant
    pub(super) fn word(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    /// Like [`Scanner::word`], but keeps the position if the text does not match.
    #[inline(always)]
    pub(super) fn has(&mut self, word: &str) -> bool {
        self.word(word).is_some()
    }

    /// Whether the rest contains this text, possibly within a string.
    pub(super) fn contains(&self, word: &str) -> bool {
        memchr::memmem::find(self.rest.as_bytes(), word.as_bytes()).is_some()
    }

    /// Skips a number of bytes and returns them.
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// Returns the rest of a string after its opening quote and skips the closing quote. Fails if
    /// the string contains an escape.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let end = memchr2(b'"', b'\\', self.rest.as_bytes())?;
        let inner = self.take(end)?;
        self.word("\"")?;
        Some(inner)
    }

    /// Parses an unsigned integer.
    pub(super) fn number(&mut self) -> Option<u64> {
        let end = self.rest.bytes().position(|b| !b.is_ascii_digit())?;
        self.take(end)?.parse().ok()
    }

    /// Parses a value.
    pub(super) fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter();
        let value = values.next()?.ok()?;
        let end = values.byte_offset();
        self.take(end)?;
        Some(value)
    }

    /// Skips an object or array without validating it.
    pub(super) fn skip(&mut self) -> Option<()> {
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

/// Returns the length of a string after its opening quote, including the closing quote.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 0usize;
    loop {
        let next = memchr2(b'"', b'\\', bytes.get(at..)?)?;
        at = at.checked_add(next)?.checked_add(1)?;
        if bytes.get(at.checked_sub(1)?)? == &b'"' {
            return Some(at);
        }
        // Skip the escaped character.
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
        assert_eq!(s.skip(), Some(()));
        assert_eq!(s.word(",\"e\":"), Some(()));
        assert_eq!(s.value::<Json>(), Some(json!({"f": 1.5})));
        assert_eq!(s.word(",\"g\":\""), Some(()));
        assert_eq!(s.string(), None);
        for bad in ["", "[", "{", "[\"", "[\"\\", "[}"] {
            // Brackets are counted but not matched: verification compares the whole text anyway.
            assert_eq!(Scanner::new(bad).skip().is_some(), bad == "[}", "{bad}");
        }
        assert_eq!(Scanner::new("é").take(1), None);
        assert_eq!(Scanner::new("17").number(), None);
        assert_eq!(Scanner::new("99999999999999999999,").number(), None);
    }

    proptest! {
        #[test]
        fn values_are_skipped_to_their_end(map in prop::collection::btree_map(any::<String>(), any::<(String, f64)>(), 0..6), behind in "[^]]{0,3}") {
            let text = serde_json::to_string(&map).unwrap();
            let line = format!("{text}{behind}");
            let mut s = Scanner::new(&line);
            prop_assert_eq!(s.skip(), Some(()));
            prop_assert_eq!(s.rest, behind);
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in any::<String>()) {
            let _ = Scanner::new(&text).skip();
            let _ = Scanner::new(&format!("[{text}")).skip();
            let _ = Scanner::new(&format!("[\"{text}")).skip();
            let _ = Scanner::new(&text).string();
            let _ = Scanner::new(&text).number();
            let _ = Scanner::new(&text).value::<Json>();
        }
    }
}

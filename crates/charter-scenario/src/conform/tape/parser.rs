//! Parses a line in one pass; leaves unusual lines to the full parser.

use charter_kernel::Kind;

use super::Node;

/// Upper limit of nesting; lines with deeper values are left to the full parser.
const MAX_DEPTH: u32 = 40;
/// Upper limit of fields in an object; lines with larger objects are left to the full parser,
/// because the search for duplicate keys here is quadratic.
const MAX_FIELDS: u32 = 48;

/// Appends the values of a line to `nodes`; returns `false` if the full parser has to parse the
/// line.
pub(super) fn parse(text: &str, nodes: &mut Vec<Node>) -> bool {
    let mut parser = TapeParser { text: text.as_bytes(), at: 0, nodes };
    parser.blank();
    let read = parser.value(0).is_some();
    parser.blank();
    read && parser.at == text.len()
}

struct TapeParser<'r> {
    text: &'r [u8],
    at: usize,
    nodes: &'r mut Vec<Node>,
}

impl TapeParser<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: Kind, flag: bool, start: usize, end: usize) -> usize {
        let at = self.nodes.len();
        #[allow(clippy::cast_possible_truncation)]
        // The casts are lossless: the text is shorter than 4 GiB, and each node takes at least one
        // byte of it.
        self.nodes.push(Node { kind, flag, start: start as u32, end: end as u32, next: at as u32 + 1, count: 0 });
        at
    }

    fn close(&mut self, at: usize, count: u32) {
        #[allow(clippy::cast_possible_truncation)] // as above
        let next = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(at) {
            (node.next, node.count) = (next, count);
        }
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(false),
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b't' => self.word(b"true", Kind::Bool, true),
            b'f' => self.word(b"false", Kind::Bool, false),
            b'n' => self.word(b"null", Kind::Null, false),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind, flag: bool) -> Option<()> {
        let end = self.at + word.len();
        (self.text.get(self.at..end)? == word).then_some(())?;
        self.push(kind, flag, self.at, end);
        self.at = end;
        Some(())
    }

    /// Parses a string. Its escapes are decoded when the value is read.
    fn string(&mut self, key: bool) -> Option<()> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at += plain(self.text.get(at..)?);
            match *self.text.get(at)? {
                b'"' => break,
                b'\\' if key => return None,
                b'\\' => {
                    escaped = true;
                    // Simple escapes are accepted and decoded later; `\u` is left to the full
                    // parser.
                    match *self.text.get(at + 1)? {
                        b'"' | b'\\' | b'/' | b'n' | b't' | b'r' => at += 2,
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        self.push(Kind::Text, escaped, start, at);
        self.at = at + 1;
        Some(())
    }

    /// Parses a number that every parser reads the same way: few digits, no exponent.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = |parser: &mut Self| {
            let from = parser.at;
            while let Some(b'0'..=b'9') = parser.peek() {
                parser.at += 1;
            }
            parser.at - from
        };
        let zero = self.peek() == Some(b'0');
        let whole = digits(self);
        if whole == 0 || whole > 15 || (zero && whole > 1) {
            return None;
        }
        let mut kind = Kind::Int;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let fraction = digits(self);
            if fraction == 0 || fraction > 15 {
                return None;
            }
            kind = Kind::Float;
        }
        if let Some(b'e' | b'E') = self.peek() {
            return None;
        }
        // The full parser reads `-0` as a float.
        if kind == Kind::Int && self.text.get(start..self.at) == Some(b"-0") {
            return None;
        }
        self.push(kind, false, start, self.at);
        Some(())
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let me = self.push(Kind::List, false, self.at, self.at);
        self.at += 1;
        let mut count = 0;
        self.blank();
        if self.peek()? == b']' {
            self.at += 1;
            self.close(me, 0);
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            count += 1;
            self.blank();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
            self.blank();
        }
        self.at += 1;
        self.close(me, count);
        Some(())
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let me = self.push(Kind::Object, false, self.at, self.at);
        self.at += 1;
        let mut count = 0;
        // One bit for each way a key looks: most keys cannot be duplicates.
        let mut seen = 0u64;
        self.blank();
        if self.peek()? == b'}' {
            self.at += 1;
            self.close(me, 0);
            return Some(());
        }
        loop {
            if self.peek()? != b'"' || count >= MAX_FIELDS {
                return None;
            }
            let key = self.nodes.len();
            self.string(true)?;
            let look = 1 << (self.look(key)? % 64);
            if seen & look != 0 && self.is_duplicate(me, key) {
                return None;
            }
            seen |= look;
            self.blank();
            if self.peek()? != b':' {
                return None;
            }
            self.at += 1;
            self.blank();
            self.value(depth + 1)?;
            count += 1;
            self.blank();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
            self.blank();
        }
        self.at += 1;
        self.close(me, count);
        Some(())
    }

    /// A number that equal keys have in common, and most others do not.
    fn look(&self, key: usize) -> Option<u32> {
        let node = self.nodes.get(key)?;
        let byte = |at: u32| self.text.get(at as usize).copied().map_or(0, u32::from);
        let (first, last) = (byte(node.start), byte(node.end.wrapping_sub(1)));
        Some(first ^ (last << 3) ^ (last >> 3) ^ (node.end - node.start).wrapping_mul(11))
    }

    /// Whether the object already contains this key.
    fn is_duplicate(&self, object: usize, key: usize) -> bool {
        let bytes = |node: &Node| self.text.get(node.start as usize..node.end as usize);
        let Some(new) = self.nodes.get(key) else {
            return true;
        };
        let mut at = object + 1;
        while at < key {
            let (Some(old), Some(value)) = (self.nodes.get(at), self.nodes.get(at + 1)) else {
                return true;
            };
            if old.end - old.start == new.end - new.start && bytes(old) == bytes(new) {
                return true;
            }
            at = value.next as usize;
        }
        false
    }
}

/// The number of bytes before the first quote, backslash or control character.
fn plain(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The highest bit of a byte says whether it is zero; after the first zero it may be wrong.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let mut at = 0;
    while let Some(chunk) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        let special = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (special | control) & (ONES << 7);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_text_ends_at_its_first_special_byte() {
        for special in [b'"', b'\\', 0, b'\n', 0x1f] {
            for before in 0..20 {
                for ordinary in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut text = vec![ordinary; before];
                    text.push(special);
                    text.extend([special, ordinary, b'"', 1, ordinary, ordinary, ordinary, ordinary]);
                    assert_eq!(plain(&text), before, "{text:?}");
                    assert_eq!(plain(&text[..before]), before, "{text:?}");
                }
            }
        }
    }
}

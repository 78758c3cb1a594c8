//! Takes away the outer encodings of a text, such as JSON around a page of HTML.

use crate::encodings::{hex, read_entity, short};

/// How many encodings are taken away, one around the other. What is left may have one more.
const MAX_LAYERS: usize = 2;

/// An encoding, with the sign that begins its escapes and what reads one.
type Encoding = (char, fn(&str) -> Option<(char, usize)>);

const ALL: [Encoding; 3] = [('\\', read_escape), ('%', read_percent), ('&', read_entity)];

/// A text without an encoding, and where its parts were.
pub(crate) struct Decoded {
    pub(crate) text: String,
    /// Where the text goes on after an escape: here, and in the text with it.
    moves: Vec<(usize, usize)>,
}

impl Decoded {
    /// The place in the text with the escapes.
    fn before(&self, at: usize) -> usize {
        let index = self.moves.partition_point(|(here, _)| *here <= at);
        let (here, there) = index.checked_sub(1).and_then(|last| self.moves.get(last)).copied().unwrap_or_default();
        at.saturating_sub(here).saturating_add(there)
    }
}

/// Where a place of a decoded text is in the whole text.
type Place<'p> = dyn Fn(usize) -> usize + 'p;

/// Calls `visit` with the text in each order of encodings taken away, and with what tells where a
/// place of it is in the whole text.
pub(crate) fn visit(text: &str, visit: &mut dyn FnMut(&str, &Place<'_>)) {
    without(text, MAX_LAYERS, &|at| at, visit);
}

fn without(text: &str, layers: usize, place: &Place<'_>, visit: &mut dyn FnMut(&str, &Place<'_>)) {
    let Some(left) = layers.checked_sub(1) else {
        return;
    };
    // Each encoding, and a mixture of them.
    for encodings in ALL.iter().map(std::slice::from_ref).chain([ALL.as_slice()]) {
        if let Some(decoded) = decode(text, encodings) {
            let place = |at: usize| place(decoded.before(at));
            visit(&decoded.text, &place);
            without(&decoded.text, left, &place, visit);
        }
    }
}

/// Decodes what is encoded; `None` if nothing is, or if a mixture has only one encoding.
fn decode(text: &str, encodings: &[Encoding]) -> Option<Decoded> {
    let is_sign = |c: char| encodings.iter().any(|(sign, _)| *sign == c);
    let mut there = Vec::new();
    let mut decoded = Decoded { text: String::new(), moves: Vec::new() };
    let (mut copied, mut at) = (0_usize, 0_usize);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(is_sign)) {
        at = at.saturating_add(found);
        let rest = text.get(at..).unwrap_or_default();
        let found = encodings.iter().find(|(sign, _)| rest.starts_with(*sign));
        let read = found.and_then(|(sign, read)| Some((sign, read(rest)?)));
        let Some((sign, (c, length))) = read else {
            // All signs have one byte.
            at = at.saturating_add(1);
            continue;
        };
        if !there.contains(&sign) {
            there.push(sign);
        }
        decoded.text.push_str(text.get(copied..at).unwrap_or_default());
        decoded.text.push(c);
        at = at.saturating_add(length);
        copied = at;
        decoded.moves.push((decoded.text.len(), at));
    }
    if there.is_empty() || there.len() < 2.min(encodings.len()) {
        return None;
    }
    decoded.text.push_str(text.get(copied..).unwrap_or_default());
    Some(decoded)
}

/// Reads an escape of JSON; returns the character and the length.
fn read_escape(text: &str) -> Option<(char, usize)> {
    let after = text.strip_prefix('\\')?;
    match after.chars().next()? {
        '\\' => Some(('\\', 2)),
        'u' => {
            let unit = |text: &str| text.strip_prefix("\\u").and_then(|digits| hex(digits, 4));
            let first = unit(text)?;
            if let Some(c) = char::from_u32(first) {
                return Some((c, 6));
            }
            let units = [first, unit(text.get(6..)?)?].map(|unit| u16::try_from(unit).unwrap_or_default());
            char::decode_utf16(units).next()?.ok().map(|c| (c, 12))
        }
        letter => short(letter).map(|c| (c, 2)),
    }
}

/// Reads `%41`, or a character of several bytes; returns the character and the length.
fn read_percent(text: &str) -> Option<(char, usize)> {
    let mut bytes = Vec::new();
    let mut rest = text;
    for _ in 0..4 {
        let digits = rest.strip_prefix('%')?;
        bytes.push(u8::try_from(hex(digits, 2)?).ok()?);
        rest = digits.get(2..)?;
        if let Some(c) = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()) {
            return Some((c, text.len().saturating_sub(rest.len())));
        }
    }
    None
}

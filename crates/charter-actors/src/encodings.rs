//! Finds a text that is written in one of the encodings of JSON, URLs or HTML, in any mixture.

/// Maximum number of places that are followed at a time.
const MAX_WAYS: usize = 16;
/// Maximum number of backslashes before a character: JSON within JSON, five times.
const MAX_SLASHES: usize = 32;

/// Maximum number of bytes of an escape that is not complete.
const MAX_UNFINISHED: usize = 96;

/// Returns the lengths that `needle` may have at the beginning of `text`; none if it is not there.
pub(crate) fn ends(needle: &str, text: &str) -> Vec<usize> {
    follow(needle, text, |_, _| false)
}

/// Whether `text` is the beginning of `needle`, with at least `least` characters of it, and perhaps
/// a part of an escape behind them.
pub(crate) fn begins(needle: &str, text: &str, least: usize) -> bool {
    let mut found = false;
    follow(needle, text, |count, rest| {
        found |= count >= least && (rest.is_empty() || is_unfinished(rest));
        found
    });
    found
}

/// Follows `needle` in a text, and returns the lengths that it may have there. `stop` is given the
/// number of characters that were found so far, and the rest of the text.
fn follow(needle: &str, text: &str, mut stop: impl FnMut(usize, &str) -> bool) -> Vec<usize> {
    // Almost every place of a text is not the beginning of the needle.
    let (Some(first), Some(wanted)) = (text.as_bytes().first(), needle.as_bytes().first()) else {
        return Vec::new();
    };
    if first != wanted && !b"\\%&+".contains(first) {
        return Vec::new();
    }
    let mut ways = vec![0_usize];
    let mut next = Vec::new();
    for (count, c) in needle.chars().enumerate() {
        for way in &ways {
            let rest = text.get(*way..).unwrap_or_default();
            if stop(count, rest) {
                return Vec::new();
            }
            forms(c, rest, |length| next.push(way.saturating_add(length)));
        }
        if next.is_empty() {
            return Vec::new();
        }
        next.sort_unstable();
        next.dedup();
        next.truncate(MAX_WAYS);
        std::mem::swap(&mut ways, &mut next);
        next.clear();
    }
    ways
}

/// Reports the length of each form that a character has at the beginning of a text.
fn forms(c: char, text: &str, mut report: impl FnMut(usize)) {
    if text.starts_with(c) {
        report(c.len_utf8());
    }
    match text.as_bytes().first() {
        Some(b'+') if c == ' ' => report(1),
        Some(b'%') => percent(c, text).into_iter().for_each(report),
        Some(b'&') => entity(c, text).into_iter().for_each(report),
        Some(b'\\') => escape(c, text, report),
        _ => {}
    }
}

/// Escapes of JSON, which are escaped again in JSON within JSON.
fn escape(c: char, text: &str, mut report: impl FnMut(usize)) {
    let (slashes, after) = slashes_before(text);
    if c == '\\' {
        // One was reported as the character itself.
        [2, 4, 8, 16].into_iter().filter(|count| *count <= slashes).for_each(&mut report);
    }
    if after.chars().next().and_then(short) == Some(c) {
        report(slashes.saturating_add(1));
    }
    let mut rest = text;
    let mut units = [0_u16; 2];
    for unit in c.encode_utf16(&mut units) {
        let (count, after) = slashes_before(rest);
        let digits = after.strip_prefix('u').filter(|_| count > 0);
        let digits = digits.filter(|digits| hex(digits, 4) == Some((*unit).into()));
        let Some(following) = digits.and_then(|digits| digits.get(4..)) else {
            return;
        };
        rest = following;
    }
    report(text.len().saturating_sub(rest.len()));
}

/// The character that a letter after a backslash stands for.
pub(crate) fn short(letter: char) -> Option<char> {
    match letter {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        '"' | '/' | '\'' => Some(letter),
        _ => None,
    }
}

/// The number of backslashes at the beginning of a text, up to the maximum, and what follows them.
fn slashes_before(text: &str) -> (usize, &str) {
    let count = text.bytes().take(MAX_SLASHES).take_while(|b| *b == b'\\').count();
    (count, text.get(count..).unwrap_or_default())
}

/// `%41`, also if the percent sign itself is encoded.
fn percent(c: char, text: &str) -> Option<usize> {
    let mut rest = text;
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let mut digits = rest.strip_prefix('%')?;
        while hex(digits, 2) != Some(byte.into()) {
            digits = digits.strip_prefix("25")?;
        }
        rest = digits.get(2..)?;
    }
    Some(text.len().saturating_sub(rest.len()))
}

/// Whether a text may be the beginning of an escape, itself escaped or not, and nothing more.
fn is_unfinished(text: &str) -> bool {
    if text.len() > MAX_UNFINISHED {
        return false;
    }
    // A part of one may be escaped again, as in `%\u00`.
    let signs = text.char_indices().skip(1).filter(|(_, c)| "\\%&".contains(*c)).map(|(at, _)| at);
    signs.chain([text.len()]).any(|at| {
        let (one, rest) = text.split_at_checked(at).unwrap_or_default();
        is_part(one) && (rest.is_empty() || is_unfinished(rest))
    })
}

/// Whether a text is a part of one escape, without its end.
fn is_part(text: &str) -> bool {
    let is_hex = |digits: &str, most: usize| digits.len() <= most && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match text.as_bytes().first() {
        Some(b'\\') => {
            let (_, after) = slashes_before(text);
            let digits = after.strip_prefix('u');
            // Of a pair, the first one is not the end.
            let is_pair = |digits| hex(digits, 4).is_some_and(|unit| (0xd800..0xdc00).contains(&unit));
            after.is_empty() || digits.is_some_and(|digits| is_hex(digits, 3) || (is_hex(digits, 4) && is_pair(digits)))
        }
        Some(b'%') => {
            let mut digits = text.get(1..).unwrap_or_default();
            while let Some(rest) = digits.strip_prefix("25") {
                digits = rest;
            }
            // A character beyond ASCII takes several.
            let is_more = hex(digits, 2).is_some_and(|byte| byte >= 0x80);
            is_hex(digits, 1) || (digits.len() == 2 && is_more)
        }
        Some(b'&') => text.bytes().skip(1).all(|b| b == b'#' || b.is_ascii_alphanumeric()),
        _ => false,
    }
}

fn entity(c: char, text: &str) -> Option<usize> {
    read_entity(text).filter(|(found, _)| *found == c).map(|(_, length)| length)
}

/// Reads `&amp;`, `&#38;` or `&#x26;`; returns the character and the length.
pub(crate) fn read_entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(12).position(|b| b == b';')?;
    let name = text.get(1..end)?;
    let found = match name.strip_prefix('#') {
        Some(number) => char::from_u32(match number.strip_prefix(['x', 'X']) {
            Some(digits) => hex(digits, digits.len())?,
            None => number.parse().ok()?,
        })?,
        None => match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => return None,
        },
    };
    Some((found, end.saturating_add(1)))
}

/// Reads a hexadecimal number of `count` digits.
pub(crate) fn hex(text: &str, count: usize) -> Option<u32> {
    let digits = text.get(..count).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

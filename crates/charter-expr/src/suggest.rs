//! "Did you mean": the nearest known name.

/// Maximum number of candidates compared with one name; it limits the cost of many unknown names
/// among many known ones.
const MAX_CANDIDATES: usize = 1_000;

/// Maximum length of a name in bytes: the comparison takes quadratic time, and a longer name is not
/// a typo.
const MAX_LENGTH: usize = 64;

/// Maximum number of edits between a name and a suggestion.
const MAX_EDITS: usize = 3;

/// Returns the candidate most similar to a name, if the name could be a typo of it. Case, `-` and
/// `_` are ignored. Only the first thousand candidates are compared.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    nearest_within(MAX_EDITS, name, candidates)
}

/// Like [`nearest`], but with at most `edits` edits, each of which inserts, removes or replaces a
/// letter or swaps two adjacent ones.
pub fn nearest_within<'c>(edits: usize, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let limit = (name.chars().count() / 3).max(1).min(edits);
    let (folded, letters) = (fold(name), letters(name));
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|c| !c.is_empty() && *c != name && c.len() <= MAX_LENGTH)
        // One edit changes at most two letters of the set: one is removed, one is added.
        .filter(|c| (self::letters(c) ^ letters).count_ones().div_ceil(2) as usize <= limit)
        .map(|c| (strsim::damerau_levenshtein(&folded, &fold(c)), c))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Returns a help text, if a similar name is known: ``did you mean `NAME`?``.
pub fn did_you_mean<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(name, candidates).map(|c| format!("did you mean `{c}`?"))
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}

/// Returns the set of letters in a name as bits; several letters may share a bit.
fn letters(name: &str) -> u64 {
    let bit = |b: u8| 1_u64.wrapping_shl(u32::from(b.to_ascii_lowercase()));
    name.bytes().filter(|b| !matches!(b, b'-' | b'_')).map(bit).fold(0, |set, bit| set | bit)
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_within};

    #[test]
    fn typos() {
        let known = ["amount", "account", "Straße", "x1", "on_done_or_error"];
        assert_eq!(nearest("amuont", known), Some("amount"));
        assert_eq!(nearest("Acount", known), Some("account"));
        assert_eq!(nearest("strasse", known), Some("Straße"));
        assert_eq!(nearest("straße", known), Some("Straße"));
        assert_eq!(nearest("y1", known), Some("x1"));
        assert_eq!(nearest("onDoneOrError", known), Some("on_done_or_error"));
        assert_eq!(nearest("quantity", known), None);
        assert_eq!(nearest("on_donn_error", known), Some("on_done_or_error"));
        assert_eq!(nearest_within(2, "on_donn_error", known), None);
        assert_eq!(nearest(&"a".repeat(1_000_000), known), None);
    }
}

//! "Did you mean": the nearest known name.

/// Names beyond these are not compared: a text with many wrong names among many known ones must not cost their product.
const MAX_CANDIDATES: usize = 1_000;

/// The candidate nearest to a name, if one is near enough to be a slip. Of very many candidates only the first thousand are looked at.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let (folded, letters) = (name.to_lowercase(), letters(name));
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|c| !c.is_empty() && *c != name && c.len() <= LONGEST)
        // A slip changes at most two letters of the set: one goes, one comes.
        .filter(|c| (self::letters(c) ^ letters).count_ones().div_ceil(2) as usize <= limit)
        .map(|c| (strsim::damerau_levenshtein(&folded, &c.to_lowercase()), c))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Comparing is quadratic in the lengths: what is longer is no slip of the pen.
const LONGEST: usize = 64;

/// The set of letters of a name, as bits; different letters may share one.
fn letters(name: &str) -> u64 {
    let bit = |b: u8| 1_u64.wrapping_shl(u32::from(b.to_ascii_lowercase()));
    name.bytes().map(bit).fold(0, |set, bit| set | bit)
}

/// A help text, if a near name is known.
pub(crate) fn did_you_mean<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(name, candidates).map(|c| format!("did you mean `{c}`?"))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips() {
        let known = ["amount", "account", "Straße", "x1"];
        assert_eq!(nearest("amuont", known), Some("amount"));
        assert_eq!(nearest("Acount", known), Some("account"));
        assert_eq!(nearest("strasse", known), Some("Straße"));
        assert_eq!(nearest("straße", known), Some("Straße"));
        assert_eq!(nearest("y1", known), Some("x1"));
        assert_eq!(nearest("quantity", known), None);
        assert_eq!(nearest(&"a".repeat(1_000_000), known), None);
    }
}

//! Turns the names of a charter into Rust names.

/// Keywords of Rust 2024: strict, reserved and contextual.
const KEYWORDS: [&str; 53] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "Self", "static", "struct", "super", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "union",
];

/// Splits a name into words: at every character that is neither a letter nor a digit, and where a
/// lowercase letter is followed by an uppercase one.
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for c in name.chars() {
        let hump = c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit());
        if (hump || !c.is_ascii_alphanumeric()) && !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c);
        }
        before = Some(c);
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

/// Converts a name to camel case: `human_review`, `HUMAN_REVIEW` and `humanReview` become
/// `HumanReview`; a name without letters becomes `X`.
pub(crate) fn camel(name: &str) -> String {
    let mut out = String::new();
    for word in words(name) {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        let rest: String = chars.collect();
        // Lowercase the rest of a word in capitals; a name in camel case has been split already.
        let shout = rest.chars().any(|c| c.is_ascii_uppercase()) && !rest.chars().any(|c| c.is_ascii_lowercase());
        out.push_str(&if shout { rest.to_ascii_lowercase() } else { rest });
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, 'X');
    }
    if out == "Self" { "SelfX".into() } else { out }
}

/// Converts a name to snake case: `WakeRequested`, `wake.requested` and `WAKE_REQUESTED` become
/// `wake_requested`; keywords get a trailing underscore.
pub(crate) fn snake(name: &str) -> String {
    let mut out = words(name).join("_").to_ascii_lowercase();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, 'x');
    }
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{camel, snake};

    #[test]
    fn names_of_a_charter_become_names_of_rust() {
        for (name, large, small) in [
            ("human_review", "HumanReview", "human_review"),
            ("HUMAN_APPROVED", "HumanApproved", "human_approved"),
            ("WakeRequested", "WakeRequested", "wake_requested"),
            ("loop.interval", "LoopInterval", "loop_interval"),
            ("type", "Type", "type_"),
            ("2fa", "X2fa", "x2fa"),
            ("→", "X", "x"),
            ("userId", "UserId", "user_id"),
        ] {
            assert_eq!((camel(name).as_str(), snake(name).as_str()), (large, small), "{name}");
        }
    }
}

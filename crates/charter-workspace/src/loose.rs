//! What is taken from models as if they had written it right, and how that is said.

/// The path that is meant by one that begins with `/` or `./`, and what is assumed then.
pub(crate) fn path(text: &str) -> Option<(&str, String)> {
    let meant = text.strip_prefix("./").or_else(|| text.strip_prefix('/'))?;
    Some((meant, format!("`{}` is `{}` in the workspace", clip(text), clip(meant))))
}

/// The operation that is meant by one that is not in capitals, and what is assumed then.
pub(crate) fn operation(text: &str) -> Option<(String, String)> {
    let meant = text.to_ascii_uppercase();
    let assumed = format!("`{}` is {}", clip(text), clip(&meant));
    (meant != text).then_some((meant, assumed))
}

/// Returns the start of a line, for a message.
pub(crate) fn clip(line: &str) -> String {
    let mut out: String = line.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if out.len() < line.len() && line.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}

//! Removes secrets from a body that cannot be parsed: it is kept to show what a server has sent,
//! and may have a secret in pieces like any other.

use std::collections::{BTreeMap, BTreeSet};

use charter_actors::Secrets;

/// Removes the secrets from what may be the strings of such a body, and from what may belong to
/// them: also parts of a secret, wherever they are.
pub(super) fn redact(secrets: &Secrets, text: &str) -> String {
    let mut parts = split(text);
    // What is between quotes is a string or what separates two, depending on what is broken.
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let keys = parts.clone();
    for index in 2..parts.len() {
        let is_value = |at: usize| keys.get(at).is_some_and(|part| part.trim() == ":");
        if is_value(index.saturating_sub(1)) {
            let key = keys.get(index.saturating_sub(2)).map_or("", String::as_str);
            groups.entry(key).or_default().push(index);
        }
    }
    let mut groups: BTreeSet<Vec<usize>> = groups.into_values().collect();
    groups.insert(groups.iter().flatten().copied().collect::<BTreeSet<usize>>().into_iter().collect());
    groups.extend([0, 1].map(|first| (first..parts.len()).step_by(2).collect()));
    let mut texts: Vec<&mut String> = parts.iter_mut().collect();
    secrets.redact_pieces(&mut texts, &groups);
    secrets.redact_parts(&parts.join("\""))
}

/// The parts of a text between quotes that are not escaped.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut is_escaped) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if c == '"' && !is_escaped {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        is_escaped = c == '\\' && !is_escaped;
        part.push(c);
    }
    parts.push(part);
    parts
}

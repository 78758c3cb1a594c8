//! The paths that a patch changes: the form of `apply_patch`, and unified diffs.

use crate::data::Usage;

/// Returns the paths of a patch and what happens to them; nothing if it cannot be read.
pub(crate) fn changed_paths(text: &str) -> Option<Vec<(String, Usage)>> {
    let paths =
        if text.lines().any(|line| line.trim() == "*** Begin Patch") { sections(text)? } else { unified(text)? };
    (!paths.is_empty()).then_some(paths)
}

fn sections(text: &str) -> Option<Vec<(String, Usage)>> {
    let mut paths = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix("***") else { continue };
        let rest = rest.trim();
        let named = |prefix: &str| rest.strip_prefix(prefix).map(|path| path.trim().to_owned());
        if let Some(path) = named("Add File:").or_else(|| named("Update File:")).or_else(|| named("Move to:")) {
            paths.push((path, Usage::Write));
        } else if let Some(path) = named("Delete File:") {
            paths.push((path, Usage::Delete));
        } else if !matches!(rest, "Begin Patch" | "End Patch" | "End of File") {
            return None;
        }
    }
    Some(paths)
}

fn unified(text: &str) -> Option<Vec<(String, Usage)>> {
    let mut paths = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(path) = line.strip_prefix("rename to ").or_else(|| line.strip_prefix("copy to ")) {
            paths.push((path.to_owned(), Usage::Write));
        }
        if let Some(path) = line.strip_prefix("rename from ") {
            paths.push((path.to_owned(), Usage::Delete));
        }
        let Some(old) = line.strip_prefix("--- ") else { continue };
        let Some(new) = lines.peek().and_then(|line| line.strip_prefix("+++ ")) else { continue };
        // Programs differ in whether they take the first folder off; both readings are named.
        for (side, usage) in [(old, Usage::Delete), (new, Usage::Write)] {
            let path = side.split('\t').next().unwrap_or_default().trim();
            if path == "/dev/null" {
                continue;
            }
            if path.starts_with('"') {
                return None;
            }
            let short = path.split_once('/').filter(|(first, _)| matches!(*first, "a" | "b")).map(|(_, rest)| rest);
            let usage = if usage == Usage::Delete && new.trim() != "/dev/null" { Usage::Write } else { usage };
            paths.push((short.unwrap_or(path).to_owned(), usage));
        }
    }
    Some(paths)
}

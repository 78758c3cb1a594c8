//! Previews of what an approval covers: files to be read are shown as a list, changes as one diff
//! per file. They are recognized by their shape, in any charter: `{files: [{path, size, sha256}]}`
//! and `{summary, changes: [{operation, file_path, ...}]}`.

use charter_kernel::Digest;
use charter_runtime::View;
use serde_json::{Value as Json, json};

use super::host::Host;
use crate::io::{Failure, Paint};
use crate::journal::text::{clean, count};

/// A value for which there is a better presentation than JSON.
pub(crate) enum ApprovalPreview {
    /// Files to be read.
    Files { folder: Option<String>, files: Vec<(String, u64)> },
    /// Changes to files.
    Changes {
        folder: Option<String>,
        value: Json,
        changes: Vec<Change>,
        /// Why there are no diffs; `None` if there are diffs.
        diff_error: Option<String>,
    },
}

/// The change of one file.
pub(crate) struct Change {
    operation: String,
    path: String,
    /// Number of lines added and removed, if they were compared.
    lines: Option<(usize, usize)>,
    /// The lines of the diff.
    diff: Vec<(DiffLine, String)>,
}

/// The kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffLine {
    File,
    Place,
    Same,
    Removed,
    Added,
    Note,
}

impl ApprovalPreview {
    /// Returns the preview of a value that is approved in `actor`, if it has one.
    pub(crate) fn of(value: &Json, view: &View, actor: &str, host: &Host) -> Option<ApprovalPreview> {
        let variable = |name: &str| view.snapshot.actor(actor)?.variable(name).cloned();
        // The folder as it was found, not where its name leads now.
        let found = variable("place").and_then(|place| place.get("path")?.as_str().map(str::to_owned));
        let workspace = found.or_else(|| variable("workspace")?.as_str().map(str::to_owned));
        let folder = workspace.as_deref().map(|w| host.place(view.snapshot.run(), w));
        if let Some(files) = value.get("files").and_then(Json::as_array) {
            let one = |file: &Json| {
                let text = |key: &str| file.get(key)?.as_str().map(str::to_owned);
                text("sha256")?;
                Some((text("path")?, file.get("size")?.as_u64()?))
            };
            let files = files.iter().map(one).collect::<Option<Vec<_>>>()?;
            return Some(ApprovalPreview::Files { folder, files });
        }
        let list = value.get("changes").and_then(Json::as_array)?;
        value.get("summary")?.as_str()?;
        let one = |change: &Json| {
            let text = |key: &str| change.get(key)?.as_str().map(str::to_owned);
            Some(Change { operation: text("operation")?, path: text("file_path")?, lines: None, diff: Vec::new() })
        };
        let mut changes = list.iter().map(one).collect::<Option<Vec<_>>>()?;
        let diff_error = compare(&mut changes, value, workspace.as_deref(), view, host).err().map(|e| e.to_string());
        Some(ApprovalPreview::Changes { folder, value: value.clone(), changes, diff_error })
    }

    /// Renders the summary, without the diffs.
    pub(crate) fn head(&self, paint: Paint) -> Vec<String> {
        let place = |folder: &Option<String>| match folder {
            Some(folder) => format!(" in {}", clean(folder)),
            None => String::new(),
        };
        let mut lines = Vec::new();
        match self {
            ApprovalPreview::Files { folder, files } => {
                let bytes = files.iter().fold(0u64, |all, (_, n)| all.saturating_add(*n));
                let all = format!("{}, {}", count(files.len() as u64, "file"), size(bytes));
                lines.push(format!("{}{}", paint.strong(&all), place(folder)));
                let width = width(files.iter().map(|(path, _)| path.as_str()));
                for (path, bytes) in files {
                    lines.push(format!("  {:<width$}  {:>9}", clean(path), size(*bytes)));
                }
            }
            ApprovalPreview::Changes { folder, value, changes, diff_error } => {
                let summary = value.get("summary").and_then(Json::as_str);
                lines.push(paint.strong(&clean(summary.unwrap_or_default())));
                let all = count(changes.len() as u64, "change");
                lines.push(paint.faint(&format!("{all}{}", place(folder))));
                let width = width(changes.iter().map(|c| c.path.as_str()));
                let digits = changes.len().to_string().len();
                for (n, change) in changes.iter().enumerate() {
                    let counts = change.lines.map(|(added, removed)| {
                        let (added, removed) = (format!("+{added}"), format!("-{removed}"));
                        format!("  {} {}", paint.good(&added), paint.error(&removed))
                    });
                    lines.push(format!(
                        "  {}  {:<6}  {:<width$}{}",
                        paint.help(&format!("{:>digits$}", n + 1)),
                        change.operation,
                        clean(&change.path),
                        counts.unwrap_or_default()
                    ));
                }
                lines.extend(
                    diff_error.as_ref().map(|why| format!("{} no diff: {}", paint.warning("warning:"), clean(why))),
                );
            }
        }
        lines
    }

    /// Renders the diffs: the lines of each file.
    pub(crate) fn diffs(&self, paint: Paint) -> Vec<Vec<String>> {
        let ApprovalPreview::Changes { changes, .. } = self else {
            return Vec::new();
        };
        let line = |(kind, text): &(DiffLine, String)| match kind {
            DiffLine::File => paint.strong(text),
            DiffLine::Place => paint.help(text),
            DiffLine::Same => text.clone(),
            DiffLine::Removed => paint.error(text),
            DiffLine::Added => paint.good(text),
            DiffLine::Note => paint.warning(text),
        };
        let of = |change: &Change| change.diff.iter().map(line).collect::<Vec<_>>();
        changes.iter().map(of).filter(|d| !d.is_empty()).collect()
    }

    /// The number of changes to choose from.
    pub(crate) fn parts(&self) -> usize {
        match self {
            ApprovalPreview::Files { .. } => 0,
            ApprovalPreview::Changes { changes, .. } => changes.len(),
        }
    }

    /// Selects changes by the numbers, ranges of numbers or paths in `line`. Returns their paths
    /// and the digest of the selection.
    pub(crate) fn part(&self, line: &str) -> Result<(Vec<String>, String), Failure> {
        let ApprovalPreview::Changes { value, changes, .. } = self else {
            return Err(Failure::new("there are no changes to choose from"));
        };
        let mut wanted = vec![false; changes.len()];
        for word in line.split([' ', ',', '\t']).filter(|w| !w.is_empty()) {
            let by_path = changes.iter().position(|c| c.path == word);
            let range = match (by_path, word.split_once('-')) {
                (Some(at), _) => Some((at + 1, at + 1)),
                (None, Some((from, to))) => from.parse().ok().zip(to.parse().ok()),
                (None, None) => word.parse().ok().map(|n: usize| (n, n)),
            };
            let (from, to) =
                range.filter(|(from, to)| 1 <= *from && from <= to && *to <= changes.len()).ok_or_else(|| {
                    Failure::new(format!(
                        "no change `{}`: enter numbers from 1 to {}, such as `1 3-4`, or paths",
                        clean(word),
                        changes.len()
                    ))
                })?;
            for chosen in wanted.iter_mut().take(to).skip(from - 1) {
                *chosen = true;
            }
        }
        let list = value.get("changes").and_then(Json::as_array);
        let (mut paths, mut part) = (Vec::new(), Vec::new());
        for ((change, value), _) in
            changes.iter().zip(list.into_iter().flatten()).zip(&wanted).filter(|(_, wanted)| **wanted)
        {
            paths.push(change.path.clone());
            part.push(value.clone());
        }
        let part = json!({"summary": value.get("summary"), "changes": part});
        Ok((paths, Digest::of_json(&part).to_string()))
    }
}

/// Adds the diffs to the changes.
#[cfg(unix)]
fn compare(
    changes: &mut [Change],
    value: &Json,
    workspace: Option<&str>,
    view: &View,
    host: &Host,
) -> Result<(), Failure> {
    use charter_actors::LineKind;
    let workspace = workspace.ok_or_else(|| Failure::new("the run does not name its workspace"))?;
    let diffs =
        host.workspaces.review(view.snapshot.run(), workspace, value).map_err(|e| Failure::new(e.to_string()))?;
    for (change, diff) in changes.iter_mut().zip(diffs) {
        let compared = diff.lines.iter().any(|l| l.kind == LineKind::Place);
        change.lines = compared.then_some((diff.added, diff.removed));
        let kind = |kind: LineKind| match kind {
            LineKind::File => DiffLine::File,
            LineKind::Place => DiffLine::Place,
            LineKind::Same => DiffLine::Same,
            LineKind::Removed => DiffLine::Removed,
            LineKind::Added => DiffLine::Added,
            _ => DiffLine::Note,
        };
        change.diff = diff.lines.into_iter().map(|l| (kind(l.kind), l.text)).collect();
    }
    Ok(())
}

#[cfg(not(unix))]
fn compare(_: &mut [Change], _: &Json, _: Option<&str>, _: &View, _: &Host) -> Result<(), Failure> {
    Err(Failure::new("workspaces are supported on Unix only"))
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|t| t.chars().count()).max().unwrap_or(0).min(60)
}

/// Renders a size: `812 B`, `12.3 kB`.
fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit / (unit / 10));
    match bytes {
        ..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        _ => format!("{} MB", tenths(1_000_000)),
    }
}

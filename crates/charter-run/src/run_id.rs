//! Ids of runs.

/// The error for a run id of the wrong length or with invalid characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid run id `{0}`: expected 1 to 128 letters, digits, `-`, `_`, `.` or `:`, and no `-` at the beginning")]
pub struct BadRunId(pub String);

/// Checks the id of a run.
///
/// # Errors
/// The id is empty, too long, begins with `-`, or contains characters that are not allowed.
pub fn check_run_id(run: &str) -> Result<(), BadRunId> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    // At the beginning, `-` would make it an option of a command.
    match run.is_empty() || run.starts_with('-') || run.len() > 128 || !run.chars().all(allowed) {
        true => Err(BadRunId(run.chars().take(140).collect())),
        false => Ok(()),
    }
}

//! The charters that are bundled in the binary: `charters/*/charter.yaml`, with their scenarios.

/// A charter that is bundled in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// The name of the charter's folder, by which commands refer to it.
    pub name: &'static str,
    /// The source text.
    pub source: &'static str,
    /// File name and text of its scenarios.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// Path in the charter's folder and text of each file that its actors read: prompts, scripted
    /// answers.
    pub files: &'static [(&'static str, &'static str)],
}

/// All bundled charters, sorted by name.
pub const ALL: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled_charters.rs"));

/// Finds the bundled charter with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Bundled> {
    ALL.iter().find(|charter| charter.name == name)
}

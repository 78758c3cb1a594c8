//! The charters in the binary: `charters/*/charter.yaml`, with their scenarios.

/// A charter in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// Name of its folder, by which commands refer to it.
    pub name: &'static str,
    /// Its text.
    pub source: &'static str,
    /// File name and text of its scenarios.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// Path in its folder and text of the files that its actors read: prompts, scripted answers.
    pub files: &'static [(&'static str, &'static str)],
}

/// All bundled charters, sorted by name.
pub const ALL: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled_charters.rs"));

/// The bundled charter with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Bundled> {
    ALL.iter().find(|charter| charter.name == name)
}

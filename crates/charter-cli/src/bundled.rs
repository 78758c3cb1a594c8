//! The charters that are in the binary: `charters/*/charter.yaml`, with their scenarios.

/// A charter in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// Name of its folder, by which commands find it.
    pub name: &'static str,
    /// Its text.
    pub source: &'static str,
    /// File name and text of its scenarios.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// Path inside its folder and text of what its actors read: prompts, answers of scripted ones.
    pub files: &'static [(&'static str, &'static str)],
}

/// All of them, sorted by name.
pub const ALL: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled_charters.rs"));

/// The one of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Bundled> {
    ALL.iter().find(|charter| charter.name == name)
}

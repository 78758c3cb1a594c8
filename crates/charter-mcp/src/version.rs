//! The generations of the protocol.

/// A generation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 2025-06-18: a session begins with `initialize`.
    V2025June,
    /// 2025-11-25: the same, with small additions.
    V2025November,
    /// 2026-07-28: no sessions; every request says its version, and subscriptions are requests.
    V2026,
}

impl Version {
    /// All generations, the newest first.
    pub const ALL: [Version; 3] = [Version::V2026, Version::V2025November, Version::V2025June];

    /// The newest generation with sessions: the answer to a client that asks for another one.
    pub const NEWEST_WITH_SESSIONS: Version = Version::V2025November;

    /// The text that names it in messages and headers.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Version::V2025June => "2025-06-18",
            Version::V2025November => "2025-11-25",
            Version::V2026 => "2026-07-28",
        }
    }

    /// Finds a generation by its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.text() == text)
    }

    /// Whether each request stands alone.
    #[must_use]
    pub fn is_stateless(self) -> bool {
        self == Version::V2026
    }

    /// The texts of all generations, the newest first.
    #[must_use]
    pub fn texts() -> Vec<&'static str> {
        Version::ALL.into_iter().map(Version::text).collect()
    }
}

//! Strings and bytes, borrowed or shared.

use std::ops::Deref;
use std::sync::Arc;

/// A string: borrowed from the data, or owned and shared.
#[derive(Clone)]
#[non_exhaustive]
pub enum Str<'a> {
    /// Borrowed from JSON, the host or the program.
    Borrowed(&'a str),
    /// Created by an evaluation.
    Owned(Arc<str>),
}

impl Str<'_> {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Str::Borrowed(s) => s,
            Str::Owned(s) => s,
        }
    }

    /// Converts the value to owned data.
    pub fn into_owned(self) -> Str<'static> {
        match self {
            Str::Borrowed(s) => Str::Owned(s.into()),
            Str::Owned(s) => Str::Owned(s),
        }
    }
}

/// Bytes: borrowed from the program, or owned and shared.
#[derive(Clone)]
#[non_exhaustive]
pub enum Bytes<'a> {
    /// Borrowed from the host or the program.
    Borrowed(&'a [u8]),
    /// Created by an evaluation.
    Owned(Arc<[u8]>),
}

impl Bytes<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(b) => b,
            Bytes::Owned(b) => b,
        }
    }

    /// Converts the value to owned data.
    pub fn into_owned(self) -> Bytes<'static> {
        match self {
            Bytes::Borrowed(b) => Bytes::Owned(b.into()),
            Bytes::Owned(b) => Bytes::Owned(b),
        }
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(s: &'a str) -> Self {
        Str::Borrowed(s)
    }
}

impl From<String> for Str<'_> {
    fn from(s: String) -> Self {
        Str::Owned(s.into())
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(b: Vec<u8>) -> Self {
        Bytes::Owned(b.into())
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Str<'_> {}

impl std::fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl std::fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_slice())
    }
}

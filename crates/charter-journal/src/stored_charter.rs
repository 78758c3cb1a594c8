//! A charter in the form in which a store keeps it.

use charter_kernel::{Definition, Digest};

use crate::error::StoreError;

/// A charter, stored with its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCharter {
    /// Digest of the definition.
    pub digest: Digest,
    /// Name of the source: the absolute path of the file from which this program has read the
    /// charter, or a name for display. No digest covers it, so it decides nothing: a host may look
    /// for the programs of the charter in that folder, and compares them with the manifest. Of a
    /// run, [`place`](crate::place) comes first.
    pub name: String,
    /// The definition in its core form, as compact JSON: exactly the text that the digest covers.
    pub core: String,
    /// The source text; empty if there is none.
    pub source: String,
}

impl StoredCharter {
    /// Prepares a charter for storing.
    #[must_use]
    pub fn new(definition: &Definition, name: &str, source: &str) -> StoredCharter {
        // Serializing plain data cannot fail; an empty string would match no digest.
        let core = serde_json::to_string(definition).unwrap_or_default();
        StoredCharter { digest: definition.digest(), name: name.into(), core, source: source.into() }
    }

    /// Whether the name is the path of the file from which the charter was read.
    #[must_use]
    pub fn has_place(&self) -> bool {
        std::path::Path::new(&self.name).is_absolute()
    }

    /// The name without the place: a path is only known where the charter was read.
    #[must_use]
    pub fn plain_name(&self) -> &str {
        let file = std::path::Path::new(&self.name).file_name().filter(|_| self.has_place());
        file.and_then(std::ffi::OsStr::to_str).unwrap_or(&self.name)
    }

    /// Checks the digest and parses the definition.
    ///
    /// # Errors
    /// The text does not match the digest, or it is not a valid definition.
    pub fn definition(&self) -> Result<Definition, StoreError> {
        let damaged = |why: String| StoreError::Damaged(format!("charter {}: {why}", self.digest));
        let found = Digest::of_bytes(self.core.as_bytes());
        if found != self.digest {
            return Err(damaged(format!("its text has the digest {found}")));
        }
        let unlimited = crate::record::depth(&self.core) <= crate::record::MAX_DEPTH;
        let reader = || {
            let mut reader = serde_json::Deserializer::from_str(&self.core);
            if unlimited {
                reader.disable_recursion_limit();
            }
            reader
        };
        let read = charter_expr::strict_json::check_with(reader())
            .and_then(|()| serde::Deserialize::deserialize(&mut reader()));
        read.map_err(|e| damaged(format!("invalid definition: {e}")))
    }
}

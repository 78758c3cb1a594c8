//! The object `Charter`: the text of a charter and its files, for mirrors.

use std::collections::BTreeMap;

use charter_journal::StoredCharter;
use charter_kernel::Digest;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

/// A charter as the engine stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) core: String,
    pub(crate) source: String,
    /// The files of its runs, in base64.
    pub(crate) blobs: BTreeMap<Digest, String>,
}

impl Stored {
    pub(crate) fn charter(&self, digest: Digest) -> StoredCharter {
        let Stored { name, core, source, .. } = self.clone();
        StoredCharter { digest, name, core, source }
    }
}

/// Keeps a charter under its digest.
pub(crate) struct Shelf;

#[restate_sdk::object(name = "Charter", journal_retention = "0s", lazy_state, client_visibility = "pub(crate)")]
impl Shelf {
    /// Stores the charter, and adds files to those that it has.
    #[handler]
    async fn put(&self, ctx: ObjectContext<'_>, Json(given): Json<Stored>) -> HandlerResult<()> {
        let Some(digest) = Digest::parse(ctx.key()) else {
            return Err(TerminalError::new_with_code(400, "the key is not a digest").into());
        };
        if let Err(e) = given.charter(digest).definition() {
            return Err(TerminalError::new_with_code(400, e.to_string()).into());
        }
        let before: Option<Json<Stored>> = ctx.get("stored").await?;
        let mut blobs = before.as_ref().map(|Json(before)| before.blobs.clone()).unwrap_or_default();
        blobs.extend(given.blobs.clone());
        let stored = Stored { blobs, ..given };
        if before.is_none_or(|Json(before)| before != stored) {
            ctx.set("stored", Json(stored));
        }
        Ok(())
    }
}

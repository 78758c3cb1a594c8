//! The charters of an endpoint, and the executors of their actors.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::{Blobs, Executors, standard};
use charter_kernel::Digest;
use charter_runtime::{Charter, Options, RuntimeError};

/// Kinds of actors that need one machine.
const OF_ONE_MACHINE: [&str; 1] = ["workspace"];

/// The charters that an endpoint serves. Every endpoint of a cluster has the same ones.
#[derive(Debug)]
pub struct Charters {
    pub(crate) options: Options,
    all: BTreeMap<Digest, (Arc<Charter>, Blobs)>,
}

impl Charters {
    /// Checks charters, and reads the files that their actors name. `more` are executors beside
    /// the standard ones, or instead of them.
    ///
    /// # Errors
    /// This host cannot run one of them.
    pub fn new(charters: &[Charter], more: Executors) -> Result<Charters, RuntimeError> {
        let mut executors = standard();
        executors.extend(more);
        executors.retain(|kind, _| !OF_ONE_MACHINE.contains(&kind.as_str()));
        let options = Options { executors, ..Options::default() };
        let mut all = BTreeMap::new();
        for charter in charters {
            if let Some(event) = charter.machine().unique_event() {
                let why =
                    format!("the event `{event}` has a key that is unique across runs, which Restate cannot keep");
                return Err(RuntimeError::Charter { charter: charter.machine().definition().id.clone(), why });
            }
            let (charter, blobs) = options.prepare(charter)?;
            all.insert(charter.digest(), (Arc::new(charter), blobs));
        }
        Ok(Charters { options, all })
    }

    /// Returns a charter.
    #[must_use]
    pub fn get(&self, digest: Digest) -> Option<&Arc<Charter>> {
        self.all.get(&digest).map(|(charter, _)| charter)
    }

    /// Returns all charters, each with the contents of its files.
    pub fn iter(&self) -> impl Iterator<Item = (&Charter, &Blobs)> {
        self.all.values().map(|(charter, blobs)| (charter.as_ref(), blobs))
    }
}

//! The management canister, with only `raw_rand`.

use candid::encode_one;
use sha2::{Digest, Sha256};

use crate::reject::{Answer, Reject};

/// Draws random numbers from a seed, so each run gets the same numbers.
#[derive(Debug)]
pub(crate) struct Management {
    seed: u64,
    drawn: u64,
}

impl Management {
    pub(crate) fn new(seed: u64) -> Management {
        Management { seed, drawn: 0 }
    }

    /// Returns the answer to a canister's call.
    pub(crate) fn answer(&mut self, method: &str, arg: &[u8]) -> Answer {
        if method != "raw_rand" {
            return Err(Reject::new(
                407,
                format!("The management canister of this test host has no method '{method}', only `raw_rand`."),
            ));
        }
        candid::decode_args::<()>(arg)
            .map_err(|error| Reject::new(408, format!("`raw_rand` takes no arguments: {error}")))?;
        self.drawn = self.drawn.saturating_add(1);
        let mut hash = Sha256::new();
        hash.update(b"raw_rand");
        hash.update(self.seed.to_be_bytes());
        hash.update(self.drawn.to_be_bytes());
        encode_one(hash.finalize().to_vec()).map_err(|error| Reject::new(408, error.to_string()))
    }
}

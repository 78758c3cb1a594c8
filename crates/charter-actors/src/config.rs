//! The configuration of an actor.

use std::sync::Arc;

use charter_kernel::Schema;
use charter_kernel::definition::ActorDecl;

use crate::error::ConfigError;
use charter_run::ActorPolicy;

/// An entry of `actors`, read.
#[derive(Debug)]
pub struct ActorConfig {
    /// Its name in the charter.
    pub name: Arc<str>,
    /// Its kind, which selects the executor.
    pub kind: Arc<str>,
    /// The declaration of the actor in the charter.
    pub decl: ActorDecl,
    /// The keys that are the same for every kind.
    pub policy: ActorPolicy,
    /// The schema of its answers.
    pub output: Option<Schema>,
}

impl ActorConfig {
    /// Reads an entry of `actors`.
    ///
    /// # Errors
    /// A common key is wrong, or `output` is not a schema. Keys of the kind itself are checked by
    /// its executor.
    pub fn read(name: &str, decl: &ActorDecl) -> Result<ActorConfig, ConfigError> {
        Ok(ActorConfig {
            name: name.into(),
            kind: decl.kind.as_str().into(),
            policy: ActorPolicy::read(decl)?,
            output: decl
                .output
                .as_ref()
                .map(Schema::compile)
                .transpose()
                .map_err(|e| ConfigError::Other(e.to_string()))?,
            decl: decl.clone(),
        })
    }
}

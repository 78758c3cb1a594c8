//! The configuration of an actor.

use std::sync::Arc;

use charter_kernel::Schema;
use charter_kernel::definition::ActorDecl;

use crate::error::ConfigError;
use charter_run::ActorPolicy;

/// A parsed entry of `actors`.
#[derive(Debug)]
pub struct ActorConfig {
    /// The name of the actor in the charter.
    pub name: Arc<str>,
    /// The kind of the actor, which selects the executor.
    pub kind: Arc<str>,
    /// The declaration of the actor in the charter.
    pub decl: ActorDecl,
    /// The keys that every kind has.
    pub policy: ActorPolicy,
    /// The schema of the actor's answers.
    pub output: Option<Schema>,
}

impl ActorConfig {
    /// Parses an entry of `actors`.
    ///
    /// # Errors
    /// A common key is invalid, or `output` is not a schema. The executor checks the keys that are
    /// specific to the kind.
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

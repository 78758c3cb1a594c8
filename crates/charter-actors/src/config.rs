//! The configuration of an actor.

use std::sync::Arc;

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
}

impl ActorConfig {
    /// Parses an entry of `actors`.
    ///
    /// # Errors
    /// A common key is invalid. The executor checks the keys that are specific to the kind.
    pub fn read(name: &str, decl: &ActorDecl) -> Result<ActorConfig, ConfigError> {
        Ok(ActorConfig {
            name: name.into(),
            kind: decl.kind.as_str().into(),
            policy: ActorPolicy::read(decl)?,
            decl: decl.clone(),
        })
    }
}

//! The charter that the canister holds: its core form, compiled, and the skills that came with it.

use std::collections::BTreeMap;

use charter_automaton::{PortError, Skill, SkillSource, read_skills};
use charter_journal::StoredCharter;
use charter_kernel::definition::ActorDecl;
use charter_kernel::{Digest, Machine, Schema};
use serde_json::Value as Json;

use crate::error::Broken;

/// Name of the charter's source, for people.
const NAME: &str = "charters/automaton/charter.yaml";
/// The core form, made by `build.rs`: the reader of YAML is no part of the canister.
const CORE: &str = include_str!(concat!(env!("OUT_DIR"), "/core.json"));
/// What people wrote.
const SOURCE: &str = include_str!("../../../charters/automaton/charter.yaml");
/// The skills folder beside the charter: name and text of each file, in order of the names.
const SKILLS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/skills.rs"));

/// Which charter is built into this canister.
pub(crate) fn built_in_digest() -> Digest {
    Digest::of_bytes(CORE.as_bytes())
}

/// The charter that is built into this canister, as it is kept with its run.
#[must_use]
pub fn built_in() -> StoredCharter {
    StoredCharter { digest: built_in_digest(), name: NAME.into(), core: CORE.into(), source: SOURCE.into() }
}

/// A charter, ready to be followed.
#[derive(Debug)]
pub struct Charter {
    /// Compiled.
    pub machine: Machine,
    /// As it is kept with its run.
    pub stored: StoredCharter,
    actors: BTreeMap<String, Actor>,
}

/// An entry of `actors`, as this host reads it.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) decl: ActorDecl,
    /// Doing it twice is like doing it once: what an upgrade interrupted is done again.
    pub(crate) idempotent: bool,
    pub(crate) output: Option<Schema>,
}

impl Charter {
    /// Compiles a charter.
    ///
    /// # Errors
    /// It is damaged, does not compile, or an actor asks for what this host does not do (`retry`, `attemptTimeout`).
    pub fn compile(stored: StoredCharter) -> Result<Charter, Broken> {
        let wrong = |why: String| Broken::Charter(why);
        let definition = stored.definition().map_err(|e| wrong(e.to_string()))?;
        let mut actors = BTreeMap::new();
        for (name, decl) in &definition.actors {
            for key in ["retry", "attemptTimeout"] {
                if decl.config.get(key).is_some_and(|v| !v.is_null()) {
                    return Err(wrong(format!("actor `{name}`: a canister does not know `{key}`")));
                }
            }
            let output = decl.output.as_ref().map(Schema::compile).transpose();
            let actor = Actor {
                decl: decl.clone(),
                // Skills are only read, whether the charter says so or not.
                idempotent: decl.config.get("idempotent").and_then(Json::as_bool).unwrap_or(decl.kind == "skills"),
                output: output.map_err(|why| wrong(format!("actor `{name}`: {why}")))?,
            };
            actors.insert(name.clone(), actor);
        }
        let machine = Machine::compile(definition).map_err(|problems| {
            let first = problems.first().map(ToString::to_string);
            wrong(first.unwrap_or_default())
        })?;
        Ok(Charter { machine, stored, actors })
    }

    pub(crate) fn actor(&self, name: &str) -> Option<&Actor> {
        self.actors.get(name)
    }
}

/// The skills that are built into the canister.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltInSkills;

impl SkillSource for BuiltInSkills {
    fn skills(&self) -> Result<Vec<Skill>, PortError> {
        read_skills(SKILLS.iter().copied())
    }
}

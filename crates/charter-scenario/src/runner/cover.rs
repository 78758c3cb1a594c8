//! Coverage of scenarios: the transitions taken, the refusals seen, and the states reached.

use std::collections::{BTreeSet, HashMap};

use charter_kernel::{Code, Explanation};
use serde_json::Value as Json;

use crate::session::{Saved, Session};

/// Coverage of scenarios.
#[derive(Debug, Default)]
pub struct Cover {
    /// Addresses of the transitions taken.
    taken: BTreeSet<String>,
    /// Names of the transitions that refused an event.
    refused_by: BTreeSet<String>,
    codes: BTreeSet<&'static str>,
    interlocks: BTreeSet<String>,
    /// How each state, given by machine and path, was first reached.
    reached: HashMap<(String, String), Reached>,
}

/// The step of a scenario after which a state was first active.
#[derive(Debug, Clone)]
pub struct Reached {
    /// File of the scenario.
    pub file: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Line of the step after which the state was active; 0 for the start of the run.
    pub line: usize,
    /// The input of the scenario.
    pub(crate) input: Json,
    /// The id of the actor.
    pub(crate) actor: String,
    /// The run after the step.
    pub(crate) saved: Saved,
}

/// Where a scenario is.
pub(crate) struct Progress<'a> {
    pub(crate) file: &'a str,
    pub(crate) scenario: &'a str,
    pub(crate) input: &'a Json,
    /// As in [`Reached`].
    pub(crate) line: usize,
}

impl Cover {
    /// Records transitions that were taken.
    pub fn take<'t>(&mut self, transitions: impl IntoIterator<Item = &'t str>) {
        for at in transitions {
            if !self.taken.contains(at) {
                self.taken.insert(at.to_owned());
            }
        }
    }

    /// Records an expected refusal.
    pub fn refuse(&mut self, explanation: &Explanation) {
        self.codes.insert(explanation.code.word());
        self.codes.extend(explanation.candidates.iter().map(|c| c.failed.word()));
        self.interlocks.extend(explanation.interlock.clone());
        let candidates = explanation.candidates.iter();
        let first = candidates
            .filter(|c| c.failed == Code::Rule && explanation.code == Code::Rule)
            .map(|c| c.transition.clone())
            .next();
        self.refused_by.extend(first);
    }

    /// Records the active states of a run.
    pub(crate) fn reach<'a>(&mut self, session: &Session<'_>, how: impl Fn() -> Progress<'a>) {
        for actor in session.snapshot().actors() {
            for path in actor.active() {
                let key = (actor.machine().to_owned(), path.to_owned());
                self.reached.entry(key).or_insert_with(|| {
                    let Progress { file, scenario, input, line } = how();
                    let (file, scenario) = (file.to_owned(), scenario.to_owned());
                    let (input, actor) = (input.clone(), actor.id().to_owned());
                    Reached { file, scenario, line, input, actor, saved: session.saved() }
                });
            }
        }
    }

    /// Whether this transition was taken.
    #[must_use]
    pub fn has_taken(&self, at: &str) -> bool {
        self.taken.contains(at)
    }

    /// Whether a transition with this name refused an event.
    #[must_use]
    pub fn has_refused(&self, name: &str) -> bool {
        self.refused_by.contains(name)
    }

    /// The number of transitions taken.
    #[must_use]
    pub fn transitions(&self) -> usize {
        self.taken.len()
    }

    /// The refusal codes that were seen.
    pub fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.codes.iter().copied()
    }

    /// Whether this interlock refused an event.
    #[must_use]
    pub fn has_interlocked(&self, id: &str) -> bool {
        self.interlocks.contains(id)
    }

    /// How a state was first reached.
    #[must_use]
    pub fn reached(&self, machine: &str, path: &str) -> Option<&Reached> {
        self.reached.get(&(machine.to_owned(), path.to_owned()))
    }
}

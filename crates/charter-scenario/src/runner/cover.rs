//! What scenarios have exercised: transitions taken, refusals seen, states reached and how.

use std::collections::{BTreeSet, HashMap};

use charter_kernel::{Code, Explanation, Snapshot};

/// What scenarios have exercised.
#[derive(Debug, Default)]
pub struct Cover {
    /// Addresses of transitions.
    taken: BTreeSet<String>,
    /// ScenarioScope of transitions that refused an event.
    forbade: BTreeSet<String>,
    codes: BTreeSet<&'static str>,
    interlocks: BTreeSet<String>,
    /// Machine and path of a state: how it was reached first.
    reached: HashMap<(String, String), Reached>,
}

/// How a state was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// File of the scenario.
    pub file: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The line of the step after which it was active; 0: the start.
    pub line: usize,
}

impl Cover {
    /// Transitions were taken.
    pub fn take<'t>(&mut self, transitions: impl IntoIterator<Item = &'t str>) {
        for at in transitions {
            if !self.taken.contains(at) {
                self.taken.insert(at.to_owned());
            }
        }
    }

    /// Something was refused, as expected.
    pub fn refuse(&mut self, story: &Explanation) {
        self.codes.insert(story.code.word());
        self.codes.extend(story.candidates.iter().map(|c| c.failed.word()));
        self.interlocks.extend(story.interlock.clone());
        let forbidding = story.candidates.iter();
        let first = forbidding
            .filter(|c| c.failed == Code::Rule && story.code == Code::Rule)
            .map(|c| c.transition.clone())
            .next();
        self.forbade.extend(first);
    }

    /// The run stands like this.
    pub(crate) fn reach(&mut self, snapshot: &Snapshot, how: impl Fn() -> Reached) {
        for actor in snapshot.actors() {
            for path in actor.active() {
                let key = (actor.machine().to_owned(), path.to_owned());
                self.reached.entry(key).or_insert_with(&how);
            }
        }
    }

    /// Was this transition taken?
    #[must_use]
    pub fn has_taken(&self, at: &str) -> bool {
        self.taken.contains(at)
    }

    /// Did a transition of this name refuse an event?
    #[must_use]
    pub fn has_forbidden(&self, name: &str) -> bool {
        self.forbade.contains(name)
    }

    /// How many transitions were taken.
    #[must_use]
    pub fn transitions(&self) -> usize {
        self.taken.len()
    }

    /// The refusal codes seen.
    pub fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.codes.iter().copied()
    }

    /// Did this interlock refuse something?
    #[must_use]
    pub fn has_locked(&self, id: &str) -> bool {
        self.interlocks.contains(id)
    }

    /// How a state was reached first.
    #[must_use]
    pub fn reached(&self, machine: &str, path: &str) -> Option<&Reached> {
        self.reached.get(&(machine.to_owned(), path.to_owned()))
    }
}

//! What the timers of one tick have done.

use std::collections::BTreeSet;

use charter_kernel::{Explanation, Note, NoteKind, Verdict};

use super::StepOutcome;

/// The combined result of the timers that one tick fired.
pub(super) struct Tick<'m> {
    pub(super) fired: u64,
    pub(super) accepted: bool,
    /// All names of transitions in it begin with the id of an actor.
    pub(super) total: StepOutcome<'m>,
    pub(super) actors: BTreeSet<String>,
    pub(super) explanations: Vec<(String, Explanation)>,
}

impl<'m> Tick<'m> {
    pub(super) fn new() -> Tick<'m> {
        Tick {
            fired: 0,
            accepted: false,
            total: StepOutcome::new(0, String::new()),
            actors: BTreeSet::new(),
            explanations: Vec::new(),
        }
    }

    pub(super) fn outcome(self, seq: u64) -> StepOutcome<'m> {
        let mut outcome = self.total;
        outcome.seq = seq;
        outcome.fired = Some(self.fired);
        outcome.to = match (self.actors.first(), self.actors.len()) {
            (Some(actor), 1) => actor.clone(),
            _ => "root".into(),
        };
        let prefix = format!("{}:", outcome.to);
        for name in &mut outcome.transitions {
            if let Some(own) = name.strip_prefix(&prefix) {
                *name = own.to_owned();
            }
        }
        let mut explanations = self.explanations.into_iter();
        if self.accepted {
            outcome.verdict = Verdict::Accepted.word();
        } else if let Some((_, explanation)) = explanations.next() {
            outcome.refuse(explanation);
        }
        outcome.timers_refused = explanations.len();
        outcome.notes.extend(explanations.map(|(actor, explanation)| Note {
            actor: actor.into(),
            at: None,
            kind: NoteKind::TimerRefused { message: explanation.message },
        }));
        outcome
    }
}

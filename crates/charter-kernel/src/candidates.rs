//! What a selection knows about the candidates that it has evaluated.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::machine::TransitionId;
use crate::refusal::Code;

/// How far a candidate came before a check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// The sender may not take the transition, whose condition does not hold either.
    Sender,
    /// The condition does not hold.
    Condition,
    /// The condition holds: somebody else might have taken the transition.
    OnlySender,
    /// The approval.
    Approval,
    /// A requirement.
    Requirement,
    /// The quorum.
    Quorum,
}

/// Finds the candidate that came furthest: its code is that of the refusal. Of several, the last
/// code in the order of the codes, so that the order of the transitions does not matter.
#[derive(Default)]
pub(crate) struct Furthest(Option<(Reached, Code)>);

impl Furthest {
    #[inline]
    pub(crate) fn note(&mut self, code: Code, reached: Reached) {
        self.0 = self.0.max(Some((reached, code)));
    }

    /// The code of the refusal.
    pub(crate) fn code(&self) -> Code {
        self.0.map_or(Code::Unhandled, |(_, code)| code)
    }
}

/// The candidates that a selection has evaluated.
pub(crate) struct Known<E> {
    few: SmallVec<[(TransitionId, E); 4]>,
    /// Used instead of `few` from the ninth on.
    many: FxHashMap<TransitionId, E>,
}

impl<E> Default for Known<E> {
    fn default() -> Known<E> {
        Known { few: SmallVec::new(), many: FxHashMap::default() }
    }
}

impl<E: Copy> Known<E> {
    const FEW: usize = 8;

    #[inline]
    pub(crate) fn get(&self, t: TransitionId) -> Option<E> {
        match self.many.is_empty() {
            true => self.few.iter().find(|(known, _)| *known == t).map(|(_, e)| *e),
            false => self.many.get(&t).copied(),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, t: TransitionId, evaluation: E) {
        if self.many.is_empty() && self.few.len() < Self::FEW {
            self.few.push((t, evaluation));
            return;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(t, evaluation);
    }
}

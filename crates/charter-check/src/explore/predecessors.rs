//! The predecessor tree: records how each explored state was first reached, which gives a shortest
//! trace.

use std::sync::Arc;

use super::moves::{Move, MoveKind};
use crate::Trace;

/// For each explored state, its predecessor and the move between them.
#[derive(Default)]
pub(crate) enum PredecessorTree {
    /// One move for each state.
    Moves(Vec<(u32, Arc<Move>)>),
    /// Moves by label, the compact form of table mode.
    Labels { parents: Vec<u32>, labels: Vec<u16>, moves: Vec<Arc<Move>>, start: Arc<Move> },
    #[default]
    Empty,
}

/// No predecessor: the state is reached by starting the run.
pub(crate) const NO_PARENT: u32 = u32::MAX;

impl PredecessorTree {
    fn step(&self, node: u32) -> Option<(u32, &Arc<Move>)> {
        match self {
            PredecessorTree::Moves(list) => list.get(node as usize).map(|(parent, how)| (*parent, how)),
            PredecessorTree::Labels { parents, labels, moves, start } => {
                let parent = *parents.get(node as usize)?;
                let how =
                    if parent == NO_PARENT { start } else { moves.get(usize::from(*labels.get(node as usize)?))? };
                Some((parent, how))
            }
            PredecessorTree::Empty => None,
        }
    }

    /// Returns the moves that lead to a state, beginning with the start of the run.
    pub(crate) fn moves(&self, node: u32) -> Vec<Arc<Move>> {
        let mut moves = Vec::new();
        let mut at = node;
        while let Some((parent, how)) = self.step(at) {
            moves.push(how.clone());
            if parent == NO_PARENT {
                break;
            }
            at = parent;
        }
        moves.reverse();
        moves
    }

    pub(crate) fn trace(&self, node: u32) -> Trace {
        trace_of(&self.moves(node))
    }

    /// Returns the moves that lead to a state, and one more.
    pub(crate) fn moves_with(&self, node: u32, how: &Arc<Move>) -> Vec<Arc<Move>> {
        let mut moves = if matches!(how.kind, MoveKind::Start { .. }) { Vec::new() } else { self.moves(node) };
        moves.push(how.clone());
        moves
    }

    /// Returns the trace to a state, extended by one move.
    pub(crate) fn trace_with(&self, node: u32, how: &Arc<Move>) -> Trace {
        trace_of(&self.moves_with(node, how))
    }
}

pub(crate) fn trace_of(moves: &[Arc<Move>]) -> Trace {
    let mut trace = Trace::default();
    for how in moves {
        match &how.kind {
            MoveKind::Start { input, .. } => (trace.input, trace.start) = (input.clone(), how.line()),
            _ => trace.events.push(how.line()),
        }
    }
    trace
}

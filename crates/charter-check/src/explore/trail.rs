//! How each situation was reached first: enough to tell the shortest way to it.

use std::sync::Arc;

use super::moves::{Move, What};
use crate::Path;

/// By situation: the one before it, and what happened in between. The first is reached by a start.
#[derive(Default)]
pub(crate) enum Trail {
    /// Every move its own.
    Moves(Vec<(u32, Arc<Move>)>),
    /// Moves by label: what the table mode keeps, small.
    Labels { parents: Vec<u32>, labels: Vec<u16>, moves: Vec<Arc<Move>>, start: Arc<Move> },
    #[default]
    Nothing,
}

/// No situation before: a start.
pub(crate) const NO_PARENT: u32 = u32::MAX;

impl Trail {
    fn step(&self, node: u32) -> Option<(u32, &Arc<Move>)> {
        match self {
            Trail::Moves(list) => list.get(node as usize).map(|(parent, how)| (*parent, how)),
            Trail::Labels { parents, labels, moves, start } => {
                let parent = *parents.get(node as usize)?;
                let how =
                    if parent == NO_PARENT { start } else { moves.get(usize::from(*labels.get(node as usize)?))? };
                Some((parent, how))
            }
            Trail::Nothing => None,
        }
    }

    /// The moves that lead to a situation, the start first.
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

    pub(crate) fn path(&self, node: u32) -> Path {
        path_of(&self.moves(node))
    }

    /// The way to a situation and one move more.
    pub(crate) fn path_and(&self, node: u32, how: &Arc<Move>) -> Path {
        let mut moves = if matches!(how.what, What::Start { .. }) { Vec::new() } else { self.moves(node) };
        moves.push(how.clone());
        path_of(&moves)
    }
}

pub(crate) fn path_of(moves: &[Arc<Move>]) -> Path {
    let mut path = Path::default();
    for how in moves {
        match &how.what {
            What::Start { input } => path.input = input.clone(),
            _ => path.events.push(how.line()),
        }
    }
    path
}

//! What is known about a schema only when all of it is compiled: that it ends, and which results
//! are worth keeping.

use std::ops::ControlFlow;

use super::super::error::SchemaError;
use super::super::node::{Edge, Id, Node};

/// Upper limit of the schemas that apply to the same place, one because of the other.
const MAX_HERE: usize = 128;

pub(super) fn finish(nodes: &mut [Node]) -> Result<(), SchemaError> {
    let edges: Vec<Vec<(Id, Edge)>> = nodes.iter_mut().map(Node::children).collect();
    check_progress(nodes, &edges)?;
    shorten(nodes);
    let edges: Vec<Vec<(Id, Edge)>> = nodes.iter_mut().map(Node::children).collect();
    keep(nodes, &edges);
    Ok(())
}

/// A schema must not apply itself to the same place again, for example by `{"$ref": "#"}`.
fn check_progress(nodes: &[Node], edges: &[Vec<(Id, Edge)>]) -> Result<(), SchemaError> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        /// With the length of the longest chain from here.
        Done(usize),
    }
    let path = |id: Id| nodes.get(id as usize).map_or("", |node| &node.path);
    let mut states = vec![State::New; nodes.len()];
    for start in 0..nodes.len() {
        let start = Id::try_from(start).unwrap_or(Id::MAX);
        if states.get(start as usize) != Some(&State::New) {
            continue;
        }
        let mut stack = vec![(start, 0usize, 0usize)];
        while let Some((id, at, longest)) = stack.pop() {
            let Some(state) = states.get_mut(id as usize) else {
                continue;
            };
            *state = State::Open;
            let Some((child, edge)) = edges.get(id as usize).and_then(|edges| edges.get(at)).copied() else {
                let chain = longest.saturating_add(1);
                if chain > MAX_HERE {
                    let message = format!(
                        "more than {MAX_HERE} schemas apply to the same value, one inside or behind the other; \
                         combine some of them"
                    );
                    return Err(SchemaError::invalid(path(id), message));
                }
                *state = State::Done(chain);
                continue;
            };
            let next = at.saturating_add(1);
            match states.get(child as usize) {
                _ if edge == Edge::Below => stack.push((id, next, longest)),
                Some(State::Done(chain)) => stack.push((id, next, longest.max(*chain))),
                Some(State::Open) => {
                    let message = "the schema refers to itself for the same value, so checking it would never end; \
                                   refer to it from `properties` or `items` instead";
                    return Err(SchemaError::invalid(path(id), message.to_owned()));
                }
                _ => {
                    stack.push((id, at, longest));
                    stack.push((child, 0, 0));
                }
            }
        }
    }
    Ok(())
}

/// Lets the users of a mere reference use its target.
fn shorten(nodes: &mut [Node]) {
    let aliases: Vec<Option<Id>> = nodes.iter().map(Node::alias).collect();
    let resolve = |mut id: Id| {
        // Chains end, and they are short.
        while let Some(target) = aliases.get(id as usize).copied().flatten() {
            id = target;
        }
        id
    };
    for node in nodes {
        let _ = node.edges(|id, _| {
            *id = resolve(*id);
            ControlFlow::Continue(())
        });
    }
}

/// Decides which results are kept. A schema that only one other schema applies is evaluated at most
/// once at a place if that one is; of all others with subschemas, the result is kept. Looking for
/// what is evaluated visits the schemas of a place again.
fn keep(nodes: &mut [Node], edges: &[Vec<(Id, Edge)>]) {
    let mut users = vec![0u32; nodes.len()];
    let mut reached = vec![false; nodes.len()];
    let mut stack = vec![0 as Id];
    while let Some(id) = stack.pop() {
        let Some(users) = users.get_mut(id as usize) else {
            continue;
        };
        *users = users.saturating_add(1);
        if reached.get_mut(id as usize).is_some_and(|reached| !std::mem::replace(reached, true)) {
            stack.extend(edges.get(id as usize).into_iter().flatten().map(|(id, _)| *id));
        }
    }
    // The schemas of a place in which some schema looks for what is evaluated.
    let mut visited = vec![false; nodes.len()];
    let mut again = vec![false; nodes.len()];
    let ids = (0..).zip(nodes.iter()).filter(|(_, node)| node.has_unevaluated());
    let mut stack: Vec<Id> = ids.map(|(id, _)| id).collect();
    while let Some(id) = stack.pop() {
        if visited.get_mut(id as usize).is_some_and(|visited| !std::mem::replace(visited, true)) {
            for (child, edge) in edges.get(id as usize).into_iter().flatten() {
                if let Some(again) = again.get_mut(*child as usize) {
                    *again = true;
                }
                if *edge == Edge::Here {
                    stack.push(*child);
                }
            }
        }
    }
    for (((node, edges), users), again) in nodes.iter_mut().zip(edges).zip(users).zip(again) {
        node.memo = !edges.is_empty() && (users > 1 || again);
    }
}

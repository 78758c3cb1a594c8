//! Properties (03): `never`, `never ... unless-before`, `always` are judged in each situation, `eventually` on the graph of all of them.

mod liveness;

use std::sync::Arc;

use charter_kernel::definition::PropertyRule;
use charter_kernel::{Machine, Query, Snapshot};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::explore::Move;
use crate::model::Model;
use liveness::Graph;

/// What became of a property.
pub(crate) struct PropertyVerdict {
    /// Its place among `properties`.
    pub(crate) property: usize,
    pub(crate) outcome: PropertyOutcome,
}

pub(crate) enum PropertyOutcome {
    /// In all situations that were explored.
    Holds { complete: bool, situations: usize },
    /// It does not hold in this situation.
    Violated { node: u32, event: Option<String> },
    /// It never holds on this way; the last moves (so many) repeat for ever, or nothing more happens.
    Avoided { moves: Vec<Arc<Move>>, repeats: usize },
    /// It cannot be evaluated in this situation.
    Fails { node: u32, message: String },
}

/// A property under watch.
struct Rule {
    query: Query,
    kind: RuleKind,
    found: Option<u32>,
    failed: Option<(u32, String)>,
    avoided: Option<(Vec<Arc<Move>>, usize)>,
}

enum RuleKind {
    /// Not, unless the event with this bit has happened.
    Never(Option<(String, u64)>),
    Always,
    /// Bit in [`Graph`].
    Eventually(u64),
}

/// Watches an exploration.
pub(crate) struct PropertyMonitor {
    rules: Vec<(usize, Rule)>,
    graph: Option<Graph>,
    /// What a run waits for that will come: bit by name.
    obligations: FxHashMap<String, u128>,
}

impl PropertyMonitor {
    pub(crate) fn new(model: &Model<'_>) -> PropertyMonitor {
        let mut rules = Vec::new();
        let (mut before, mut later) = (0u32, 0u32);
        let bit = |n: &mut u32| {
            let bit = 1u64.checked_shl(*n);
            *n = n.saturating_add(1);
            bit
        };
        for (i, property) in model.def.properties.iter().enumerate() {
            let (cel, kind) = match &property.rule {
                PropertyRule::Never { when, unless_before } => {
                    let event = unless_before.clone().and_then(|e| Some((e, bit(&mut before)?)));
                    (when, RuleKind::Never(event))
                }
                PropertyRule::Always(cel) => (cel, RuleKind::Always),
                PropertyRule::Eventually(cel) => match bit(&mut later) {
                    Some(bit) => (cel, RuleKind::Eventually(bit)),
                    None => continue,
                },
            };
            // What does not compile is no machine.
            let Ok(query) = model.machine.query(cel) else {
                continue;
            };
            rules.push((i, Rule { query, kind, found: None, failed: None, avoided: None }));
        }
        let graph = (later > 0).then(Graph::default);
        PropertyMonitor { rules, graph, obligations: FxHashMap::default() }
    }

    pub(crate) fn wants_edges(&self) -> bool {
        self.graph.is_some()
    }

    /// The events of `unless-before` that have happened, this one included.
    pub(crate) fn noticed(&self, seen: u64, how: Option<&Move>) -> u64 {
        let Some(kind) = how.and_then(Move::event_type) else {
            return seen;
        };
        let bits = self.rules.iter().filter_map(|(_, r)| match &r.kind {
            RuleKind::Never(Some((event, bit))) if *event == kind => Some(*bit),
            _ => None,
        });
        bits.fold(seen, |seen, bit| seen | bit)
    }

    /// A new situation.
    pub(crate) fn situation(&mut self, machine: &Machine, node: u32, snapshot: &Snapshot, now: i64, seen: u64) {
        let mut holding = 0;
        for (_, rule) in &mut self.rules {
            let answer = match machine.ask(snapshot, "root", &rule.query, now) {
                Ok(Json::Bool(answer)) => Ok(answer),
                Ok(other) => Err(format!("it gives {other}, which is no bool")),
                Err(e) => Err(e.to_string()),
            };
            match (&rule.kind, answer) {
                (RuleKind::Eventually(bit), Ok(true)) => holding |= bit,
                (RuleKind::Eventually(_), _) => {}
                (RuleKind::Never(Some((_, bit))), _) if seen & bit != 0 => {}
                (RuleKind::Never(_), Ok(true)) | (RuleKind::Always, Ok(false)) => {
                    rule.found.get_or_insert(node);
                }
                (RuleKind::Never(_), Ok(false)) | (RuleKind::Always, Ok(true)) => {}
                (RuleKind::Never(_) | RuleKind::Always, Err(message)) => {
                    rule.failed.get_or_insert((node, message));
                }
            }
        }
        if let Some(graph) = &mut self.graph {
            graph.node(node, holding);
        }
    }

    /// A situation that a run may stay in for ever.
    pub(crate) fn rests(&mut self, node: u32) {
        if let Some(graph) = &mut self.graph {
            graph.rests(node);
        }
    }

    /// A situation that a run begins in.
    pub(crate) fn start(&mut self, node: u32, how: &Arc<Move>) {
        if let Some(graph) = &mut self.graph {
            graph.start(node, how.clone());
        }
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32, how: &Arc<Move>, continuing: u128) {
        if let Some(graph) = &mut self.graph {
            graph.edge(from, to, how.clone(), continuing);
        }
    }

    /// What the run waited for before and still waits for: the very same timers and answers.
    pub(crate) fn continuing(&mut self, before: &Snapshot, after: &Snapshot) -> u128 {
        let mut bits = 0;
        for timer in before.timers() {
            if after.timers().iter().any(|t| t.id == timer.id && t.generation == timer.generation) {
                bits |= self.bit(format!("timer {}", timer.id));
            }
        }
        for (actor, invocation) in before.invocations().filter(|(_, i)| !i.is_machine()) {
            let same = |(a, i): (&charter_kernel::Actor, &charter_kernel::Invocation)| {
                a.id() == actor.id() && i.id == invocation.id && i.effect == invocation.effect
            };
            if after.invocations().any(same) {
                bits |= self.bit(format!("answer {} {}", actor.id(), invocation.id));
            }
        }
        bits
    }

    fn bit(&mut self, name: String) -> u128 {
        let next = u32::try_from(self.obligations.len()).unwrap_or(u32::MAX);
        // More than 128 are not told apart: they count as coming at some time.
        *self.obligations.entry(name).or_insert_with(|| 1u128.checked_shl(next).unwrap_or(0))
    }

    /// After the exploration: what never comes.
    pub(crate) fn finish(&mut self) {
        let Some(graph) = &self.graph else { return };
        for (_, rule) in &mut self.rules {
            if let RuleKind::Eventually(bit) = rule.kind {
                rule.avoided = graph.avoids(bit);
            }
        }
    }

    pub(crate) fn verdicts(&self, complete: bool, situations: usize) -> Vec<PropertyVerdict> {
        let verdict = |(property, rule): &(usize, Rule)| {
            let event = match &rule.kind {
                RuleKind::Never(Some((event, _))) => Some(event.clone()),
                _ => None,
            };
            let outcome = match (rule.found, &rule.avoided, &rule.failed) {
                (Some(node), _, _) => PropertyOutcome::Violated { node, event },
                (_, Some((moves, repeats)), _) => PropertyOutcome::Avoided { moves: moves.clone(), repeats: *repeats },
                (_, _, Some((node, message))) => PropertyOutcome::Fails { node: *node, message: message.clone() },
                _ => PropertyOutcome::Holds { complete, situations },
            };
            PropertyVerdict { property: *property, outcome }
        };
        self.rules.iter().map(verdict).collect()
    }
}

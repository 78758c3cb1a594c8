//! Properties: `never`, `never ... unless-before` and `always` are evaluated in each explored
//! state, `eventually` on the graph of all explored states.

mod liveness;

use std::sync::Arc;

use charter_kernel::definition::PropertyRule;
use charter_kernel::{Machine, Query, Snapshot};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::explore::{FUEL_PER_QUESTION, Move};
use crate::model::Model;
use liveness::{Graph, Lasso};

/// The result for one property.
pub(crate) struct PropertyVerdict {
    /// Index in the `properties` of the charter.
    pub(crate) property: usize,
    pub(crate) outcome: PropertyOutcome,
}

pub(crate) enum PropertyOutcome {
    /// The property holds in all explored states.
    Holds,
    /// A safety property does not hold in this state.
    Violated { node: u32, event: Option<String> },
    /// An `eventually` property never holds on this path.
    NeverReached { lasso: Lasso },
    /// The property cannot be evaluated in this state.
    Error { node: u32, message: String },
}

/// The state of a property during an exploration.
struct Rule {
    query: Query,
    kind: RuleKind,
    /// The first state that violates it.
    violated: Option<u32>,
    /// The first state in which it cannot be evaluated.
    failed: Option<(u32, String)>,
    /// A path on which an `eventually` property never holds.
    lasso: Option<Lasso>,
}

enum RuleKind {
    /// With the event of `unless-before`, if there is one, and its bit.
    Never(Option<(String, u64)>),
    Always,
    /// With its bit in [`Graph`].
    Eventually(u64),
}

/// Evaluates the properties during an exploration.
pub(crate) struct PropertyMonitor {
    rules: Vec<(usize, Rule)>,
    graph: Option<Graph>,
    /// The bit of each timer and answer that a run waits for.
    waits: FxHashMap<String, u128>,
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
            // Every expression of a compiled machine compiles.
            let Ok(query) = model.machine.query(cel) else {
                continue;
            };
            rules.push((i, Rule { query, kind, violated: None, failed: None, lasso: None }));
        }
        let graph = (later > 0).then(Graph::default);
        PropertyMonitor { rules, graph, waits: FxHashMap::default() }
    }

    pub(crate) fn wants_edges(&self) -> bool {
        self.graph.is_some()
    }

    /// The `unless-before` events that have happened, including the event of this move.
    pub(crate) fn seen_after(&self, seen: u64, how: Option<&Move>) -> u64 {
        let Some(kind) = how.and_then(Move::event_type) else {
            return seen;
        };
        let bits = self.rules.iter().filter_map(|(_, r)| match &r.kind {
            RuleKind::Never(Some((event, bit))) if *event == kind => Some(*bit),
            _ => None,
        });
        bits.fold(seen, |seen, bit| seen | bit)
    }

    /// Evaluates the properties in a new state; returns the fuel that it takes.
    pub(crate) fn state(&mut self, machine: &Machine, node: u32, snapshot: &Snapshot, now: i64, seen: u64) -> u64 {
        let (mut holding, mut spent) = (0, 0u64);
        for (_, rule) in &mut self.rules {
            let (answer, fuel) = machine.ask_metered(snapshot, "root", &rule.query, now);
            spent = spent.saturating_add(fuel).saturating_add(FUEL_PER_QUESTION);
            let answer = match answer {
                Ok(Json::Bool(answer)) => Ok(answer),
                Ok(other) => Err(format!("its value is {other}, not a bool")),
                Err(e) => Err(e.to_string()),
            };
            match (&rule.kind, answer) {
                (RuleKind::Eventually(bit), Ok(true)) => holding |= bit,
                (RuleKind::Eventually(_), _) => {}
                (RuleKind::Never(Some((_, bit))), _) if seen & bit != 0 => {}
                (RuleKind::Never(_), Ok(true)) | (RuleKind::Always, Ok(false)) => {
                    rule.violated.get_or_insert(node);
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
        spent
    }

    /// Marks a state in which a run may stay forever.
    pub(crate) fn rests(&mut self, node: u32) {
        if let Some(graph) = &mut self.graph {
            graph.rests(node);
        }
    }

    /// Adds an initial state.
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

    /// The timers and answers that are pending both before and after a move, as bits.
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
        let next = u32::try_from(self.waits.len()).unwrap_or(u32::MAX);
        // Only the first 128 waits have a bit; all others count as ending.
        *self.waits.entry(name).or_insert_with(|| 1u128.checked_shl(next).unwrap_or(0))
    }

    /// Looks for paths on which `eventually` properties never hold. Called after the exploration.
    pub(crate) fn finish(&mut self) {
        let Some(graph) = &self.graph else { return };
        for (_, rule) in &mut self.rules {
            if let RuleKind::Eventually(bit) = rule.kind {
                rule.lasso = graph.path_without(bit);
            }
        }
    }

    pub(crate) fn verdicts(&self) -> Vec<PropertyVerdict> {
        let verdict = |(property, rule): &(usize, Rule)| {
            let event = match &rule.kind {
                RuleKind::Never(Some((event, _))) => Some(event.clone()),
                _ => None,
            };
            let outcome = match (rule.violated, &rule.lasso, &rule.failed) {
                (Some(node), _, _) => PropertyOutcome::Violated { node, event },
                (_, Some(lasso), _) => PropertyOutcome::NeverReached { lasso: lasso.clone() },
                (_, _, Some((node, message))) => PropertyOutcome::Error { node: *node, message: message.clone() },
                _ => PropertyOutcome::Holds,
            };
            PropertyVerdict { property: *property, outcome }
        };
        self.rules.iter().map(verdict).collect()
    }
}

//! Compiles initial states and transitions: their targets, conditions and events.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::scheme::Scheme;
use super::survey::Raised;
use super::{Compiler, MAX_NESTING, is_platform};
use crate::definition::{self, StateKind};
use crate::machine::{Chart, Domain, EventId, Initial, Pattern, Quorum, StateId, StateNode, Transition, TransitionId};
use crate::sender::SenderRule;

impl<'d> Compiler<'d> {
    pub(super) fn initial(
        &mut self,
        scheme: &mut Scheme<'d>,
        node: &StateNode,
        def: &'d definition::State,
        id: StateId,
        at: &str,
    ) -> Option<Initial> {
        let at = format!("{at}/initial");
        let history = node.is_history();
        if !history && node.kind != StateKind::Compound {
            return None;
        }
        let Some(initial) = &def.initial else {
            if history {
                let help = Some("set `target` to the state to enter if the parent has never been exited".to_string());
                self.problem(
                    "history-target",
                    at.trim_end_matches("/initial"),
                    "a history state needs a default target",
                    help,
                );
                return None;
            }
            return Some(Initial { targets: node.children.first().copied().into_iter().collect(), block: Vec::new() });
        };
        let scope = if history { node.parent } else { id };
        let mut targets: SmallVec<[StateId; 1]> = SmallVec::new();
        for (i, target) in initial.target.iter().enumerate() {
            let at = format!("{at}/target/{i}");
            match scheme.resolve(scope, target, true) {
                Some(state) if scheme.inside(state, scope) => targets.push(state),
                Some(_) => {
                    let whose = if history {
                        "a descendant of the parent of the history state"
                    } else {
                        "a descendant of the state"
                    };
                    self.problem(
                        "bad-target",
                        &at,
                        format!("`{target}` is not inside the state"),
                        Some(format!("name {whose}")),
                    );
                }
                None => self.missing(scheme, scope, target, &at, true),
            }
        }
        if targets.is_empty() {
            if initial.target.is_empty() {
                self.problem("missing-target", &at, "missing target", None);
            }
            return None;
        }
        self.together(scheme, &targets, &at);
        let block = self.block(scheme, &initial.actions, &format!("{at}/actions"), &mut Vec::new());
        Some(Initial { targets, block })
    }

    /// Reports history states whose default leads back to them, or passes through too many others:
    /// an entry follows these defaults by recursion.
    pub(super) fn histories(&mut self, scheme: &Scheme<'d>, chart: &Chart) {
        let onward = |id: StateId| {
            let targets = chart.states.get(id as usize).and_then(|s| s.initial.as_ref()).map(|i| i.targets.as_slice());
            targets
                .unwrap_or_default()
                .iter()
                .copied()
                .filter(|t| matches!(scheme.kind(*t), StateKind::Shallow | StateKind::Deep))
        };
        let all = chart.states.iter().zip(0u32..).filter(|(s, _)| s.is_history()).map(|(_, id)| id);
        let mut waiting: Vec<StateId> = all.filter(|id| onward(*id).next().is_some()).collect();
        let mut settled: FxHashSet<StateId> = FxHashSet::default();
        for _ in 0..MAX_NESTING {
            let (done, rest): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|id| onward(*id).all(|t| settled.contains(&t) || onward(t).next().is_none()));
            waiting = rest;
            if done.is_empty() || waiting.is_empty() {
                break;
            }
            settled.extend(done);
        }
        if let Some(flat) = waiting.first().and_then(|id| scheme.get(*id)) {
            let message = format!("the default of history state `{}` leads to no state that can be active", flat.key);
            let help = Some("set its `target` to a state that is not a history state".to_string());
            self.problem("history-target", &flat.at, message, help);
        }
    }

    pub(super) fn transition(
        &mut self,
        scheme: &mut Scheme<'d>,
        chart: &mut Chart,
        source: StateId,
        def: &'d definition::Transition,
        name: &str,
        at: &str,
    ) -> TransitionId {
        let mut targets: SmallVec<[StateId; 1]> = SmallVec::new();
        for (i, target) in def.target.iter().enumerate() {
            let at = format!("{at}/target/{i}");
            match scheme.resolve(source, target, false) {
                Some(0) => self.problem(
                    "bad-target",
                    &at,
                    "the root of a chart cannot be a target",
                    Some("name one of its states".into()),
                ),
                Some(state) => targets.push(state),
                None => self.missing(scheme, source, target, &at, false),
            }
        }
        self.together(scheme, &targets, &format!("{at}/target"));
        let internal = !def.reenter;
        let domain = if targets.is_empty() {
            Domain::Targetless
        } else if targets.iter().any(|t| matches!(scheme.kind(*t), StateKind::Shallow | StateKind::Deep)) {
            Domain::Dynamic
        } else if internal
            && (scheme.kind(source) == StateKind::Compound
                || source == 0
                || (def.parallel_domain && scheme.kind(source) == StateKind::Parallel))
            && targets.iter().all(|t| scheme.inside(*t, source))
        {
            Domain::State(source)
        } else {
            let mut states: SmallVec<[StateId; 4]> = SmallVec::from_slice(&[source]);
            states.extend(targets.iter().copied());
            Domain::State(scheme.lcca(&states, def.parallel_domain))
        };
        let guard = match (&def.guard, &def.when) {
            (None, None) => None,
            (Some(guard), None) => self.guard(guard, &format!("{at}/guard")),
            (None, Some(when)) => self.cel(when, &format!("{at}/when"), &[]).map(crate::machine::Guard::Cel),
            (Some(guard), Some(when)) => {
                let when = self.cel(when, &format!("{at}/when"), &[]).map(crate::machine::Guard::Cel);
                let both: Vec<_> = self.guard(guard, &format!("{at}/guard")).into_iter().chain(when).collect();
                Some(crate::machine::Guard::And(both))
            }
        };
        let by = self.role_set(&def.by, &format!("{at}/by"));
        let approves = def.approves.as_ref().and_then(|cel| self.cel(cel, &format!("{at}/approves"), &[]));
        let not_by = def.not_by.as_ref().and_then(|cel| self.cel(cel, &format!("{at}/not_by"), &[]));
        let sender = SenderRule::new(def, not_by).map(Box::new);
        let requires: Vec<_> = def
            .requires
            .iter()
            .enumerate()
            .filter_map(|(i, r)| self.require(r, &format!("{at}/requires/{i}")))
            .collect();
        let quorum = def.quorum.as_ref().map(|q| {
            if q.count == 0 {
                self.problem(
                    "bad-quorum",
                    &format!("{at}/quorum/count"),
                    "empty quorum",
                    Some("`count` is at least 1".into()),
                );
            }
            Quorum {
                count: q.count,
                of: q
                    .of
                    .as_ref()
                    .map(|r| self.role_set(std::slice::from_ref(r), &format!("{at}/quorum/of")))
                    .unwrap_or_default(),
            }
        });
        // A digest covers the whole event.
        self.whole_events |= def.approves.is_some() || def.quorum.is_some();
        for (key, given) in [("not_by", def.not_by.is_some()), ("agents", def.agents)] {
            if given && def.approves.is_none() && def.quorum.is_none() {
                self.problem(
                    "conflicting-keys",
                    &format!("{at}/{key}"),
                    format!("`{key}` is only allowed with `approves` or `quorum`"),
                    Some("write a condition of other transitions over `by`, as `when`".into()),
                );
            }
        }
        let refuse = def.refuse.as_ref().and_then(|rule| self.rule(rule, &format!("{at}/refuse")));
        if def.refuse.is_some() && (!def.target.is_empty() || !def.actions.is_empty() || def.quorum.is_some()) {
            self.problem(
                "refuse-and-move",
                &format!("{at}/refuse"),
                "a transition that refuses the event goes nowhere and does nothing",
                Some("leave `target`, `actions` and `quorum` out, or write two transitions".into()),
            );
        }
        let block = self.block(scheme, &def.actions, &format!("{at}/actions"), &mut Vec::new());
        let id = u32::try_from(chart.transitions.len()).unwrap_or(u32::MAX);
        let mut t = Transition {
            name: name.into(),
            at: at.into(),
            source,
            targets,
            domain,
            internal,
            parallel_domain: def.parallel_domain,
            guard,
            by,
            approves,
            requires,
            quorum,
            sender,
            refuse,
            block,
            reads_event: false,
        };
        t.reads_event = super::value::reads_event(&t);
        chart.transitions.push(t);
        id
    }

    pub(super) fn descriptor(&mut self, text: &str, at: &str) -> Option<Listen> {
        if text == "*" {
            return Some(Listen::Pattern(Pattern::Any));
        }
        let bad = |c: &mut Self, help: &str| {
            c.problem(
                "bad-event-name",
                at,
                format!("`{}` is not an event descriptor", text.escape_debug()),
                Some(help.into()),
            )
        };
        if let Some(prefix) = text.strip_suffix(".*") {
            if prefix.is_empty() || (prefix.contains('*') && !is_platform(prefix)) {
                bad(self, "a descriptor is a type, `prefix.*`, or `*`");
                return None;
            }
            // A lenient machine lists it among the events that it accepts.
            if !self.def.strict && !is_platform(&format!("{prefix}.")) {
                self.event(prefix);
            }
            return Some(Listen::Pattern(Pattern::Prefix(prefix.into())));
        }
        // A platform event contains the name of a state or an invocation, and an import may handle
        // any event.
        let platform = is_platform(text);
        let blank = self.def.strict && text.contains(char::is_whitespace);
        if text.is_empty() || (!platform && (blank || text.contains(|c: char| c == '*' || c.is_control()))) {
            bad(self, "a descriptor is a type without spaces, `prefix.*`, or `*`");
            return None;
        }
        // A key with blanks is several descriptors. The declaration of such a type is one error.
        let part = |name: &String| name.contains(char::is_whitespace) && name.split_whitespace().any(|w| w == text);
        let declared = self.def.events.contains_key(text) || self.def.events.keys().any(part);
        if self.def.strict
            && !declared
            && !is_platform(text)
            && !self.def.events.is_empty()
            && !self.raised.get_or_insert_with(|| Raised::of(self.def)).contains(text)
        {
            let help = match self.did_you_mean(text, self.def.events.keys().map(String::as_str)) {
                Some(near) => format!("{near} otherwise declare it under `events`"),
                None => "declare it under `events`".to_string(),
            };
            self.problem(
                "undeclared-event",
                at,
                format!("no event `{text}` is declared, and no action raises or sends it"),
                Some(help),
            );
        }
        Some(Listen::Exact(self.event(text)))
    }
}

/// The trigger of a transition.
#[derive(Debug, Clone)]
pub(super) enum Listen {
    Exact(EventId),
    Pattern(Pattern),
}

/// Fills `exact` and `patterns`: for each type named in this state, all matching transitions,
/// including wildcards, in document order.
pub(super) fn tables(node: &mut StateNode, listen: &[(Vec<Listen>, TransitionId)], events: &crate::machine::Events) {
    let mut named: Vec<EventId> = listen
        .iter()
        .flat_map(|(l, _)| l.iter())
        .filter_map(|l| match l {
            Listen::Exact(id) => Some(*id),
            Listen::Pattern(_) => None,
        })
        .collect();
    named.sort_unstable();
    named.dedup();
    let has_patterns = listen.iter().any(|(l, _)| l.iter().any(|l| matches!(l, Listen::Pattern(_))));
    if !has_patterns {
        // The common case takes linear time: a state with thousands of events must not take
        // quadratic time.
        let mut by_event: BTreeMap<EventId, SmallVec<[TransitionId; 2]>> = BTreeMap::new();
        for (descriptors, t) in listen {
            for l in descriptors {
                if let Listen::Exact(id) = l {
                    let list = by_event.entry(*id).or_default();
                    if list.last() != Some(t) {
                        list.push(*t);
                    }
                }
            }
        }
        node.exact = by_event.into_iter().collect();
        return;
    }
    for id in named {
        let name = events.info(id).map_or("", |i| i.name.as_ref());
        let matches = |l: &Listen| match l {
            Listen::Exact(e) => *e == id,
            Listen::Pattern(p) => p.matches(name),
        };
        let list = listen.iter().filter(|(l, _)| l.iter().any(matches)).map(|(_, t)| *t).collect();
        node.exact.push((id, list));
    }
    for (descriptors, t) in listen {
        for l in descriptors {
            if let Listen::Pattern(p) = l {
                node.patterns.push((p.clone(), *t));
            }
        }
    }
}

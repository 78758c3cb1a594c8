//! The algorithm: SCXML 1.0 (W3C REC 2015-09-01), appendix D, for one actor. Read it beside the specification; the names are the same.
//!
//! A macrostep runs until no transition is enabled and the internal queue is empty. Exit all, run all content, enter all: in lock step
//! for all regions.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use crate::definition::StateKind;
use crate::event::{Ev, Origin};
use crate::judge::{Enabled, Judged};
use crate::machine::{Block, Chart, Domain, Initial, NONE, StateId, TransitionId};
use crate::refusal::{Code, Refusal};
use crate::snapshot::{Actor, TimerKind};
use crate::work::{Session, Work};

/// States in document order.
type StateSet = SmallVec<[StateId; 6]>;

/// How a macrostep begins.
pub(crate) enum Begin<'e> {
    /// The actor starts.
    Start,
    /// An event from outside the actor, with the transitions it enables.
    Event(&'e Ev<'e>, Enabled),
}

impl Work<'_> {
    /// Appendix D, `mainEventLoop`, one turn: from an external event to the next time the actor waits for one.
    pub(crate) fn macrostep(&mut self, ai: usize, begin: Begin<'_>) -> Result<(), Refusal> {
        self.macrostep_with(ai, begin, Session::new())
    }

    /// The same, with events on the internal queue already.
    pub(crate) fn macrostep_with(
        &mut self,
        ai: usize,
        begin: Begin<'_>,
        mut session: Session,
    ) -> Result<(), Refusal> {
        // `_event` stays bound through exits, content, entries and the eventless steps that follow.
        let mut current: Option<Ev<'_>> = None;
        match begin {
            Begin::Start => {
                let ev = self.named(
                    "charter.start",
                    Json::clone(&self.actor(ai).identity().input),
                    Origin::Platform,
                );
                self.interpret(ai, &ev, &mut session)?;
                current = Some(ev);
            }
            Begin::Event(ev, enabled) => {
                if !enabled.is_empty() {
                    self.microstep(ai, &enabled, Some(ev), &mut session)?;
                }
                current = Some(ev.clone()).or(current);
            }
        }
        loop {
            while session.running {
                let mut enabled = self.select_eventless(ai, current.as_ref(), &mut session)?;
                if enabled.is_empty() {
                    let Some(ev) = session.internal.pop_front() else {
                        break;
                    };
                    // An internal event counts even if nothing takes it: a failing condition raises an error each
                    // time it is tried, and could go on for ever.
                    self.count_microstep()?;
                    enabled = self.select(ai, &ev, &mut session)?;
                    if enabled.is_empty()
                        && self.m.definition.strict
                        && ev.name().starts_with("error.")
                    {
                        return Err(unhandled_error(&ev));
                    }
                    current = Some(ev);
                }
                if !enabled.is_empty() {
                    self.microstep(ai, &enabled, current.as_ref(), &mut session)?;
                }
            }
            if !session.running || session.to_invoke.is_empty() {
                break;
            }
            let mut states = std::mem::take(&mut session.to_invoke);
            states.sort_unstable();
            for state in states {
                self.start_invocations(ai, state, current.as_ref(), &mut session)?;
            }
            if session.internal.is_empty() {
                break;
            }
        }
        if !session.running {
            self.exit_interpreter(ai, current.as_ref(), &mut session, false)?;
        }
        match session
            .internal
            .iter()
            .find(|ev| self.m.definition.strict && ev.name().starts_with("error."))
        {
            Some(ev) => Err(unhandled_error(ev)),
            None => Ok(()),
        }
    }

    /// Appendix D, `interpret`: bind the data, enter the initial states.
    fn interpret(&mut self, ai: usize, ev: &Ev<'_>, session: &mut Session) -> Result<(), Refusal> {
        let chart = self.chart(ai);
        for (slot, template) in &chart.context {
            // A value passed in by an invocation has bound the variable already (SCXML 6.4).
            if self
                .actor(ai)
                .context
                .values
                .get(*slot as usize)
                .is_some_and(Option::is_some)
            {
                continue;
            }
            match self.eyes(ai, Some(ev), &[]).value(template) {
                Ok(value) => self.bind(ai, *slot, value),
                Err(e) => {
                    let fault = self.fault_event(e.into());
                    session.internal.push_back(fault);
                }
            }
        }
        self.count_microstep()?;
        let mut entry = EntrySet::default();
        let actor = self.actor(ai);
        // The root is entered like a state; its descendants follow by its kind.
        add_descendants(chart, actor, 0, &mut entry);
        self.enter_states(ai, &entry, Some(ev), session)
    }

    /// Appendix D, `microstep`.
    fn microstep(
        &mut self,
        ai: usize,
        enabled: &[TransitionId],
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        self.count_microstep()?;
        let chart = self.chart(ai);
        let domains: SmallVec<[Option<StateId>; 4]> = enabled
            .iter()
            .map(|t| domain(chart, self.actor(ai), *t))
            .collect();
        self.exit_states(ai, &domains, ev, session)?;
        for t in enabled {
            self.take(ai, *t);
            let transition = chart.transition(*t);
            if !transition.requires.is_empty() {
                self.count_uses(ai, transition, ev)?;
            }
            self.run_block(ai, &transition.block, ev, session)?;
        }
        let mut entry = EntrySet::default();
        let actor = self.actor(ai);
        for (t, domain) in enabled.iter().zip(&domains) {
            add_entry_set(chart, actor, *t, *domain, &mut entry);
        }
        self.enter_states(ai, &entry, ev, session)
    }

    /// Appendix D, `exitStates`: history first, for all of them; then exit handlers, innermost first.
    fn exit_states(
        &mut self,
        ai: usize,
        domains: &[Option<StateId>],
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let chart = self.chart(ai);
        let actor = self.actor(ai);
        let mut exits: StateSet = SmallVec::new();
        for state in &actor.configuration {
            if domains.iter().flatten().any(|d| chart.inside(*state, *d)) {
                exits.push(*state);
            }
        }
        if exits.is_empty() {
            return Ok(());
        }
        session.to_invoke.retain(|s| !exits.contains(s));
        self.record_history(ai, &exits);
        for state in exits.iter().rev() {
            self.exit_state(ai, *state, ev, session)?;
            let actor = self.actor_mut(ai);
            actor.configuration.retain(|s| s != state);
            if !actor.votes.is_empty() {
                actor
                    .votes
                    .retain(|v| chart.transition(v.transition).source != *state);
            }
        }
        Ok(())
    }

    fn record_history(&mut self, ai: usize, exits: &[StateId]) {
        let chart = self.chart(ai);
        for state in exits {
            for history in &chart.state(*state).histories {
                let deep = chart.state(*history).kind == StateKind::Deep;
                let actor = self.actor(ai);
                let keep = |s: &&StateId| {
                    if deep {
                        chart.inside(**s, *state) && chart.state(**s).is_atomic()
                    } else {
                        chart.state(**s).parent == *state
                    }
                };
                let stored = actor.configuration.iter().filter(keep).copied().collect();
                let actor = self.actor_mut(ai);
                match actor.history.binary_search_by_key(history, |(h, _)| *h) {
                    Ok(i) => {
                        if let Some(entry) = actor.history.get_mut(i) {
                            entry.1 = stored;
                        }
                    }
                    Err(i) => actor.history.insert(i, (*history, stored)),
                }
            }
        }
    }

    /// Exit handlers of one state, then its invocations and timers.
    fn exit_state(
        &mut self,
        ai: usize,
        state: StateId,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let node = self.chart(ai).state(state);
        for block in &node.exit {
            self.run_block(ai, block, ev, session)?;
        }
        if !node.invokes.is_empty() {
            self.cancel_invocations(ai, Some(state))?;
        }
        if !node.after.is_empty() {
            let actor = self.actor(ai).identity().id.clone();
            self.cancel_timers(|t| {
                t.actor == actor
                    && matches!(t.what, TimerKind::After { state: s, .. } if s == state)
            });
        }
        Ok(())
    }

    /// Appendix D, `enterStates`.
    fn enter_states(
        &mut self,
        ai: usize,
        entry: &EntrySet,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let chart = self.chart(ai);
        for state in &entry.states {
            let node = chart.state(*state);
            let actor = self.actor_mut(ai);
            if let Err(place) = actor.configuration.binary_search(state) {
                actor.configuration.insert(place, *state);
            }
            if !node.invokes.is_empty() {
                session.to_invoke.push(*state);
            }
            if !node.data.is_empty() {
                self.bind_late(ai, *state, ev, session);
            }
            for block in &node.entry {
                self.run_block(ai, block, ev, session)?;
            }
            if entry.defaults.contains(state) {
                self.run_initial(ai, node.initial.as_ref(), ev, session)?;
            }
            if let Some((_, history)) = entry.histories.iter().find(|(parent, _)| parent == state) {
                self.run_initial(ai, chart.state(*history).initial.as_ref(), ev, session)?;
            }
            for (index, after) in node.after.iter().enumerate() {
                self.start_timer(ai, *state, index, after, ev, session);
            }
            if node.kind == StateKind::Final {
                self.enter_final(ai, *state, ev, session);
            }
        }
        Ok(())
    }

    fn run_initial(
        &mut self,
        ai: usize,
        initial: Option<&Initial>,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let empty = Block::new();
        self.run_block(ai, initial.map_or(&empty, |i| &i.block), ev, session)
    }

    fn bind_late(&mut self, ai: usize, state: StateId, ev: Option<&Ev<'_>>, session: &mut Session) {
        let Err(place) = self.actor(ai).bound.binary_search(&state) else {
            return;
        };
        self.actor_mut(ai).bound.insert(place, state);
        for (slot, template) in &self.chart(ai).state(state).data {
            match self.eyes(ai, ev, &[]).value(template) {
                Ok(value) => self.bind(ai, *slot, value),
                Err(e) => {
                    let fault = self.fault_event(e.into());
                    session.internal.push_back(fault);
                }
            }
        }
    }

    pub(crate) fn bind(&mut self, ai: usize, slot: u32, value: Arc<Json>) {
        if let Some(place) = self.actor_mut(ai).context.place(slot) {
            *place = Some(value);
        }
    }

    fn start_timer(
        &mut self,
        ai: usize,
        state: StateId,
        index: usize,
        after: &crate::machine::After,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) {
        let result = self
            .eyes(ai, ev, &[])
            .delay(&after.delay)
            .map_err(Into::into)
            .and_then(|delay| {
                let actor = self.actor(ai).identity().id.clone();
                let id = if actor.as_ref() == "root" {
                    after.timer.clone()
                } else {
                    format!("{actor}:{}", after.timer).into()
                };
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                self.set_timer(id, actor, delay, TimerKind::After { state, index })
            });
        if let Err(fault) = result {
            let fault = self.fault_event(fault);
            session.internal.push_back(fault);
        }
    }

    /// A final state was entered: its parent is done, and so may be what is around it (SCXML 3.7). Where the REC leaves the completion of
    /// an outer parallel by an inner one open, it counts.
    fn enter_final(
        &mut self,
        ai: usize,
        state: StateId,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) {
        let chart = self.chart(ai);
        let node = chart.state(state);
        let mut up = node.parent;
        if up == NONE || (up == 0 && chart.state(0).kind != StateKind::Parallel) {
            session.running = false;
            return;
        }
        if chart.state(up).kind != StateKind::Parallel {
            let data = self.done_data(ai, state, ev, session);
            let done = self.known(
                chart.state(up).done_event,
                json!({"output": data}),
                Origin::Platform,
            );
            session.internal.push_back(done);
            up = chart.state(up).parent;
        }
        while up != NONE
            && chart.state(up).kind == StateKind::Parallel
            && is_in_final_state(chart, self.actor(ai), up)
        {
            if up == 0 {
                session.running = false;
                return;
            }
            let done = self.known(
                chart.state(up).done_event,
                json!({"output": null}),
                Origin::Platform,
            );
            session.internal.push_back(done);
            up = chart.state(up).parent;
        }
    }

    /// What a final state gives. A field that fails to evaluate is left out, and the error comes before the done event (SCXML 5.5, 5.7).
    pub(crate) fn done_data(
        &mut self,
        ai: usize,
        state: StateId,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Json {
        let Some(template) = &self.chart(ai).state(state).output else {
            return Json::Null;
        };
        let mut faults = Vec::new();
        let eyes = self.eyes(ai, ev, &[]);
        let mut compute = |t| {
            eyes.json(t).unwrap_or_else(|e| {
                faults.push(e);
                Json::Null
            })
        };
        let data = match template {
            crate::machine::Template::Object(fields) => {
                let mut map = serde_json::Map::new();
                for (key, t) in fields {
                    match eyes.json(t) {
                        Ok(value) => drop(map.insert(key.to_string(), value)),
                        Err(e) => faults.push(e),
                    }
                }
                // Imports: where no parameter is left there is no data (SCXML 5.5).
                if map.is_empty() && !faults.is_empty() && !self.m.definition.strict {
                    Json::Null
                } else {
                    Json::Object(map)
                }
            }
            other => compute(other),
        };
        for e in faults {
            let fault = self.fault_event(e.into());
            session.internal.push_back(fault);
        }
        data
    }

    /// Appendix D, `selectEventlessTransitions`.
    fn select_eventless(
        &mut self,
        ai: usize,
        current: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<Enabled, Refusal> {
        let chart = self.chart(ai);
        if !chart.has_always {
            return Ok(Enabled::new());
        }
        let mut enabled = Enabled::new();
        let mut judged: SmallVec<[(TransitionId, bool); 4]> = SmallVec::new();
        let configuration = self.actor(ai).configuration.clone();
        for atomic in configuration
            .iter()
            .filter(|s| chart.state(**s).is_atomic())
        {
            let mut state = *atomic;
            'up: while state != NONE {
                for t in &chart.state(state).always {
                    let known = judged.iter().find(|(k, _)| k == t).map(|(_, b)| *b);
                    let holds = match known {
                        Some(known) => known,
                        None => match self.judge(ai, *t, current, None, session) {
                            Judged::Refused => return Err(self.refusal_of(ai, *t, current)),
                            judged => judged == Judged::Enabled,
                        },
                    };
                    if known.is_none() {
                        judged.push((*t, holds));
                    }
                    if holds {
                        if !enabled.contains(t) {
                            enabled.push(*t);
                        }
                        break 'up;
                    }
                }
                state = chart.state(state).parent;
            }
        }
        Ok(remove_conflicting(chart, self.actor(ai), enabled))
    }

    /// Appendix D, `selectTransitions`, for an event of the run itself.
    pub(crate) fn select(
        &mut self,
        ai: usize,
        ev: &Ev<'_>,
        session: &mut Session,
    ) -> Result<Enabled, Refusal> {
        let selection = self.select_judged(ai, ev, session);
        match selection.refused {
            Some(t) => Err(self.refusal_of(ai, t, Some(ev))),
            None => Ok(selection.enabled),
        }
    }

    /// Appendix D, `exitInterpreter`. The configuration is kept, so that one sees where the actor ended.
    pub(crate) fn exit_interpreter(
        &mut self,
        ai: usize,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
        cancelled: bool,
    ) -> Result<(), Refusal> {
        let chart = self.chart(ai);
        let configuration = self.actor(ai).configuration.clone();
        for state in configuration.iter().rev() {
            self.exit_state(ai, *state, ev, session)?;
        }
        self.cancel_invocations(ai, None)?;
        let id = self.actor(ai).identity().id.clone();
        self.cancel_timers(|t| t.actor == id);
        if cancelled {
            return Ok(());
        }
        let top = configuration
            .iter()
            .copied()
            .find(|s| chart.state(*s).kind == StateKind::Final && chart.state(*s).parent == 0);
        let failed = top.is_some_and(|s| chart.state(s).failed);
        let output = match (&chart.output, top) {
            (Some(template), _) => match self.eyes(ai, ev, &[]).json(template) {
                Ok(value) => value,
                Err(e) => {
                    let fault = self.fault_event(e.into());
                    session.internal.push_back(fault);
                    Json::Null
                }
            },
            (None, Some(state)) => self.done_data(ai, state, ev, session),
            (None, None) => Json::Null,
        };
        self.finish_actor(ai, output, failed);
        Ok(())
    }
}

fn unhandled_error(ev: &Ev<'_>) -> Refusal {
    let text = |key: &str| {
        ev.data()
            .get("error")
            .and_then(|e| e.get(key))
            .and_then(Json::as_str)
            .unwrap_or("")
            .to_string()
    };
    let mut refusal = Refusal::with(
        Code::Execution,
        Some(ev.name().to_string()),
        text("message"),
    );
    if let Some(detail) = &mut refusal.detail {
        detail.at = Some(text("at")).filter(|at| !at.is_empty());
    }
    refusal
}

/// What a microstep enters (appendix D, `computeEntrySet`).
#[derive(Default)]
pub(crate) struct EntrySet {
    states: StateSet,
    /// Entered without a target inside: their `initial` content runs.
    defaults: SmallVec<[StateId; 4]>,
    /// Parent and history state whose default content runs.
    histories: SmallVec<[(StateId, StateId); 1]>,
}

impl EntrySet {
    fn insert(&mut self, state: StateId) {
        if let Err(place) = self.states.binary_search(&state) {
            self.states.insert(place, state);
        }
    }
    /// Is the state, or something inside it, in the set?
    fn touches(&self, chart: &Chart, state: StateId) -> bool {
        let from = self.states.partition_point(|s| *s < state);
        self.states
            .get(from)
            .is_some_and(|s| *s <= chart.state(state).last)
    }
}

fn add_entry_set(
    chart: &Chart,
    actor: &Actor,
    t: TransitionId,
    domain: Option<StateId>,
    entry: &mut EntrySet,
) {
    let transition = chart.transition(t);
    let Some(domain) = domain else { return };
    for target in &transition.targets {
        add_descendants(chart, actor, *target, entry);
    }
    for target in effective_targets(chart, actor, &transition.targets) {
        add_ancestors(chart, actor, target, domain, entry);
    }
}

/// Appendix D, `addDescendantStatesToEnter`. Recursion is bounded by the nesting that `compile` allows.
fn add_descendants(chart: &Chart, actor: &Actor, state: StateId, entry: &mut EntrySet) {
    let node = chart.state(state);
    match node.kind {
        StateKind::Shallow | StateKind::Deep => {
            if let Some(stored) = stored(actor, state) {
                for s in stored {
                    add_descendants(chart, actor, *s, entry);
                }
                for s in stored {
                    add_ancestors(chart, actor, *s, node.parent, entry);
                }
            } else if let Some(initial) = &node.initial {
                entry.histories.push((node.parent, state));
                for t in &initial.targets {
                    add_descendants(chart, actor, *t, entry);
                }
                for t in effective_targets(chart, actor, &initial.targets) {
                    add_ancestors(chart, actor, t, node.parent, entry);
                }
            }
        }
        StateKind::Compound => {
            entry.insert(state);
            if let Some(initial) = &node.initial {
                entry.defaults.push(state);
                for t in &initial.targets {
                    add_descendants(chart, actor, *t, entry);
                }
                for t in effective_targets(chart, actor, &initial.targets) {
                    add_ancestors(chart, actor, t, state, entry);
                }
            }
        }
        StateKind::Parallel => {
            entry.insert(state);
            for child in &node.children {
                if !entry.touches(chart, *child) {
                    add_descendants(chart, actor, *child, entry);
                }
            }
        }
        StateKind::Atomic | StateKind::Final => entry.insert(state),
    }
}

/// Appendix D, `addAncestorStatesToEnter`. It ends at what is active, too: the ancestors that a history state adds may not have been left
/// (REC 3.10: as if the stored states were the targets), and an active state is not entered again.
fn add_ancestors(
    chart: &Chart,
    actor: &Actor,
    state: StateId,
    until: StateId,
    entry: &mut EntrySet,
) {
    let mut up = chart.state(state).parent;
    while up != NONE {
        let node = chart.state(up);
        let stays = up == until || actor.is_active(up);
        if !stays {
            entry.insert(up);
        }
        if node.kind == StateKind::Parallel {
            for child in &node.children {
                // Where the parallel state stays, regions that were left start anew.
                let left = !stays || !actor.is_active(*child);
                if left && !entry.touches(chart, *child) {
                    add_descendants(chart, actor, *child, entry);
                }
            }
        }
        if stays {
            break;
        }
        up = node.parent;
    }
}

fn stored(actor: &Actor, history: StateId) -> Option<&[StateId]> {
    let at = actor
        .history
        .binary_search_by_key(&history, |(h, _)| *h)
        .ok()?;
    actor.history.get(at).map(|(_, states)| states.as_slice())
}

/// Appendix D, `getEffectiveTargetStates`: what history targets stand for now.
fn effective_targets(chart: &Chart, actor: &Actor, targets: &[StateId]) -> StateSet {
    let mut out = StateSet::new();
    let mut seen = 0usize;
    let mut stack: SmallVec<[StateId; 4]> = targets.iter().rev().copied().collect();
    while let Some(t) = stack.pop() {
        let node = chart.state(t);
        if !node.is_history() {
            if !out.contains(&t) {
                out.push(t);
            }
        } else if let Some(stored) = stored(actor, t) {
            out.extend(stored.iter().copied());
        } else if let Some(initial) = &node.initial {
            // History states that stand for each other would go round in circles.
            seen = seen.saturating_add(1);
            if seen <= chart.states.len() {
                stack.extend(initial.targets.iter().rev().copied());
            }
        }
    }
    out
}

/// Appendix D, `getTransitionDomain`.
fn domain(chart: &Chart, actor: &Actor, t: TransitionId) -> Option<StateId> {
    let transition = chart.transition(t);
    match transition.domain {
        Domain::Targetless => None,
        Domain::State(state) => Some(state),
        Domain::Dynamic => {
            let targets = effective_targets(chart, actor, &transition.targets);
            if targets.is_empty() {
                return None;
            }
            let source = transition.source;
            let can = |state: StateId| {
                let kind = chart.state(state).kind;
                kind == StateKind::Compound
                    || (transition.parallel_domain && kind == StateKind::Parallel)
            };
            let compound = source == 0 || can(source);
            if transition.internal && compound && targets.iter().all(|t| chart.inside(*t, source)) {
                return Some(source);
            }
            let mut up = chart.state(source).parent;
            while up != NONE && up != 0 {
                if can(up) && targets.iter().all(|t| chart.inside(*t, up)) {
                    return Some(up);
                }
                up = chart.state(up).parent;
            }
            Some(0)
        }
    }
}

/// Appendix D, `removeConflictingTransitions`: exit sets that meet; the inner source wins, else the one selected first.
pub(crate) fn remove_conflicting(chart: &Chart, actor: &Actor, enabled: Enabled) -> Enabled {
    if enabled.len() < 2 {
        return enabled;
    }
    let meets = |a: StateId, b: StateId| {
        actor
            .configuration
            .iter()
            .any(|s| chart.inside(*s, a) && chart.inside(*s, b))
    };
    let mut kept: SmallVec<[(TransitionId, Option<StateId>); 4]> = SmallVec::new();
    for t in enabled {
        let (mine, source) = (domain(chart, actor, t), chart.transition(t).source);
        let mut evicted: SmallVec<[TransitionId; 4]> = SmallVec::new();
        let mut dropped = false;
        for (other, theirs) in &kept {
            if let (Some(a), Some(b)) = (mine, theirs)
                && meets(a, *b)
            {
                if chart.inside(source, chart.transition(*other).source) {
                    evicted.push(*other);
                } else {
                    dropped = true;
                    break;
                }
            }
        }
        if !dropped {
            kept.retain(|(k, _)| !evicted.contains(k));
            kept.push((t, mine));
        }
    }
    kept.into_iter().map(|(t, _)| t).collect()
}

/// Appendix D, `isInFinalState`.
fn is_in_final_state(chart: &Chart, actor: &Actor, state: StateId) -> bool {
    let node = chart.state(state);
    match node.kind {
        StateKind::Compound => node
            .children
            .iter()
            .any(|c| chart.state(*c).kind == StateKind::Final && actor.is_active(*c)),
        StateKind::Parallel => node
            .children
            .iter()
            .all(|c| is_in_final_state(chart, actor, *c)),
        StateKind::Final => actor.is_active(state),
        _ => false,
    }
}

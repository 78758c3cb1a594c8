//! Exiting and entering states: `exitStates` and `enterStates` of the algorithm.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use super::entry::{EntrySet, StateSet, is_in_final_state, moved};
use crate::budget::Work;
use crate::definition::StateKind;
use crate::event::{Ev, Origin};
use crate::fault::Fault;
use crate::machine::{Block, Initial, NONE, StateId, Template};
use crate::refusal::Refusal;
use crate::snapshot::TimerKind;
use crate::transaction::{Session, StepTransaction};

impl StepTransaction<'_> {
    /// Appendix D, `exitStates`: records history for all exited states, then runs exit actions,
    /// innermost state first.
    pub(super) fn exit_states(
        &mut self,
        actor_ix: usize,
        domains: &[Option<StateId>],
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let chart = self.chart(actor_ix);
        let actor = self.actor(actor_ix);
        // Domains are nested or disjoint, so one pass over both in document order finds the states
        // that are inside of one.
        let mut domains: SmallVec<[StateId; 4]> = domains.iter().flatten().copied().collect();
        domains.sort_unstable();
        let mut domains = domains.into_iter().peekable();
        let mut end = None;
        let mut exits: StateSet = SmallVec::new();
        for state in &actor.configuration {
            while let Some(domain) = domains.next_if(|domain| domain < state) {
                end = end.max(Some(chart.state(domain).last));
            }
            if Some(*state) <= end {
                exits.push(*state);
            }
        }
        if exits.is_empty() {
            return Ok(());
        }
        self.budget.spend_count(exits.len(), Work::Transitions);
        session.to_invoke.retain(|s| exits.binary_search(s).is_err());
        self.record_history(actor_ix, &exits);
        for state in exits.iter().rev() {
            self.exit_state(actor_ix, *state, ev, session)?;
            self.budget.check()?;
            let budget = self.budget;
            let actor = self.actor_mut(actor_ix);
            if let Ok(place) = actor.configuration.binary_search(state) {
                budget.scan(moved(actor.configuration.len(), place));
                actor.configuration.remove(place);
            }
            if !actor.votes.is_empty() {
                budget.scan(actor.votes.len());
                actor.votes.list().retain(|v| chart.transition(v.transition).source != *state);
            }
        }
        Ok(())
    }

    fn record_history(&mut self, actor_ix: usize, exits: &[StateId]) {
        let chart = self.chart(actor_ix);
        for state in exits {
            for history in &chart.state(*state).histories {
                let deep = chart.state(*history).kind == StateKind::Deep;
                let actor = self.actor(actor_ix);
                // The states inside of it follow each other.
                let first = actor.configuration.partition_point(|s| s <= state);
                let end = actor.configuration.partition_point(|s| *s <= chart.state(*state).last);
                let inside = actor.configuration.get(first..end).unwrap_or_default();
                self.budget.scan(inside.len());
                if self.budget.is_over() {
                    return;
                }
                let keep = |s: &&StateId| match deep {
                    true => chart.state(**s).is_atomic(),
                    false => chart.state(**s).parent == *state,
                };
                let stored: SmallVec<[StateId; 4]> = inside.iter().filter(keep).copied().collect();
                let names = actor.identity().shape.longest.saturating_add(3);
                self.budget.build(names.saturating_mul((stored.len() as u64).saturating_add(1)), Work::Run);
                let list = self.actor_mut(actor_ix).history.list();
                match list.binary_search_by_key(history, |(h, _)| *h) {
                    Ok(i) => {
                        if let Some(entry) = list.get_mut(i) {
                            entry.1 = stored;
                        }
                    }
                    Err(i) => list.insert(i, (*history, stored)),
                }
            }
        }
    }

    /// Runs the exit actions of one state, then cancels its invocations and timers.
    pub(super) fn exit_state(
        &mut self,
        actor_ix: usize,
        state: StateId,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let node = self.chart(actor_ix).state(state);
        if !node.invokes.is_empty() || !node.histories.is_empty() {
            self.count_change();
        }
        for block in &node.exit {
            self.run_block(actor_ix, block, ev, session)?;
        }
        if !node.invokes.is_empty() {
            self.cancel_invocations(actor_ix, Some(state))?;
        }
        if !node.after.is_empty() {
            let actor = self.actor(actor_ix).identity().id.clone();
            self.cancel_timers(|t| {
                t.actor == actor && matches!(t.what, TimerKind::After { state: s, .. } if s == state)
            });
        }
        Ok(())
    }

    /// Appendix D, `enterStates`.
    pub(super) fn enter_states(
        &mut self,
        actor_ix: usize,
        mut entry: EntrySet,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let chart = self.chart(actor_ix);
        entry.histories.sort_by_key(|(parent, _)| *parent);
        self.budget.spend_count(entry.states.len(), Work::Transitions);
        self.budget.check()?;
        for state in &entry.states {
            let node = chart.state(*state);
            let budget = self.budget;
            budget.check()?;
            let actor = self.actor_mut(actor_ix);
            if let Err(place) = actor.configuration.binary_search(state) {
                budget.scan(moved(actor.configuration.len(), place));
                actor.configuration.insert(place, *state);
            }
            if !node.invokes.is_empty() {
                session.to_invoke.push(*state);
            }
            if !node.data.is_empty() {
                self.bind_late(actor_ix, *state, ev, session);
            }
            for block in &node.entry {
                self.run_block(actor_ix, block, ev, session)?;
            }
            if entry.defaults.binary_search(state).is_ok() {
                self.run_initial(actor_ix, node.initial.as_ref(), ev, session)?;
            }
            let first = entry.histories.partition_point(|(parent, _)| parent < state);
            if let Some((_, history)) = entry.histories.get(first).filter(|(parent, _)| parent == state) {
                self.run_initial(actor_ix, chart.state(*history).initial.as_ref(), ev, session)?;
            }
            for (index, after) in node.after.iter().enumerate() {
                self.start_timer(actor_ix, *state, index, after, ev, session);
            }
            if node.kind == StateKind::Final {
                self.enter_final(actor_ix, *state, ev, session);
            }
        }
        Ok(())
    }

    fn run_initial(
        &mut self,
        actor_ix: usize,
        initial: Option<&Initial>,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let empty = Block::new();
        self.run_block(actor_ix, initial.map_or(&empty, |i| &i.block), ev, session)
    }

    fn bind_late(&mut self, actor_ix: usize, state: StateId, ev: Option<&Ev<'_>>, session: &mut Session) {
        let Err(place) = self.actor(actor_ix).bound.binary_search(&state) else {
            return;
        };
        self.actor_mut(actor_ix).bound.list().insert(place, state);
        for (slot, template) in &self.chart(actor_ix).state(state).data {
            match self.initial(actor_ix, *slot, template, ev) {
                Ok(()) => {}
                Err(fault) => {
                    self.raise_fault(actor_ix, fault, session);
                }
            }
        }
    }

    /// Binds a variable to its first value.
    pub(super) fn initial(
        &mut self,
        actor_ix: usize,
        slot: u32,
        template: &Template,
        ev: Option<&Ev<'_>>,
    ) -> Result<(), Fault> {
        let value = self.context(actor_ix, ev, &[]).value(template)?;
        self.fits_place(actor_ix, slot, &[], &value)?;
        self.bind(actor_ix, slot, value);
        Ok(())
    }

    pub(crate) fn bind(&mut self, actor_ix: usize, slot: u32, value: Arc<Json>) {
        if let Some(place) = self.actor_mut(actor_ix).context.place(slot) {
            *place = Some(value);
        }
    }

    fn start_timer(
        &mut self,
        actor_ix: usize,
        state: StateId,
        index: usize,
        after: &crate::machine::After,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) {
        let result = self.context(actor_ix, ev, &[]).delay(&after.delay).map_err(Into::into).and_then(|delay| {
            let actor = self.actor(actor_ix).identity().id.clone();
            let id =
                if actor.as_ref() == "root" { after.timer.clone() } else { format!("{actor}:{}", after.timer).into() };
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            self.set_timer(id, actor, delay, TimerKind::After { state, index })
        });
        if let Err(fault) = result {
            self.raise_fault(actor_ix, fault, session);
        }
    }

    /// Handles entry into a final state: its parent is done, and possibly further ancestors (SCXML
    /// 3.7). The specification does not say whether a completed parallel state completes an
    /// enclosing parallel state; here it does.
    fn enter_final(&mut self, actor_ix: usize, state: StateId, ev: Option<&Ev<'_>>, session: &mut Session) {
        let chart = self.chart(actor_ix);
        let node = chart.state(state);
        let mut up = node.parent;
        if up == NONE || (up == 0 && chart.state(0).kind != StateKind::Parallel) {
            session.running = false;
            return;
        }
        if chart.state(up).kind != StateKind::Parallel {
            let data = self.done_data(actor_ix, state, ev, session);
            let done = self.known(chart.state(up).done_event, json!({"output": data}), Origin::Platform);
            session.internal.push_back(done);
            up = chart.state(up).parent;
        }
        while up != NONE
            && chart.state(up).kind == StateKind::Parallel
            && is_in_final_state(chart, self.actor(actor_ix), up, self.budget)
        {
            if up == 0 {
                session.running = false;
                return;
            }
            let done = self.known(chart.state(up).done_event, json!({"output": null}), Origin::Platform);
            session.internal.push_back(done);
            up = chart.state(up).parent;
        }
    }

    /// Computes the output of a final state. A field that cannot be evaluated is left out, and its
    /// error event precedes the done event (SCXML 5.5, 5.7).
    pub(crate) fn done_data(
        &mut self,
        actor_ix: usize,
        state: StateId,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Json {
        let Some(template) = &self.chart(actor_ix).state(state).output else {
            return Json::Null;
        };
        let mut faults = Vec::new();
        let ctx = self.context(actor_ix, ev, &[]);
        let mut compute = |t| {
            ctx.json(t).unwrap_or_else(|e| {
                faults.push(e);
                Json::Null
            })
        };
        let data = match template {
            crate::machine::Template::Object(fields) => {
                let mut map = serde_json::Map::new();
                for (key, t) in fields {
                    match ctx.json(t) {
                        Ok(value) => drop(map.insert(key.to_string(), value)),
                        Err(e) => faults.push(e),
                    }
                }
                // In imports, there is no data if no parameter is left (SCXML 5.5).
                if map.is_empty() && !faults.is_empty() && !self.m.definition.strict {
                    Json::Null
                } else {
                    Json::Object(map)
                }
            }
            other => compute(other),
        };
        for e in faults {
            self.raise_fault(actor_ix, e.into(), session);
        }
        data
    }
}

//! The algorithm of SCXML 1.0 (W3C REC 2015-09-01), appendix D, for one actor. Names follow the
//! specification.
//!
//! A macrostep runs until no transition is enabled and the internal queue is empty. A microstep
//! exits states, runs content and enters states, each for all regions together.

mod entry;
mod states;

use serde_json::Value as Json;
use smallvec::SmallVec;

pub(crate) use entry::remove_conflicting;

use crate::candidates::Known;
use crate::definition::StateKind;
use crate::event::{Ev, Origin};
use crate::explain::short;
use crate::machine::{NONE, StateId, TransitionId};
use crate::refusal::{Cause, Code, Refusal};
use crate::selection::{Enabled, Evaluation};
use crate::transaction::{Session, StepTransaction};
use entry::{EntrySet, add_descendants, add_entry_set, domain};

/// How a macrostep begins.
pub(crate) enum Begin<'e> {
    /// The actor starts.
    Start,
    /// An event from outside the actor, with the transitions it enables.
    Event(&'e Ev<'e>, Enabled),
}

impl StepTransaction<'_> {
    /// Appendix D, one iteration of `mainEventLoop`: handles an external event until the actor
    /// waits for the next one.
    pub(crate) fn macrostep(&mut self, actor_ix: usize, begin: Begin<'_>) -> Result<(), Refusal> {
        self.macrostep_with(actor_ix, begin, Session::new())
    }

    /// Like [`Self::macrostep`], but starts with the events in the internal queue of `session`.
    pub(crate) fn macrostep_with(
        &mut self,
        actor_ix: usize,
        begin: Begin<'_>,
        mut session: Session,
    ) -> Result<(), Refusal> {
        // `_event` stays bound through exits, content, entries and the eventless steps that follow.
        let mut current: Option<Ev<'_>> = None;
        match begin {
            Begin::Start => {
                let ev =
                    self.named("charter.start", Json::clone(&self.actor(actor_ix).identity().input), Origin::Platform);
                self.interpret(actor_ix, &ev, &mut session)?;
                current = Some(ev);
            }
            Begin::Event(ev, enabled) => {
                if !enabled.is_empty() {
                    self.microstep(actor_ix, &enabled, Some(ev), &mut session)?;
                }
                current = Some(ev.clone()).or(current);
            }
        }
        let settles = self.chart(actor_ix).settles;
        loop {
            // Whether the last eventless transitions changed nothing, in a chart that settles.
            let mut settled = false;
            while session.running {
                let mut enabled = match std::mem::take(&mut settled) {
                    true => Enabled::new(),
                    false => self.select_eventless(actor_ix, current.as_ref(), &mut session)?,
                };
                let before = (settles && !enabled.is_empty())
                    .then(|| (self.actor(actor_ix).configuration.clone(), self.changes));
                if enabled.is_empty() {
                    let Some(ev) = session.internal.pop_front() else {
                        break;
                    };
                    // Count an internal event even if no transition takes it: a guard that cannot
                    // be evaluated raises an error event each time it is tried, which could
                    // otherwise continue forever.
                    self.count_microstep()?;
                    enabled = self.select(actor_ix, &ev, &mut session)?;
                    if enabled.is_empty() && self.m.definition.strict && ev.name().starts_with("error.") {
                        return Err(unhandled_error(&ev));
                    }
                    current = Some(ev);
                }
                if !enabled.is_empty() {
                    self.microstep(actor_ix, &enabled, current.as_ref(), &mut session)?;
                }
                settled = before.is_some_and(|(configuration, changes)| {
                    changes == self.changes && configuration == self.actor(actor_ix).configuration
                });
            }
            if !session.running || session.to_invoke.is_empty() {
                break;
            }
            let mut states = std::mem::take(&mut session.to_invoke);
            states.sort_unstable();
            for state in states {
                self.start_invocations(actor_ix, state, current.as_ref(), &mut session)?;
            }
            if session.internal.is_empty() {
                break;
            }
        }
        if !session.running {
            self.exit_interpreter(actor_ix, current.as_ref(), &mut session, false)?;
        }
        match session.internal.iter().find(|ev| self.m.definition.strict && ev.name().starts_with("error.")) {
            Some(ev) => Err(unhandled_error(ev)),
            None => Ok(()),
        }
    }

    /// Appendix D, `interpret`: binds the data and enters the initial states.
    fn interpret(&mut self, actor_ix: usize, ev: &Ev<'_>, session: &mut Session) -> Result<(), Refusal> {
        let chart = self.chart(actor_ix);
        for (slot, template) in &chart.context {
            // The invocation may already have bound the variable to a value that it passed in
            // (SCXML 6.4).
            if self.actor(actor_ix).context.values.get(*slot as usize).is_some_and(Option::is_some) {
                continue;
            }
            match self.initial(actor_ix, *slot, template, Some(ev)) {
                Ok(()) => {}
                Err(fault) => {
                    self.raise_fault(actor_ix, fault, session);
                }
            }
        }
        self.count_microstep()?;
        let mut entry = EntrySet::default();
        let actor = self.actor(actor_ix);
        // The root is entered like any state; its kind determines which descendants are entered.
        add_descendants(chart, actor, 0, &mut entry);
        entry.charge(self.budget)?;
        self.enter_states(actor_ix, entry, Some(ev), session)
    }

    /// Appendix D, `microstep`.
    fn microstep(
        &mut self,
        actor_ix: usize,
        enabled: &[TransitionId],
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        self.count_microstep()?;
        if let Some(log) = self.budget.taken_log() {
            self.note_reasons(actor_ix, enabled, ev, log);
        }
        let chart = self.chart(actor_ix);
        let domains: SmallVec<[Option<StateId>; 4]> =
            enabled.iter().map(|t| domain(chart, self.actor(actor_ix), *t)).collect();
        self.exit_states(actor_ix, &domains, ev, session)?;
        for t in enabled {
            self.take(actor_ix, *t);
            let transition = chart.transition(*t);
            if !transition.requires.is_empty() {
                self.count_uses(actor_ix, transition, ev)?;
            }
            self.run_block(actor_ix, &transition.block, ev, session)?;
        }
        let mut entry = EntrySet::default();
        let actor = self.actor(actor_ix);
        for (t, domain) in enabled.iter().zip(&domains) {
            add_entry_set(chart, actor, *t, *domain, &mut entry);
            entry.charge(self.budget)?;
        }
        self.enter_states(actor_ix, entry, ev, session)
    }

    /// Appendix D, `selectEventlessTransitions`.
    fn select_eventless(
        &mut self,
        actor_ix: usize,
        current: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<Enabled, Refusal> {
        let chart = self.chart(actor_ix);
        if !chart.has_always {
            return Ok(Enabled::new());
        }
        let mut enabled = Enabled::new();
        let mut evaluated = Known::default();
        let configuration = self.actor(actor_ix).configuration.clone();
        self.budget.scan(configuration.len());
        let mut climbed = 0usize;
        for atomic in configuration.iter().filter(|s| chart.state(**s).is_atomic()) {
            climbed = self.budget.scan_some(climbed);
            self.budget.check()?;
            let mut state = *atomic;
            'up: while state != NONE {
                climbed = climbed.saturating_add(2);
                for t in &chart.state(state).always {
                    let known = evaluated.get(*t);
                    let holds = match known {
                        Some(known) => known,
                        None => match self.evaluate(actor_ix, *t, current, None, session) {
                            Evaluation::Refused => return Err(self.refusal_of(actor_ix, *t, current)),
                            evaluation => evaluation == Evaluation::Enabled,
                        },
                    };
                    if known.is_none() {
                        evaluated.insert(*t, holds);
                    }
                    if holds {
                        if known.is_none() {
                            enabled.push(*t);
                        }
                        break 'up;
                    }
                }
                state = chart.state(state).parent;
            }
        }
        Ok(remove_conflicting(chart, self.actor(actor_ix), enabled, self.budget))
    }

    /// Appendix D, `selectTransitions`, for an event of the run itself.
    pub(crate) fn select(&mut self, actor_ix: usize, ev: &Ev<'_>, session: &mut Session) -> Result<Enabled, Refusal> {
        let selection = self.select_transitions(actor_ix, ev, session);
        match selection.refused {
            Some(t) => Err(self.refusal_of(actor_ix, t, Some(ev))),
            None => Ok(selection.enabled),
        }
    }

    /// Appendix D, `exitInterpreter`. The configuration is kept, to show where the actor ended.
    pub(crate) fn exit_interpreter(
        &mut self,
        actor_ix: usize,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
        cancelled: bool,
    ) -> Result<(), Refusal> {
        let chart = self.chart(actor_ix);
        let configuration = self.actor(actor_ix).configuration.clone();
        for state in configuration.iter().rev() {
            self.exit_state(actor_ix, *state, ev, session)?;
        }
        self.cancel_invocations(actor_ix, None)?;
        let id = self.actor(actor_ix).identity().id.clone();
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
            (Some(template), _) => match self.context(actor_ix, ev, &[]).json(template) {
                Ok(value) => value,
                Err(e) => {
                    self.raise_fault(actor_ix, e.into(), session);
                    Json::Null
                }
            },
            (None, Some(state)) => self.done_data(actor_ix, state, ev, session),
            (None, None) => Json::Null,
        };
        self.finish_actor(actor_ix, output, failed);
        Ok(())
    }
}

/// Whether an object has few members with short names, as the errors of the kernel do.
fn is_small(members: &serde_json::Map<String, Json>) -> bool {
    members.len() <= 16 && members.keys().all(|name| name.len() <= 64)
}

fn unhandled_error(ev: &Ev<'_>) -> Refusal {
    // An `error.*` event that the charter raises may have any data.
    let error = ev.data().get("error").unwrap_or(ev.data()).clone();
    // Its members are cut, not the whole, so that what failed and why stay apart.
    let error = match error {
        Json::Object(members) if is_small(&members) => {
            Json::Object(members.into_iter().map(|(name, value)| (name, short(value))).collect())
        }
        other => short(other),
    };
    Refusal::because(Code::Execution, Cause::Unhandled { event: ev.name().to_string(), error })
}

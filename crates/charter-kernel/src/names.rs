//! How records name the parts of a step: transitions by name, effects and timers as JSON.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use crate::envelope::Event;
use crate::machine::Machine;
use crate::snapshot::Snapshot;
use crate::step::{Effect, EffectKind, Step, TimerChange};

impl Machine {
    /// Returns the names of the transitions that a step took, in order. A transition of an actor
    /// other than `to` is prefixed with the actor's id (`plan-1:PENDING/on/SELECT/0`).
    pub fn transition_names<'a>(&'a self, step: &'a Step, to: &str) -> impl Iterator<Item = Cow<'a, str>> {
        step.taken.iter().map(move |t| {
            let name = &self.chart(t.chart).transition(t.transition).name;
            if t.actor() == to { Cow::Borrowed(name.as_ref()) } else { Cow::Owned(format!("{}:{name}", t.actor())) }
        })
    }

    /// Returns the addresses (in the core form) of the transitions that a step took, in order. For
    /// coverage.
    pub fn taken<'m>(&'m self, step: &Step) -> impl Iterator<Item = &'m str> {
        step.taken.iter().map(|t| self.chart(t.chart).transition(t.transition).at.as_ref())
    }

    /// Returns the approvals among the transitions that a step took: actor, name of the transition,
    /// and the expression for the approved value.
    pub fn approvals<'a>(&'a self, step: &'a Step) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        step.taken.iter().filter_map(|t| {
            let transition = self.chart(t.chart).transition(t.transition);
            Some((t.actor(), transition.name.as_ref(), transition.approves.as_ref()?.source()))
        })
    }

    /// All transitions of the charter: machine, name, address in the core form. For coverage.
    pub fn transitions(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.charts
            .iter()
            .flat_map(|c| c.transitions.iter().map(move |t| (c.shape.machine.as_ref(), t.name.as_ref(), t.at.as_ref())))
    }

    /// All states of the charter: machine, path. For coverage and diagrams.
    pub fn states(&self) -> impl Iterator<Item = (&str, &str)> {
        self.charts
            .iter()
            .flat_map(|c| c.shape.paths.iter().skip(1).map(move |p| (c.shape.machine.as_ref(), p.as_ref())))
    }
}

impl Event {
    /// The event type as a record stores it.
    #[must_use]
    pub fn type_name<'a>(&'a self, snapshot: Option<&'a Snapshot>) -> Cow<'a, str> {
        match self {
            Event::Start { .. } => "charter.start".into(),
            Event::External { r#type, .. } => r#type.into(),
            Event::Done { invocation, .. } => format!("done.invoke.{invocation}").into(),
            Event::Failed { invocation, .. } => format!("error.invoke.{invocation}").into(),
            Event::Attempt { .. } => "charter.attempt".into(),
            Event::Timer { timer, generation } => {
                let pending = snapshot
                    .and_then(|s| s.timers.iter().find(|t| t.id.as_ref() == timer && t.generation == *generation));
                match pending.map(|t| &t.what) {
                    Some(crate::snapshot::TimerKind::Send { kind, .. }) => kind.as_ref().into(),
                    Some(crate::snapshot::TimerKind::Timeout { invocation, .. }) => {
                        format!("error.invoke.{invocation}").into()
                    }
                    Some(crate::snapshot::TimerKind::Due { .. }) => "charter.overdue".into(),
                    // `STATE/after/KEY` becomes `after.KEY.STATE`.
                    Some(crate::snapshot::TimerKind::After { .. }) | None => {
                        let own = timer.rsplit_once(':').map_or(timer.as_str(), |(_, t)| t);
                        own.split_once("/after/")
                            .map_or_else(|| timer.into(), |(state, key)| format!("after.{key}.{state}").into())
                    }
                }
            }
        }
    }
}

impl Effect {
    /// Returns the JSON of the effect as a record stores it.
    #[must_use]
    pub fn json(&self, run: &str) -> Json {
        let mut out = match &self.kind {
            EffectKind::Invoke { invocation, src, input, .. } => {
                json!({"kind": "invoke", "invocation": invocation.as_ref(), "src": src.as_ref(), "input": **input})
            }
            EffectKind::Cancel { invocation, effect } => {
                json!({"kind": "cancel", "invocation": invocation.as_ref(), "effect": effect.text(run)})
            }
            EffectKind::Emit { r#type, data } => {
                json!({"kind": "emit", "type": r#type.as_ref(), "data": data})
            }
            EffectKind::Log { label: Some(label), value } => json!({"kind": "log", "label": label, "value": value}),
            EffectKind::Log { label: None, value } => json!({"kind": "log", "value": value}),
        };
        if let Json::Object(map) = &mut out {
            map.insert("id".into(), Json::String(self.id.text(run)));
            if self.actor.as_ref() != "root" {
                map.insert("actor".into(), Json::String(self.actor.to_string()));
            }
        }
        out
    }
}

impl TimerChange {
    /// Returns the JSON of the change as a record stores it; times are in milliseconds since 1970.
    #[must_use]
    pub fn json(&self) -> Json {
        match self {
            TimerChange::Set(t) => {
                json!({"set": t.id.as_ref(), "generation": t.generation, "due": t.due})
            }
            TimerChange::Cancel { id, generation } => {
                json!({"cancel": id.as_ref(), "generation": generation})
            }
        }
    }
}

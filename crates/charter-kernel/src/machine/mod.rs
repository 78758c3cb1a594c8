//! The compiled machine: a definition as tables of small integers.
//!
//! States of a chart are numbered in document order (pre-order), so document order is `<`, exit
//! order is `>`, and the descendants of a state are the numbers after it up to [`StateNode::last`].
//! The root of a chart is state 0.

mod chart;
mod content;

use std::sync::Arc;

use charter_expr::{Fuel, FunctionId, Numbers, Program};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

pub(crate) use chart::{
    After, Chart, Domain, Initial, Invoke, Pattern, Quorum, StateId, StateNode, Transition, TransitionId,
};
pub(crate) use content::{
    Action, Assign, Block, Delay, Guard, Require, Segment, Send, Src, Template, TypeName, reads_event,
};

use crate::definition::{Definition, FinalRule};
use crate::digest::Digest;
use crate::problem::Problem;
use crate::schema::Schema;

/// Id of an event type in the machine.
pub(crate) type EventId = u32;

/// Stands for no state, no event, or an event type that the definition does not mention.
pub(crate) const NONE: u32 = u32::MAX;

/// Stands for the missing service of an invoked machine.
pub(crate) const NO_SERVICE: u32 = NONE;

/// A compiled charter. Immutable; share it in an `Arc`.
#[derive(Debug)]
pub struct Machine {
    pub(crate) definition: Arc<Definition>,
    pub(crate) digest: Digest,
    pub(crate) events: Events,
    pub(crate) roles: Vec<Box<str>>,
    pub(crate) ledger: Arc<[Box<str>]>,
    /// The fields of events that expressions read; `None` if whole events are needed.
    pub(crate) event_reads: Option<Vec<Vec<Box<str>>>>,
    /// Rules that refusals name, with their messages.
    pub(crate) rules: Vec<(Arc<str>, Template)>,
    /// The root has index 0; `machines` follow in document order.
    pub(crate) charts: Vec<Chart>,
    pub(crate) services: Vec<Service>,
    pub(crate) interlocks: Vec<Interlock>,
    pub(crate) functions: Functions,
    pub(crate) only_algorithm: bool,
}

impl Machine {
    /// Returns the same machine without the fast path, for tests that compare the two.
    #[doc(hidden)]
    #[must_use]
    pub fn only_algorithm(mut self) -> Machine {
        self.only_algorithm = true;
        self
    }

    /// Checks and compiles a definition.
    ///
    /// # Errors
    /// Returns the problems of the definition (at most 100), each with its address.
    pub fn compile(definition: Definition) -> Result<Machine, Vec<Problem>> {
        crate::compile::compile(Arc::new(definition))
    }

    /// The definition that the machine was compiled from.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The paths into event data that the charter reads; `None` if it needs the whole data.
    ///
    /// [`Machine::step_checked`] gives the same result for an event reduced to these paths, which
    /// helps hosts that read events with many fields at a high rate.
    #[must_use]
    pub fn event_reads(&self) -> Option<&[Vec<Box<str>>]> {
        self.event_reads.as_deref()
    }

    /// Whether this event is declared and its data matches its schema, for at most a quarter of the
    /// fuel of an event. If not, [`Machine::step`] says why.
    #[must_use]
    pub fn surely_fits(&self, event: &str, data: impl crate::schema::View) -> bool {
        let info = self.events.info(self.events.id(event));
        info.filter(|i| i.declared).is_some_and(|i| {
            i.schema
                .as_ref()
                .is_none_or(|s| s.fits(data, &mut Fuel::new(self.definition.limits.fuel / 4)).unwrap_or(false))
        })
    }

    /// The data of an event that is sent without data, however it is sent: `{}`, or null if the
    /// event's schema accepts null and not `{}`.
    #[must_use]
    pub fn absent_data(&self, event: &str) -> Json {
        let schema = self.events.info(self.events.id(event)).and_then(|i| i.schema.as_ref());
        let empty = Json::Object(serde_json::Map::new());
        match schema {
            Some(schema) if !schema.accepts(&empty) && schema.accepts(&Json::Null) => Json::Null,
            _ => empty,
        }
    }

    /// The digest of the definition; every snapshot and record contains it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Host functions of the expression language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    /// `in("state.path")`.
    pub(crate) is_in: FunctionId,
    /// `In("id")`: the same, in SCXML's spelling.
    pub(crate) is_in_scxml: FunctionId,
    /// `digest(x)`.
    pub(crate) digest: FunctionId,
    /// `fail("why")`, in lenient machines: an expression that an importer could not translate fails
    /// when it is evaluated (SCXML 5.9).
    pub(crate) fail: Option<FunctionId>,
}

/// Every event type that the definition mentions.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) ids: FxHashMap<Arc<str>, EventId>,
    pub(crate) list: Vec<EventInfo>,
}

impl Events {
    pub(crate) fn id(&self, name: &str) -> EventId {
        self.ids.get(name).copied().unwrap_or(NONE)
    }

    pub(crate) fn info(&self, id: EventId) -> Option<&EventInfo> {
        self.list.get(id as usize)
    }

    /// The types of the numbers in the data of an event.
    pub(crate) fn numbers(&self, id: EventId) -> Option<&Arc<Numbers>> {
        self.info(id)?.schema.as_ref()?.numbers()
    }
}

#[derive(Debug)]
pub(crate) struct EventInfo {
    pub(crate) name: Arc<str>,
    /// Whether the type is declared under `events`.
    pub(crate) declared: bool,
    pub(crate) by: RoleSet,
    pub(crate) schema: Option<Schema>,
    pub(crate) while_paused: bool,
    /// The key of `unique`.
    pub(crate) unique: Option<Program>,
}

/// A set of roles, as bits. As a requirement, the empty set admits any sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RoleSet(pub(crate) u128);

impl RoleSet {
    pub(crate) const SYSTEM: RoleSet = RoleSet(1);

    pub(crate) const OPERATOR: RoleSet = RoleSet(2);

    /// Whether a principal with the roles `held` satisfies this requirement.
    pub(crate) fn admits(self, held: RoleSet) -> bool {
        self.0 == 0 || self.0 & held.0 != 0
    }
}

// As in [`Chart`], these indices are always in range: `compile` assigns them.
#[allow(clippy::indexing_slicing)]
impl Machine {
    #[inline]
    pub(crate) fn chart(&self, id: u32) -> &Chart {
        &self.charts[id as usize]
    }

    pub(crate) fn ledger_name(&self, id: u32) -> &str {
        self.ledger.get(id as usize).map_or("", AsRef::as_ref)
    }

    pub(crate) fn service(&self, id: u32) -> &Service {
        &self.services[id as usize]
    }
}

/// An entry of `actors`, compiled.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
    /// The types of the numbers in the event with its output.
    pub(crate) answer: Option<Arc<Numbers>>,
    pub(crate) timeout: Option<Delay>,
}

#[derive(Debug)]
pub(crate) struct Interlock {
    pub(crate) id: Box<str>,
    pub(crate) rule: Rule,
}

#[derive(Debug)]
pub(crate) enum Rule {
    Table {
        /// Id of the actor that is looked up.
        given: Box<str>,
        chart: u32,
        /// State of `given` -> allowed states of `chart`.
        allow: Vec<(StateId, Vec<StateId>)>,
        r#final: FinalRule,
    },
    Assert(Program),
}

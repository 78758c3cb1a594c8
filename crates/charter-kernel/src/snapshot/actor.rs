//! One actor of a snapshot: its identity, active states, variables and invocations.

use std::sync::Arc;

use charter_expr::{EvalError, Fuel, Numbers, Object, Str, Value};
use serde_json::Value as Json;
use smallvec::SmallVec;

use super::{Status, ThinVec};
use crate::digest::Digest;
use crate::envelope::EffectId;
use crate::machine::{StateId, TransitionId};

/// The names of a chart, shared by its actors.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Index of the chart.
    pub(crate) chart: u32,
    /// Name of the machine (`root` for the run's own chart).
    pub(crate) machine: Box<str>,
    /// Paths of the states, by index.
    pub(crate) paths: Vec<Arc<str>>,
    /// The length of the longest path.
    pub(crate) longest: u64,
    /// Whether each state is atomic (or final), by index.
    pub(crate) atomic: Vec<bool>,
    /// Context variables, by slot.
    pub(crate) slots: Vec<Box<str>>,
    /// Whether a variable without a value reads as null (SCXML) instead of being absent.
    pub(crate) lenient: bool,
    /// The types of the numbers in each variable, by slot; empty if no variable has any.
    pub(crate) numbers: Vec<Option<Numbers>>,
    /// The types of the numbers in the input.
    pub(crate) input: Option<Arc<Numbers>>,
    /// Slots, ordered by the names of their variables.
    pub(crate) sorted: Vec<u32>,
}

impl Shape {
    /// The types of the numbers in a variable.
    pub(crate) fn numbers(&self, slot: u32) -> Option<&Numbers> {
        self.numbers.get(slot as usize)?.as_ref()
    }

    pub(crate) fn slot(&self, name: &str) -> Option<u32> {
        if self.slots.len() <= 8 {
            return self.slots.iter().position(|s| s.as_ref() == name).and_then(|i| u32::try_from(i).ok());
        }
        let at =
            self.sorted.binary_search_by(|s| self.slots.get(*s as usize).map_or("", AsRef::as_ref).cmp(name)).ok()?;
        self.sorted.get(at).copied()
    }
}

/// The immutable part of an actor, shared so that a step does not copy it.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) id: Arc<str>,
    pub(crate) parent: Option<Arc<str>>,
    /// Whether its parent invoked it; otherwise it was spawned.
    pub(crate) invocation: bool,
    pub(crate) input: Arc<Json>,
    pub(crate) shape: Arc<Shape>,
}

impl PartialEq for Identity {
    fn eq(&self, o: &Identity) -> bool {
        // Shapes are compared by chart index, because snapshots are compared within one machine.
        self.shape.chart == o.shape.chart
            && self.id == o.id
            && self.parent == o.parent
            && self.invocation == o.invocation
            && self.input == o.input
    }
}

/// A machine inside a run: the root, or one that was spawned or invoked.
#[derive(Debug, Clone, PartialEq)]
pub struct Actor {
    pub(crate) status: Status,
    /// All active states, ancestors included, in document order.
    pub(crate) configuration: SmallVec<[StateId; 6]>,
    pub(crate) history: ThinVec<(StateId, SmallVec<[StateId; 4]>)>,
    pub(crate) context: Context,
    pub(crate) output: Option<Arc<Json>>,
    /// Its active services (invoked machines are actors themselves).
    pub(crate) invocations: SmallVec<[Arc<Invocation>; 1]>,
    pub(crate) votes: ThinVec<Vote>,
    /// States whose late-bound data has been bound.
    pub(crate) bound: ThinVec<StateId>,
}

impl Actor {
    pub(crate) fn identity(&self) -> &Identity {
        &self.context.identity
    }

    /// Its id; `root` for the run's own chart.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.identity().id
    }

    /// The name of its machine; `root` for the run's own chart.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.identity().shape.machine
    }

    /// The actor that spawned or invoked it.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.identity().parent.as_deref()
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// Paths of the active atomic states, in document order.
    pub fn state(&self) -> impl Iterator<Item = &str> {
        let shape = &self.identity().shape;
        self.configuration
            .iter()
            .filter(|s| shape.atomic.get(**s as usize) == Some(&true))
            .filter_map(|s| shape.paths.get(*s as usize).map(AsRef::as_ref))
    }

    /// Paths of all active states, in document order; the chart itself is left out.
    pub fn active(&self) -> impl Iterator<Item = &str> {
        let shape = &self.identity().shape;
        self.configuration.iter().filter(|s| **s != 0).filter_map(|s| shape.paths.get(*s as usize).map(AsRef::as_ref))
    }

    /// Returns its context as JSON.
    #[must_use]
    pub fn context(&self) -> Json {
        self.context.json()
    }

    /// One context variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Json> {
        self.context.slot(name)
    }

    /// Its context variables that have a value, in document order.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Json)> {
        let named = self.identity().shape.slots.iter().zip(self.context.values.iter());
        named.filter_map(|(name, value)| value.as_deref().map(|v| (name.as_ref(), v)))
    }

    /// Its input.
    #[must_use]
    pub fn input(&self) -> &Json {
        &self.identity().input
    }

    /// Its input as a value, in which numbers have the types that its schema declares.
    #[must_use]
    pub fn input_value(&self) -> Value<'_> {
        let identity = self.identity();
        Value::typed(&identity.input, identity.shape.input.as_deref())
    }

    /// Its output, once it is done.
    #[must_use]
    pub fn output(&self) -> Option<&Json> {
        self.output.as_deref()
    }

    /// Its active services.
    pub fn invocations(&self) -> impl Iterator<Item = &Invocation> {
        self.invocations.iter().map(AsRef::as_ref)
    }

    pub(crate) fn is_active(&self, state: StateId) -> bool {
        self.configuration.binary_search(&state).is_ok()
    }

    pub(crate) fn chart(&self) -> u32 {
        self.identity().shape.chart
    }
}

impl Object for Actor {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "machine" => Some(Value::from(self.machine())),
            "state" => Some(Value::list(self.state().map(Value::from).collect())),
            "status" => Some(Value::from(self.status.word())),
            "context" => Some(Value::object(&self.context)),
            _ => None,
        }
    }
    fn find(&self, key: &str, fuel: &mut Fuel) -> Result<Option<Value<'_>>, EvalError> {
        if key == "state" {
            // A list of all active states is built.
            fuel.spend_elements(self.configuration.len())?;
        }
        Ok(self.get(key))
    }
    fn keys(&self) -> Vec<Str<'_>> {
        vec!["context".into(), "machine".into(), "state".into(), "status".into()]
    }
    fn len(&self) -> usize {
        4
    }
}

/// Context variables, one slot each. A variable may be absent (SCXML: declared but unbound).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Context {
    pub(crate) identity: Arc<Identity>,
    /// Copied by the first step that assigns.
    pub(crate) values: Arc<Vec<Option<Arc<Json>>>>,
}

impl Context {
    /// Returns a mutable reference to the value of a slot.
    pub(crate) fn place(&mut self, slot: u32) -> Option<&mut Option<Arc<Json>>> {
        Arc::make_mut(&mut self.values).get_mut(slot as usize)
    }

    pub(crate) fn slot(&self, name: &str) -> Option<&Json> {
        self.values.get(self.identity.shape.slot(name)? as usize)?.as_deref()
    }

    pub(crate) fn json(&self) -> Json {
        let mut map = serde_json::Map::new();
        for (name, value) in self.identity.shape.slots.iter().zip(self.values.iter()) {
            if let Some(value) = value {
                map.insert(name.to_string(), Json::clone(value));
            }
        }
        Json::Object(map)
    }
}

impl Object for Context {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        let shape = &self.identity.shape;
        let slot = shape.slot(key)?;
        match self.values.get(slot as usize) {
            Some(Some(value)) => Some(Value::typed(value, shape.numbers(slot))),
            _ => shape.lenient.then_some(Value::Null),
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let named = |s: &u32| {
            self.values.get(*s as usize)?.as_ref()?;
            self.identity.shape.slots.get(*s as usize).map(|n| Str::from(n.as_ref()))
        };
        self.identity.shape.sorted.iter().filter_map(named).collect()
    }
    fn len(&self) -> usize {
        self.values.iter().filter(|v| v.is_some()).count()
    }
}

/// An invocation of a service of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Its id, which answers refer to.
    pub id: Arc<str>,
    /// The entry of `actors`.
    pub src: Arc<str>,
    /// The effect that requested it.
    pub effect: EffectId,
    pub(crate) service: u32,
    /// The state it belongs to; `None` for a spawned service.
    pub(crate) state: Option<StateId>,
    /// The input it was given.
    pub input: Arc<Json>,
}

impl Invocation {
    /// Whether it is a machine, that is, an actor of the run instead of a service of the host.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.service == crate::machine::NO_SERVICE
    }
}

/// The votes for a transition with a quorum since its source was entered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vote {
    pub(crate) transition: TransitionId,
    pub(crate) digest: Digest,
    pub(crate) by: Vec<Box<str>>,
}

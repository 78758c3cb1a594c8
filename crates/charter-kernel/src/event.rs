//! An event inside the kernel, on its way to an actor: `event` in expressions.

use std::sync::Arc;

use std::borrow::Cow;

use charter_expr::{Numbers, Object, Str, Value};
use serde_json::Value as Json;

use crate::machine::{EventId, Events, NONE};

/// The origin of an event (SCXML `_event.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From a principal.
    External,
    /// From `raise` (or SCXML's `send` to `#_internal`).
    Internal,
    /// From `send`: another actor of this run, or the actor itself.
    Sent,
    /// From the kernel or its host: `done.*`, `error.*`, `after.*`.
    Platform,
}

#[derive(Debug, Clone)]
pub(crate) enum Name<'e> {
    Borrowed(&'e str),
    Shared(Arc<str>),
}

#[derive(Debug, Clone)]
pub(crate) enum Data<'e> {
    Borrowed(&'e Json),
    Shared(Arc<Json>),
}

#[derive(Debug, Clone)]
pub(crate) struct Ev<'e> {
    pub(crate) id: EventId,
    pub(crate) name: Name<'e>,
    pub(crate) data: Data<'e>,
    pub(crate) origin: Origin,
    /// The types of the numbers in its data.
    pub(crate) numbers: Option<Cow<'e, Arc<Numbers>>>,
    /// The other fields of SCXML's `_event`, if any.
    pub(crate) meta: Option<Arc<Meta>>,
}

/// Fields of SCXML's `_event` that charters do not have.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Meta {
    pub(crate) send_id: Option<Arc<str>>,
    pub(crate) origin: Option<Arc<str>>,
    pub(crate) invoke_id: Option<Arc<str>>,
}

impl<'e> Ev<'e> {
    /// An event from a principal; its numbers have the types of their places.
    pub(crate) fn external(events: &'e Events, id: EventId, name: &'e str, data: &'e Json) -> Self {
        let (name, data) = (Name::Borrowed(name), Data::Borrowed(data));
        Ev { id, name, data, origin: Origin::External, numbers: events.numbers(id).map(Cow::Borrowed), meta: None }
    }
}

impl Ev<'_> {
    pub(crate) fn new(id: EventId, name: Arc<str>, data: Arc<Json>, origin: Origin) -> Ev<'static> {
        Ev { id, name: Name::Shared(name), data: Data::Shared(data), origin, numbers: None, meta: None }
    }

    /// The same event, with types for the numbers in its data.
    pub(crate) fn typed(mut self, numbers: Option<&Arc<Numbers>>) -> Self {
        self.numbers = numbers.map(|numbers| Cow::Owned(numbers.clone()));
        self
    }

    fn numbers(&self) -> Option<&Numbers> {
        self.numbers.as_ref().map(|numbers| numbers.as_ref().as_ref())
    }

    /// Its data as a value.
    pub(crate) fn value(&self) -> Value<'_> {
        Value::typed(self.data(), self.numbers())
    }

    /// A field of its data as a value.
    pub(crate) fn field(&self, name: &str) -> Option<Value<'_>> {
        let value = self.data().as_object()?.get(name)?;
        Some(Value::typed(value, self.numbers().and_then(|n| n.field(name))))
    }

    pub(crate) fn name(&self) -> &str {
        match &self.name {
            Name::Borrowed(s) => s,
            Name::Shared(s) => s,
        }
    }
    pub(crate) fn data(&self) -> &Json {
        match &self.data {
            Data::Borrowed(d) => d,
            Data::Shared(d) => d,
        }
    }
    pub(crate) fn into_owned(self) -> Ev<'static> {
        let name = match self.name {
            Name::Borrowed(s) => s.into(),
            Name::Shared(s) => s,
        };
        let data = match self.data {
            Data::Borrowed(d) => Arc::new(d.clone()),
            Data::Shared(d) => d,
        };
        let numbers = self.numbers.map(|numbers| Cow::Owned(numbers.into_owned()));
        Ev {
            id: self.id,
            name: Name::Shared(name),
            data: Data::Shared(data),
            origin: self.origin,
            numbers,
            meta: self.meta,
        }
    }
    pub(crate) fn is_known(&self) -> bool {
        self.id != NONE
    }
}

impl Object for Ev<'_> {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "type" => Some(Value::from(self.name())),
            "data" => Some(self.value()),
            other => self.field(other),
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let fields = self.data().as_object().into_iter().flat_map(|m| m.keys()).map(String::as_str);
        let mut keys: Vec<&str> = fields.filter(|k| !matches!(*k, "type" | "data")).chain(["data", "type"]).collect();
        keys.sort_unstable();
        keys.into_iter().map(Str::from).collect()
    }
}

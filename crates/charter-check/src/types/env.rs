//! Typed environments: the types of the names that an expression can use at its place in a charter.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_expr::{Env, Facts, Field, Numbers, Type};
use charter_kernel::definition;

use crate::model::walk::variable_of;
use crate::model::{Chart, Model, Transition, Trigger, invocation_id, matches};

/// The properties of a place in a charter that determine which names its expressions can use.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Index of the chart.
    pub(crate) chart: usize,
    /// The type of `event`; `None` where there is no event.
    pub(crate) event: Option<Type>,
    /// Whether there is a sender.
    pub(crate) by: bool,
    /// Whether `entry` is bound.
    pub(crate) entry: bool,
    /// Names bound by `each`.
    pub(crate) locals: Vec<(String, Type)>,
    /// Facts that follow from the conditions checked before.
    pub(crate) facts: Facts,
}

impl Place {
    pub(crate) fn new(chart: usize, event: Type) -> Place {
        Place { chart, event: Some(event), by: true, entry: false, locals: Vec::new(), facts: Facts::default() }
    }

    /// Drops the facts about the variable that an assignment to `path` changes.
    pub(crate) fn assigned(&mut self, path: &str) {
        self.facts.forget(&format!("context.{}", variable_of(path)));
    }

    /// Creates a place where there is no event.
    pub(crate) fn without_event(chart: usize, by: bool) -> Place {
        Place { chart, event: None, by, entry: false, locals: Vec::new(), facts: Facts::default() }
    }
}

/// The types that all places share.
pub(crate) struct Types {
    /// Types of the contexts, by chart.
    pub(crate) contexts: Vec<Type>,
    /// Types of the numbers in the context variables, by chart.
    numbers: Vec<BTreeMap<String, Numbers>>,
    /// Types of the inputs, by chart.
    inputs: Vec<Type>,
    ledger: Option<Type>,
}

impl Types {
    /// Determines the types; contexts have any type.
    pub(crate) fn new(model: &Model<'_>) -> Types {
        let inputs: Vec<Type> =
            model.charts.iter().map(|c| c.def.input.as_ref().map_or(Type::Dyn, Type::from_schema)).collect();
        let kinds =
            model.def.ledger.keys().map(|kind| (kind.clone(), Field::required(Type::map(Type::String, entry_type()))));
        let ledger = (!model.def.ledger.is_empty()).then(|| Type::object(kinds));
        let numbers = model.charts.iter().map(|chart| {
            let names = || chart.outline.variables.iter().copied();
            let types = chart.def.numbers(names(), model.def.strict);
            names().zip(types).filter_map(|(name, numbers)| Some((name.to_string(), numbers?))).collect()
        });
        Types { contexts: vec![Type::Dyn; model.charts.len()], numbers: numbers.collect(), inputs, ledger }
    }

    /// Returns a copy in which contexts have any type.
    pub(crate) fn without_contexts(&self) -> Types {
        Types {
            contexts: vec![Type::Dyn; self.contexts.len()],
            numbers: self.numbers.clone(),
            inputs: self.inputs.clone(),
            ledger: self.ledger.clone(),
        }
    }

    /// The types of the numbers in a context variable.
    pub(crate) fn numbers(&self, chart: usize, variable: &str) -> Option<&Numbers> {
        self.numbers.get(chart)?.get(variable)
    }

    pub(crate) fn context(&self, chart: usize) -> Type {
        self.contexts.get(chart).cloned().unwrap_or(Type::Dyn)
    }

    /// Builds the environment of an expression, with root names in the kernel's order.
    pub(crate) fn env(&self, model: &Model<'_>, place: &Place, names_root: bool) -> Env {
        let mut env = Env::new();
        for root in charter_kernel::ROOTS {
            let ty = match root {
                "context" => Some(self.context(place.chart)),
                "event" => place.event.clone(),
                "by" => place.by.then(principal_type),
                "now" => Some(Type::Timestamp),
                "run" => Some(Type::object([
                    ("id", Field::required(Type::String)),
                    ("charter", Field::required(Type::String)),
                ])),
                "actors" => Some(self.actors(names_root)),
                "ledger" => self.ledger.clone(),
                "input" => Some(self.inputs.get(place.chart).cloned().unwrap_or(Type::Dyn)),
                "entry" => place.entry.then(entry_type),
                _ => Some(Type::Dyn),
            };
            if let Some(ty) = ty {
                env.root(root, ty);
            }
        }
        if !model.def.strict {
            for name in charter_kernel::SCXML_ROOTS {
                env.root(name, Type::Dyn);
            }
        }
        for (name, ty) in &place.locals {
            env.root(name, ty.clone());
        }
        env.assume(place.facts.clone());
        env.function("in", vec![Type::String], Type::Bool);
        env.function("In", vec![Type::String], Type::Bool);
        env.function("digest", vec![Type::Dyn], Type::String);
        if !model.def.strict {
            env.function("fail", vec![Type::String], Type::Dyn);
        }
        env
    }

    /// The type of `actors`: a map, or, if the expression uses `actors.root`, an object with the
    /// type of the root.
    fn actors(&self, names_root: bool) -> Type {
        if names_root {
            let root = Field::required(actor_type(self.context(0)));
            return Type::Object { fields: Arc::new([("root".to_string(), root)].into()), open: true };
        }
        Type::map(Type::String, actor_type(Type::Dyn))
    }
}

fn principal_type() -> Type {
    Type::object([
        ("id", Field::required(Type::String)),
        ("roles", Field::required(Type::list(Type::String))),
        ("kind", Field::required(Type::String)),
        ("auth", Field::required(Type::String)),
    ])
}

/// The environment of the unique key of an event.
pub(crate) fn key_env(event: &definition::EventDecl) -> Env {
    let mut env = Env::new();
    env.root("event", event.data.as_ref().map_or(Type::Dyn, |schema| event_with(Type::from_schema(schema))));
    env.root("by", principal_type());
    env
}

fn actor_type(context: Type) -> Type {
    Type::object([
        ("machine", Field::required(Type::String)),
        ("state", Field::required(Type::list(Type::String))),
        ("status", Field::required(Type::String)),
        ("context", Field::required(context)),
    ])
}

fn entry_type() -> Type {
    let or_null = |ty: Type| Field::required(Type::union([ty, Type::Null]));
    Type::object([
        ("status", Field::required(Type::String)),
        ("uses", or_null(Type::Int)),
        ("expires", or_null(Type::Timestamp)),
        ("due", or_null(Type::Timestamp)),
        ("data", Field::required(Type::Dyn)),
        ("how", Field::required(Type::Dyn)),
    ])
}

/// The type of `event`: `type`, `data`, and the fields of the data.
pub(crate) fn event_with(data: Type) -> Type {
    match data {
        Type::Dyn => Type::Dyn,
        Type::Union(types) => Type::union(types.into_iter().map(event_with)),
        Type::Object { fields, open } => {
            let data = Type::Object { fields: fields.clone(), open };
            let mut fields = Arc::unwrap_or_clone(fields);
            fields.insert("type".into(), Field::required(Type::String));
            fields.insert("data".into(), Field::required(data));
            Type::Object { fields: fields.into(), open }
        }
        other => {
            let open = matches!(other, Type::Map(..));
            let fields =
                [("type".to_string(), Field::required(Type::String)), ("data".to_string(), Field::required(other))];
            Type::Object { fields: Arc::new(fields.into()), open }
        }
    }
}

/// The type of `event` for a failure: `error` with `code`, `message` and other fields that the host
/// adds.
fn error_event() -> Type {
    let known =
        [("code".to_string(), Field::required(Type::String)), ("message".to_string(), Field::required(Type::String))];
    let error = Type::Object { fields: Arc::new(known.into()), open: true };
    event_with(Type::object([("error", Field::required(error))]))
}

fn output_event(output: Type) -> Type {
    event_with(Type::object([("output", Field::required(output))]))
}

/// The declared type of an actor's output.
fn output_of(model: &Model<'_>, src: &str) -> Type {
    model.def.actors.get(src).and_then(|a| a.output.as_ref()).map_or(Type::Dyn, Type::from_schema)
}

/// The type of `event` in the expressions of a transition.
pub(crate) fn event_of(model: &Model<'_>, chart: &Chart<'_>, t: &Transition<'_>) -> Type {
    match t.trigger {
        Trigger::Always | Trigger::After => Type::Dyn,
        Trigger::StateDone => output_event(Type::Dyn),
        Trigger::InvokeDone(_) => output_event(t.invocation(chart).map_or(Type::Dyn, |i| output_of(model, &i.src))),
        Trigger::InvokeError(_) => error_event(),
        Trigger::On(descriptors) => Type::union(descriptors.iter().map(|d| described(model, chart, d))),
    }
}

/// The type of `event` for one event descriptor.
fn described(model: &Model<'_>, chart: &Chart<'_>, descriptor: &str) -> Type {
    if descriptor.starts_with("error.") {
        return error_event();
    }
    if let Some(id) = descriptor.strip_prefix("done.invoke.") {
        let invokes =
            chart.states.iter().flat_map(|s| &s.def.invoke).filter(|i| {
                matches(descriptor, &format!("done.invoke.{}", invocation_id(i))) || invocation_id(i) == id
            });
        let outputs: Vec<Type> = invokes.map(|i| output_of(model, &i.src)).collect();
        return output_event(if outputs.is_empty() { Type::Dyn } else { Type::union(outputs) });
    }
    if descriptor.starts_with("done.state.") {
        return output_event(Type::Dyn);
    }
    if descriptor == "charter.overdue" {
        return event_with(Type::object([
            ("kind", Field::required(Type::String)),
            ("key", Field::required(Type::String)),
        ]));
    }
    let listed: Vec<&definition::EventDecl> =
        model.def.events.iter().filter(|(name, _)| matches(descriptor, name)).map(|(_, e)| e).collect();
    // A wildcard also matches undeclared events, if there are any.
    let others = !model.def.strict || raises_undeclared(model, descriptor);
    if listed.is_empty() || others {
        return Type::Dyn;
    }
    Type::union(listed.into_iter().map(|e| e.data.as_ref().map_or(Type::Dyn, |s| event_with(Type::from_schema(s)))))
}

/// Whether an action raises or sends an undeclared event that the descriptor matches.
fn raises_undeclared(model: &Model<'_>, descriptor: &str) -> bool {
    let raised = model.raised();
    raised.any || raised.names.iter().any(|name| matches(descriptor, name))
}

//! Compiled guards, requirements, values and actions.

use std::sync::Arc;

use charter_expr::Program;
use serde_json::Value as Json;
use smallvec::SmallVec;

use super::EventId;
use crate::refusal::Code;
use crate::time::Millis;

#[derive(Debug)]
pub(crate) enum Guard {
    Cel(Program),
    Named(Arc<(Box<str>, Guard)>),
    And(Vec<Guard>),
    Or(Vec<Guard>),
    Not(Box<Guard>),
}

/// Whether a program reads the event.
pub(crate) fn reads_event(program: &Program) -> bool {
    program.reads().iter().any(|path| path.root() == "event")
}

impl Guard {
    /// Whether an expression of the guard reads the event.
    pub(crate) fn reads_event(&self) -> bool {
        let mut reads = false;
        self.programs(&mut |program| reads |= reads_event(program));
        reads
    }

    /// Renders the guard as one expression; a named guard by the expression that it stands for.
    pub(crate) fn text(&self) -> String {
        let joined = |list: &[Guard], by: &str| list.iter().map(Guard::operand).collect::<Vec<_>>().join(by);
        match self {
            Guard::Cel(program) => program.source().to_string(),
            Guard::Named(named) => named.1.text(),
            Guard::And(list) => joined(list, " && "),
            Guard::Or(list) => joined(list, " || "),
            Guard::Not(guard) => format!("!{}", guard.operand()),
        }
    }

    fn operand(&self) -> String {
        let text = self.text();
        match text.chars().all(|c| c.is_alphanumeric() || "._".contains(c)) {
            true => text,
            false => format!("({text})"),
        }
    }

    /// Calls `each` with every expression of the guard.
    pub(crate) fn programs<'g>(&'g self, each: &mut dyn FnMut(&'g Program)) {
        match self {
            Guard::Cel(program) => each(program),
            Guard::Named(named) => named.1.programs(each),
            Guard::And(list) | Guard::Or(list) => list.iter().for_each(|guard| guard.programs(each)),
            Guard::Not(guard) => guard.programs(each),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Require {
    Use {
        kind: u32,
        key: Template,
        when: Option<Program>,
        /// For each refusal code, the index of the rule that the refusal names.
        rules: SmallVec<[(Code, u32); 2]>,
    },
    Open {
        kind: u32,
        key: Template,
        rule: Option<u32>,
    },
    None {
        kind: u32,
        rule: Option<u32>,
    },
}

impl Require {
    /// Whether the requirement reads the event.
    pub(crate) fn reads_event(&self) -> bool {
        match self {
            Require::Use { key, when, .. } => key.reads_event() || when.as_ref().is_some_and(reads_event),
            Require::Open { key, .. } => key.reads_event(),
            Require::None { .. } => false,
        }
    }

    /// The rule that a refusal with this code names.
    pub(crate) fn rule(&self, code: Code) -> Option<u32> {
        match self {
            Require::Use { rules, .. } => rules.iter().find(|(c, _)| *c == code).map(|(_, r)| *r),
            Require::Open { rule, .. } | Require::None { rule, .. } => *rule,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Template {
    Literal(Arc<Json>),
    Cel(Program),
    List(Vec<Template>),
    Object(Vec<(Box<str>, Template)>),
}

impl Template {
    /// Whether an expression in it reads the event.
    pub(crate) fn reads_event(&self) -> bool {
        match self {
            Template::Literal(_) => false,
            Template::Cel(program) => reads_event(program),
            Template::List(list) => list.iter().any(Template::reads_event),
            Template::Object(fields) => fields.iter().any(|(_, value)| value.reads_event()),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Delay {
    Ms(Millis),
    Cel(Program),
}

/// A block of actions; named blocks are shared.
pub(crate) type Block = Vec<Action>;

/// An event type in an action: constant or computed.
#[derive(Debug)]
pub(crate) enum TypeName {
    Known(EventId),
    Computed(Template),
}

#[derive(Debug)]
pub(crate) enum Action {
    Named(Arc<Block>),
    Assign(Vec<Assign>),
    Raise { kind: TypeName, data: Option<Template> },
    Send(Box<Send>),
    Cancel(Template),
    Emit { kind: Template, data: Option<Template> },
    Log { value: Template, label: Option<Box<str>> },
    Spawn { what: Src, id: Template, input: Option<Template> },
    Stop(Template),
    If(Vec<(Option<Program>, Block)>),
    Each { list: Program, index: bool, depth: u32, block: Block },
    Grant { kind: u32, key: Template, uses: Option<Template>, expires: Option<Template>, data: Option<Template> },
    Revoke { kind: u32, key: Option<Template> },
    Open { kind: u32, key: Template, due: Option<Template>, data: Option<Template> },
    Close { kind: u32, key: Option<Template>, how: Option<Template> },
}

#[derive(Debug)]
pub(crate) struct Assign {
    pub(crate) slot: u32,
    pub(crate) path: Vec<Segment>,
    pub(crate) value: Template,
}

/// A segment of a path into a context variable.
#[derive(Debug)]
pub(crate) enum Segment {
    Key(Box<str>),
    Computed(Program),
}

#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) to: Option<Template>,
    pub(crate) kind: TypeName,
    pub(crate) data: Option<Template>,
    pub(crate) delay: Option<Delay>,
    pub(crate) id: Option<Template>,
    pub(crate) id_location: Option<u32>,
    pub(crate) processor: Option<Template>,
}

/// What an invocation or a spawn starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Src {
    /// A chart of this machine.
    Chart(u32),
    /// A service of the host.
    Service(u32),
}

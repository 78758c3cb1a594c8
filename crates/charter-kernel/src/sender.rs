//! What a transition asks of the sender besides roles: that it is a person, that it was
//! authenticated, and that it is somebody else (four eyes).

use charter_expr::{ErrorKind, EvalDetail, EvalError, Fuel, Program, Value};

use crate::definition;
use crate::machine::reads_event;
use crate::principal::{Auth, PrincipalKind};
use crate::scope::{EvalContext, in_program};

/// The rule of a refusal because the sender is not a person.
pub const PERSONS_ONLY: &str = "persons-only";

/// The rule of a refusal because the sender was not authenticated (`by.auth` is `none`).
pub const AUTHENTICATED_ONLY: &str = "authenticated-only";

/// The rule of a refusal because `not_by` names the sender, or could not be evaluated.
pub const NOT_BY: &str = "not-by";

/// The rules that a refusal with the code `authority` can name. They belong to the language, not to
/// the `rules` of a charter.
pub const SENDER_RULES: [&str; 3] = [PERSONS_ONLY, AUTHENTICATED_ONLY, NOT_BY];

/// What a transition asks of the sender besides roles.
#[derive(Debug)]
pub(crate) struct SenderRule {
    persons: bool,
    authenticated: bool,
    /// The principals that may not take the transition.
    pub(crate) not_by: Option<Program>,
}

/// Why a sender may not take a transition, although it has the roles.
#[derive(Debug)]
pub(crate) enum Ineligible {
    NotAPerson,
    NotAuthenticated,
    /// `not_by` names the sender; with an error, it could not be evaluated.
    Excluded(Option<EvalError>),
}

impl SenderRule {
    /// Compiles the rule of a transition; `None` if it asks for nothing.
    pub(crate) fn new(def: &definition::Transition, not_by: Option<Program>) -> Option<SenderRule> {
        let persons = (def.approves.is_some() || def.quorum.is_some()) && !def.agents;
        let authenticated = def.not_by.is_some() || def.quorum.is_some();
        (persons || authenticated).then_some(SenderRule { persons, authenticated, not_by })
    }

    /// Whether only persons may take the transition.
    pub(crate) fn is_for_persons(&self) -> bool {
        self.persons
    }

    /// The ids that `not_by` excludes now, as far as the event's data does not decide.
    pub(crate) fn excluded<'a>(&'a self, ctx: &EvalContext<'a>) -> Vec<String> {
        let known = self.not_by.as_ref().filter(|_| !self.reads_event());
        known.and_then(|not_by| ctx.cel(not_by).ok()).map(|value| named(&value)).unwrap_or_default()
    }

    /// Whether `not_by` reads the event.
    pub(crate) fn reads_event(&self) -> bool {
        self.not_by.as_ref().is_some_and(reads_event)
    }

    /// Returns why the sender may not take the transition; `None` if it may. Without the event's
    /// data, a `not_by` that reads it is not evaluated.
    pub(crate) fn refuses<'a>(&'a self, ctx: &EvalContext<'a>, has_data: bool) -> Option<Ineligible> {
        if self.persons && ctx.by.kind() != PrincipalKind::Person {
            return Some(Ineligible::NotAPerson);
        }
        if self.authenticated && ctx.by.auth() == Auth::None {
            return Some(Ineligible::NotAuthenticated);
        }
        let not_by = self.not_by.as_ref().filter(|_| has_data || !self.reads_event())?;
        match names_sender(ctx, not_by) {
            Ok(false) => None,
            Ok(true) => Some(Ineligible::Excluded(None)),
            Err(error) => Some(Ineligible::Excluded(Some(error))),
        }
    }
}

/// Returns the ids that a value of `not_by` names.
fn named(value: &Value<'_>) -> Vec<String> {
    match value {
        Value::String(id) => vec![id.to_string()],
        Value::List(list) => list.iter().flat_map(|id| named(&id)).collect(),
        _ => Vec::new(),
    }
}

/// Whether the value of `not_by` names the sender. Null names nobody, also in a list.
fn names_sender<'a>(ctx: &EvalContext<'a>, not_by: &'a Program) -> Result<bool, EvalError> {
    let names = |value: &Value<'a>| match value {
        Value::Null => Ok(false),
        Value::String(id) => Ok(&**id == ctx.by.id.as_str()),
        other => {
            let detail = EvalDetail::needs("`not_by`", "an id, a list of ids or null", other.type_name());
            Err(in_program(EvalError::with_detail(ErrorKind::InvalidArgument, detail), not_by))
        }
    };
    let value = ctx.cel(not_by)?;
    if let Some(unknowns) = ctx.budget.unknowns() {
        return unknowns.names(&value, &ctx.by.id).ok_or_else(|| {
            let detail = EvalDetail::needs("`not_by`", "an id, a list of ids or null", value.type_name());
            EvalError::with_detail(ErrorKind::InvalidArgument, detail)
        });
    }
    match value {
        Value::List(list) => {
            let mut fuel = Fuel::new(ctx.machine.definition.limits.expression);
            fuel.spend_elements(list.len()).map_err(|e| in_program(e, not_by))?;
            // Every entry is looked at, so that a wrong one is an error for every sender.
            list.iter().try_fold(false, |named, id| Ok(named | names(&id)?))
        }
        value => names(&value),
    }
}

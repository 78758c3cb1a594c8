//! Resolves names of guards, actions, delays, actors, machines, roles, ledger kinds, rules and
//! context variables.
//!
//! The kernel resolves targets and event types.

use charter_expr::nearest;
use charter_kernel::definition::BUILT_IN_ROLES;
use charter_kernel::{Definition, check_name};

use super::context::{Context, Reference, Space};
use super::variables::Variables;
use crate::diagnostic::{Diagnostic, codes, listed};
use crate::source::{Node, Span};

/// Reports undeclared names, names that are declared both as an actor and as a machine, and roles
/// that no sender can have.
pub(crate) fn resolve(cx: &mut Context, definition: &Definition, root: &Node) {
    let references = std::mem::take(&mut cx.references);
    let variables = Variables::new(definition, &references);
    for reference in references {
        let lacking = match reference.space {
            Space::Variable => variables.chart_without(&reference),
            _ => None,
        };
        if lacking.is_none() && declared(reference.space, &reference.name, definition) {
            continue;
        }
        // Searching for a similar name is expensive: skip it once the list is full.
        if cx.sink.is_full() {
            cx.sink.omit();
            continue;
        }
        let problem = match lacking {
            Some(chart) => variables.undefined(&reference, chart),
            None => undefined(&reference, definition),
        };
        cx.report(problem);
    }
    for name in definition.machines.keys().filter(|name| definition.actors.contains_key(*name)) {
        let span = key(root, "machines", name);
        let message = format!("`{name}` is declared under both `actors` and `machines`; `invoke` could mean either");
        cx.report(Diagnostic::error(codes::AMBIGUOUS, span, message).help("rename one of them"));
    }
    for name in definition.roles.keys().filter(|name| !BUILT_IN_ROLES.contains(&name.as_str())) {
        if let Err(wrong) = check_name(name) {
            let message = format!("no sender can have this role: {wrong}");
            cx.report(Diagnostic::error(codes::BAD_ROLE_NAME, key(root, "roles", name), message));
        }
    }
}

/// The place of a key in a section of the charter.
fn key(root: &Node, section: &str, name: &str) -> Span {
    root.get(section).and_then(|section| section.entry(name)).map(|entry| entry.key.span).unwrap_or_default()
}

fn declared(space: Space, name: &str, definition: &Definition) -> bool {
    match space {
        Space::Role => BUILT_IN_ROLES.contains(&name) || definition.roles.contains_key(name),
        Space::Guard => definition.guards.contains_key(name),
        Space::Action => definition.actions.contains_key(name),
        Space::Delay => definition.delays.contains_key(name),
        Space::Machine => definition.machines.contains_key(name),
        Space::ActorOrMachine => definition.machines.contains_key(name) || definition.actors.contains_key(name),
        Space::Ledger => definition.ledger.contains_key(name),
        Space::Rule => definition.rules.contains_key(name),
        // Its chart decides.
        Space::Variable => true,
    }
}

fn undefined(reference: &Reference, definition: &Definition) -> Diagnostic {
    let name = &reference.name;
    let (what, section, known): (&str, &str, Vec<String>) = match reference.space {
        Space::Role => {
            ("role", "roles", definition.roles.keys().cloned().chain(BUILT_IN_ROLES.map(str::to_owned)).collect())
        }
        Space::Guard => ("guard", "guards", keys_of(&definition.guards)),
        Space::Action => ("action", "actions", keys_of(&definition.actions)),
        Space::Delay => ("delay", "delays", keys_of(&definition.delays)),
        Space::Machine => ("machine", "machines", keys_of(&definition.machines)),
        Space::ActorOrMachine => {
            ("actor or machine", "actors", [keys_of(&definition.actors), keys_of(&definition.machines)].concat())
        }
        Space::Ledger => ("kind of permit or obligation", "ledger", keys_of(&definition.ledger)),
        Space::Rule => ("rule", "rules", keys_of(&definition.rules)),
        Space::Variable => ("variable", "context", keys_of(&definition.root.context)),
    };
    let problem = Diagnostic::error(codes::UNDEFINED, reference.span, format!("undefined {what} `{name}`"));
    // The name that was meant may look the same.
    if let (Space::Role, Err(wrong)) = (reference.space, check_name(name)) {
        return problem.help(format!("no sender can have this role: {wrong}"));
    }
    if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
        return problem.help(format!("did you mean `{near}`?"));
    }
    let looks_like_cel = name.contains([' ', '(', '=', '<', '>', '!', '.']);
    match reference.space {
        Space::Guard if looks_like_cel => {
            problem.help("`guard` takes a name from `guards`; write an inline expression as `when`")
        }
        Space::Delay if charter_expr::resembles_delay(name) => {
            super::delay::invalid(reference.span, name, charter_expr::DelayError::Malformed)
        }
        Space::Delay => problem.help(super::delay::HELP),
        _ if known.is_empty() || reference.space == Space::Role && definition.roles.is_empty() => {
            problem.help(format!("declare it under `{section}`"))
        }
        _ => problem.help(format!("declared under `{section}`: {}", listed(known.iter().map(String::as_str)))),
    }
}

fn keys_of<T>(map: &indexmap::IndexMap<String, T>) -> Vec<String> {
    map.keys().cloned().collect()
}

//! The charter must declare the roles that a scenario file names: a principal with a misspelt role
//! has none, so a refusal that a scenario expects would have another reason.

use charter_expr::nearest;
use charter_format::scenario::ScenarioFile;
use charter_format::{Diagnostics, Severity};
use charter_kernel::Definition;
use charter_kernel::definition::BUILT_IN_ROLES;

use super::codes;

/// Checks that the charter declares the roles that a scenario file names.
///
/// # Errors
/// Returns a diagnostic for every role that it does not declare.
pub fn check_roles(file: &ScenarioFile, definition: &Definition) -> Result<(), Box<Diagnostics>> {
    let known = || definition.roles.keys().map(String::as_str).chain(BUILT_IN_ROLES);
    let undeclared = file.roles.iter().filter(|(role, _)| !known().any(|name| name == role));
    let mut list = Vec::new();
    let mut omitted: usize = 0;
    for (role, span) in undeclared {
        if list.len() >= Diagnostics::MAX {
            omitted = omitted.saturating_add(1);
            continue;
        }
        let message = format!("the charter `{}` declares no role `{role}`", definition.id);
        let help = match nearest(role, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let names: Vec<String> = known().map(|name| format!("`{name}`")).collect();
                format!("its roles are {}; for a sender without a role, write `roles: []`", names.join(", "))
            }
        };
        list.push(file.diagnostic(Severity::Error, codes::SCENARIO, *span, message, Some(help)));
    }
    match list.is_empty() {
        true => Ok(()),
        false => Err(Box::new(Diagnostics { name: file.name.clone(), source: file.source.clone(), list, omitted })),
    }
}

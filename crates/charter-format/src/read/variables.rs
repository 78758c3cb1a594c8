//! The context of a strict charter is closed: `assign` may set only the variables that its chart
//! declares. A named action belongs to every chart that uses it, directly or through other named
//! actions.

use std::collections::{BTreeSet, HashMap, HashSet};

use charter_expr::nearest;
use charter_kernel::Definition;
use charter_kernel::definition::Chart;

use super::context::{Reference, Scope, Space};
use crate::diagnostic::{Diagnostic, codes, listed};

/// Which variables each chart declares, and which charts use a named action.
pub(super) struct Variables<'d> {
    /// By scope; a chart that is missing accepts any variable.
    declared: HashMap<Scope, BTreeSet<&'d str>>,
    /// The charts that use a named action, the root first.
    users: HashMap<String, Vec<Scope>>,
}

impl<'d> Variables<'d> {
    pub(super) fn new(definition: &'d Definition, references: &[Reference]) -> Variables<'d> {
        let machines = definition.machines.iter().map(|(name, chart)| (Scope::Machine(name.as_str().into()), chart));
        let charts: Vec<(Scope, &Chart)> = std::iter::once((Scope::Root, &definition.root)).chain(machines).collect();
        // An imported statechart that is not strict may set any variable.
        let strict = charts.iter().filter(|_| definition.strict);
        let declared = strict.filter_map(|(scope, chart)| Some((scope.clone(), chart.declared_variables()?)));
        let declared = declared.collect();
        let mut uses: HashMap<&Scope, Vec<&str>> = HashMap::new();
        for reference in references.iter().filter(|r| r.space == Space::Action) {
            uses.entry(&reference.scope).or_default().push(&reference.name);
        }
        let mut users: HashMap<String, Vec<Scope>> = HashMap::new();
        for (scope, _) in &charts {
            let mut seen: HashSet<&str> = HashSet::new();
            let mut waiting: Vec<&str> = uses.get(scope).cloned().unwrap_or_default();
            while let Some(action) = waiting.pop() {
                if seen.insert(action) {
                    users.entry(action.to_owned()).or_default().push(scope.clone());
                    waiting.extend(uses.get(&Scope::Action(action.into())).into_iter().flatten());
                }
            }
        }
        Variables { declared, users }
    }

    /// Returns the first chart in which an assigned variable is not declared.
    pub(super) fn chart_without(&self, reference: &Reference) -> Option<Scope> {
        let lacks = |scope: &&Scope| self.declared.get(*scope).is_some_and(|d| !d.contains(reference.name.as_str()));
        match &reference.scope {
            Scope::Action(action) => self.users.get(action.as_ref())?.iter().find(lacks).cloned(),
            chart => Some(chart).filter(lacks).cloned(),
        }
    }

    /// Says that a chart does not declare a variable.
    pub(super) fn undefined(&self, reference: &Reference, chart: Scope) -> Diagnostic {
        let name = &reference.name;
        let of = match &chart {
            Scope::Machine(machine) => format!(" in the context of machine `{machine}`"),
            _ => String::new(),
        };
        let problem = Diagnostic::error(codes::UNDEFINED, reference.span, format!("undefined variable `{name}`{of}"));
        let known = || self.declared.get(&chart).into_iter().flatten().copied();
        if let Some(near) = nearest(name, known()) {
            return problem.help(format!("did you mean `{near}`?"));
        }
        match known().next() {
            None => problem.help(format!("declare it under `context`: `{name}: null`")),
            Some(_) => problem.help(format!(
                "declare it under `context` with its initial value; declared there: {}",
                listed(known())
            )),
        }
    }
}

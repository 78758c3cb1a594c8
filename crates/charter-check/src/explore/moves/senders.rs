//! The senders that an exploration tries for an event: those that the charter can distinguish by
//! roles, id, kind and authentication.

use std::borrow::Cow;
use std::collections::BTreeSet;

use charter_kernel::{Auth, Principal, PrincipalKind, Query};
use serde_json::Value as Json;

use crate::explore::cone::ConeOfInfluence;
use crate::model::walk::Item;
use crate::model::{Model, Transition};
use crate::tree;

/// Upper limit of the persons that are tried for an event, without those that `not_by` names.
const MAX_PERSONS: usize = 32;
/// Upper limit of the persons that are tried because the run may remember others.
const MAX_REMEMBERED: usize = 8;
/// Upper limit of the persons without an event before that are tried in a state.
const MAX_NEW: usize = 2;

/// The senders of one event.
pub(super) struct Senders {
    /// The senders that do not depend on the state.
    pub(super) fixed: Vec<Principal>,
    /// The sets of roles that conditions distinguish.
    roles: Vec<Vec<String>>,
    /// How many persons must be left that no `not_by` names.
    persons: usize,
    /// The `not_by` expressions of the transitions for the event.
    not_by: Vec<Query>,
}

/// What the transitions for an event ask of a sender besides roles.
struct Conditions {
    persons: bool,
    authenticated: bool,
}

impl Senders {
    /// Chooses the senders of an event. Adds to `cut` what is not tried.
    pub(super) fn new<'d>(
        model: &Model<'d>,
        cone: &ConeOfInfluence,
        (name, of_event): (&str, &[String]),
        takers: &[&Transition<'d>],
        cut: &mut Vec<String>,
    ) -> Senders {
        let roles = role_sets(model, cone, of_event, takers);
        let quorum = takers.iter().filter_map(|t| t.def.quorum.as_ref()).map(|q| q.count).max().unwrap_or(1);
        let needed = usize::try_from(quorum).unwrap_or(usize::MAX).max(1);
        // Beside the voters, everybody whom the run remembers, and somebody whom it does not.
        let remembered = if cone.sender { remembered(model) } else { 0 };
        let persons = needed.saturating_add(remembered).min(MAX_PERSONS.min(needed.max(MAX_REMEMBERED)));
        if needed > persons {
            cut.push(format!("`{name}`: a quorum of {needed} was tried with only {persons} persons"));
        }
        let mut not_by = Vec::new();
        for cel in takers.iter().filter_map(|t| t.def.not_by.as_deref()) {
            let of_event = |ast: &charter_expr::Ast| ast.reads().iter().any(|p| matches!(p.root(), "event" | "by"));
            if model.ast(cel).is_some_and(|ast| of_event(&ast)) {
                cut.push(format!(
                    "`{name}`: `not_by` (`{cel}`) depends on the event, whose sender was not adapted to it"
                ));
            }
            not_by.extend(model.machine.query(cel).ok());
        }
        let several = if cone.sender { 2 } else { 1 };
        let mut fixed = Vec::new();
        for (kind, auth) in classes(cone, takers) {
            let count = if kind == PrincipalKind::Person { persons.max(several) } else { several };
            for number in 0..count {
                let id = id_of(kind, number);
                fixed.extend(roles.iter().map(|roles| sender(&id, roles, kind, auth)));
            }
        }
        Senders { fixed, roles, persons, not_by }
    }

    /// The number of senders that do not depend on the state.
    pub(super) fn count(&self) -> usize {
        self.fixed.len()
    }

    /// Returns the senders to try in a state. If no `not_by` names anybody there: the fixed ones,
    /// but only a few persons who have not sent an event yet (`used` lists those who have), because
    /// such persons are interchangeable. Otherwise: the fixed ones, each person whom a `not_by`
    /// names, and enough persons whom none names.
    pub(super) fn of(&self, used: &[String], value: impl Fn(&Query) -> Option<Json>) -> Cow<'_, [Principal]> {
        let mut named: Vec<String> = Vec::new();
        for value in self.not_by.iter().filter_map(value) {
            let ids = match value {
                Json::String(id) => vec![id],
                Json::Array(ids) => ids.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
                _ => Vec::new(),
            };
            named.extend(ids);
        }
        if named.is_empty() {
            if self.persons <= MAX_NEW {
                return Cow::Borrowed(&self.fixed);
            }
            let ids = (0..self.persons).map(|number| id_of(PrincipalKind::Person, number));
            let new: Vec<String> = ids.filter(|id| !used.contains(id)).skip(MAX_NEW).collect();
            return Cow::Owned(self.fixed.iter().filter(|p| !new.contains(&p.id)).cloned().collect());
        }
        let mut all = self.fixed.clone();
        let mut add = |id: &str| {
            if !all.iter().any(|p| p.id == id) {
                all.extend(self.roles.iter().map(|r| sender(id, r, PrincipalKind::Person, Auth::Local)));
            }
        };
        named.iter().for_each(|id| add(id));
        // There are more ids than names to skip.
        let free = (0..).map(|number| id_of(PrincipalKind::Person, number)).filter(|id| !named.contains(id));
        free.take(self.persons).for_each(|id| add(&id));
        Cow::Owned(all)
    }
}

/// How many different ids of senders a run can remember, as far as the text of the charter shows:
/// one for each variable, and for a list as many as a condition counts.
fn remembered(model: &Model<'_>) -> usize {
    let mut variables = BTreeSet::new();
    let (mut in_lists, mut counted) = (false, 0);
    model.visit_all(&mut |_, item| match item {
        Item::Assign(path, value) => {
            for cel in Model::cels(value) {
                if !model.reads_root(cel, "by") {
                    continue;
                }
                variables.insert(path.to_string());
                in_lists |= model.ast(cel).is_some_and(|ast| tree::path_of(ast.root()).is_none());
            }
        }
        Item::Cel(cel) => {
            if let Some(ast) = model.ast(cel) {
                tree::visit(ast.root(), &mut |node| {
                    if let Some(n) = tree::literal_of(node).and_then(|n| n.as_u64()) {
                        counted = counted.max(usize::try_from(n).unwrap_or(usize::MAX));
                    }
                });
            }
        }
        _ => {}
    });
    let listed = if in_lists { counted.min(MAX_REMEMBERED) } else { 0 };
    variables.len().saturating_add(listed)
}

fn sender(id: &str, roles: &[String], kind: PrincipalKind, auth: Auth) -> Principal {
    let by = Principal { roles: roles.to_vec(), ..Principal::new(id, &[]) };
    // A person at the terminal needs no words in a trace.
    let by = if kind == PrincipalKind::Person { by } else { by.of_kind(kind) };
    if auth == Auth::Local { by } else { by.authenticated(auth) }
}

fn id_of(kind: PrincipalKind, number: usize) -> String {
    const PERSONS: [&str; 6] = ["ana", "ben", "cleo", "dan", "eva", "fay"];
    match (kind, PERSONS.get(number)) {
        (PrincipalKind::Person, Some(name)) => (*name).to_owned(),
        _ => format!("{kind}-{}", number.saturating_add(1)),
    }
}

/// Returns the kinds and authentications that the charter can distinguish, beginning with a person
/// at the terminal.
fn classes(cone: &ConeOfInfluence, takers: &[&Transition<'_>]) -> Vec<(PrincipalKind, Auth)> {
    let all: Vec<Conditions> = takers
        .iter()
        .map(|t| Conditions {
            persons: (t.def.approves.is_some() || t.def.quorum.is_some()) && !t.def.agents,
            authenticated: t.def.not_by.is_some() || t.def.quorum.is_some(),
        })
        .collect();
    // Persons first, then the other ways to be refused; the rest matters only if it is read.
    let mut auths = vec![Auth::Local, Auth::None];
    auths.extend(Auth::ALL.into_iter().filter(|auth| !matches!(auth, Auth::Local | Auth::None)));
    let mut seen = Vec::new();
    let mut out = Vec::new();
    for auth in auths {
        for kind in PrincipalKind::ALL {
            let admits = |a: &Conditions| {
                (!a.persons || kind == PrincipalKind::Person) && (!a.authenticated || auth != Auth::None)
            };
            let admitted: Vec<bool> = all.iter().map(admits).collect();
            let class = (admitted, cone.kind.then_some(kind), cone.auth.then_some(auth));
            if !seen.contains(&class) {
                seen.push(class);
                out.push((kind, auth));
            }
        }
    }
    out
}

/// Returns the sets of roles that the transitions for an event can distinguish.
fn role_sets(
    model: &Model<'_>,
    cone: &ConeOfInfluence,
    of_event: &[String],
    takers: &[&Transition<'_>],
) -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<String>> = Vec::new();
    let mut add = |roles: Vec<String>| {
        if !roles.iter().any(|r| r == "system") && !sets.contains(&roles) {
            sets.push(roles);
        }
    };
    for role in of_event {
        add(vec![role.clone()]);
    }
    for t in takers {
        for role in t.def.by.iter().chain(t.def.quorum.iter().filter_map(|q| q.of.as_ref())) {
            if of_event.is_empty() || of_event.contains(role) {
                add(vec![role.clone()]);
            } else {
                of_event.iter().for_each(|e| add(vec![e.clone(), role.clone()]));
            }
        }
    }
    if of_event.is_empty() {
        if cone.sender {
            model.def.roles.keys().for_each(|r| add(vec![r.clone()]));
        }
        if (takers.is_empty() || takers.iter().any(|t| t.def.by.is_empty())) && !sets.contains(&Vec::new()) {
            sets.push(Vec::new());
        }
    }
    sets
}

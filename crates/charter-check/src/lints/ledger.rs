//! Ledger kinds that are written but never read, or read but never written.

use charter_kernel::definition::{Action, Require};
use rustc_hash::FxHashSet;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::Item;
use crate::model::{Model, escape};

#[derive(Default)]
struct Uses<'d> {
    granted: FxHashSet<&'d str>,
    used: FxHashSet<&'d str>,
    opened: FxHashSet<&'d str>,
    closed: FxHashSet<&'d str>,
    required: FxHashSet<&'d str>,
    revoked: FxHashSet<&'d str>,
    /// Kinds that occur in an expression (`ledger.token`).
    read: FxHashSet<String>,
    /// Whether an expression computes the kind, so that any kind is possible.
    read_all: bool,
}

fn uses<'d>(model: &Model<'d>) -> Uses<'d> {
    let mut uses = Uses::default();
    for t in model.charts.iter().flat_map(|c| &c.transitions) {
        for require in &t.def.requires {
            match require {
                Require::Use { kind, .. } => uses.used.insert(kind),
                Require::Open { kind, .. } | Require::None { kind, .. } => uses.required.insert(kind),
            };
        }
    }
    model.visit_all(&mut |_, item| match item {
        Item::Action(Action::Grant { kind, .. }) => drop(uses.granted.insert(kind)),
        Item::Action(Action::Revoke { kind, .. }) => drop(uses.revoked.insert(kind)),
        Item::Action(Action::Open { kind, .. }) => drop(uses.opened.insert(kind)),
        Item::Action(Action::Close { kind, .. }) => drop(uses.closed.insert(kind)),
        Item::Cel(cel) => read(model, cel, &mut uses),
        _ => {}
    });
    for cel in super::unused::rules(model) {
        read(model, cel, &mut uses);
    }
    uses
}

fn read<'d>(model: &Model<'d>, cel: &'d str, uses: &mut Uses<'d>) {
    let Some(ast) = model.ast(cel) else { return };
    for path in ast.reads().iter().filter(|p| p.root() == "ledger") {
        match path.segments().first() {
            Some(charter_expr::Segment::Field(name)) => drop(uses.read.insert(name.to_string())),
            _ => uses.read_all = true,
        }
    }
}

pub(crate) fn kinds(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let uses = uses(model);
    for kind in model.def.ledger.keys() {
        let name = kind.as_str();
        let read = uses.read_all || uses.read.contains(name);
        let (granted, used) = (uses.granted.contains(name), uses.used.contains(name));
        let (opened, closed, required) =
            (uses.opened.contains(name), uses.closed.contains(name), uses.required.contains(name));
        let mut report = |code: &'static str, message: String, help: &str| {
            findings
                .push(Finding::new(Severity::Warning, code, format!("/ledger/{}", escape(kind)), message).help(help));
        };
        if !granted && !used && !opened && !closed && !required && !read && !uses.revoked.contains(name) {
            report(
                codes::UNUSED_LEDGER_KIND,
                format!("ledger kind `{kind}` is never written or read"),
                "use it in `requires` and in actions, or remove it",
            );
            continue;
        }
        if granted && !used && !read {
            report(
                codes::PERMIT_NEVER_USED,
                format!("permits of kind `{kind}` are granted, but no transition requires them"),
                "add `requires: {use: {kind, key}}` to the transitions that need the permit",
            );
        }
        if used && !granted {
            report(
                codes::PERMIT_NEVER_GRANTED,
                format!("permits of kind `{kind}` are required, but never granted: those transitions are never taken"),
                "add a `grant` action",
            );
        }
        if opened && !closed {
            report(
                codes::OBLIGATION_NEVER_CLOSED,
                format!("obligations of kind `{kind}` are opened, but never closed"),
                "add a `close` action where the obligation is fulfilled",
            );
        }
        if (closed || required) && !opened {
            report(
                codes::OBLIGATION_NEVER_OPENED,
                format!("obligations of kind `{kind}` are required or closed, but never opened"),
                "add an `open` action where the obligation starts",
            );
        }
    }
}

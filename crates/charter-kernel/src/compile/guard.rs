//! Compiles the conditions of a transition: guards and conditions on the ledger.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Compiler, MAX_NESTING, escape};
use crate::definition;
use crate::machine::{Guard, Require};
use crate::refusal::Code;

/// Upper limit of the conditions of a guard with everything that it refers to: guards that use
/// others twice would have millions within a few lines.
const MAX_CONDITIONS: usize = 1_000;

/// A named guard where it is compiled.
type SharedGuard = Arc<(Box<str>, Guard)>;

/// A named guard.
pub(super) enum NamedGuard {
    /// It is being compiled.
    Open,
    /// `None`: it has a problem, which was reported.
    Done(Option<CompiledGuard<SharedGuard>>),
}

/// A compiled guard, and how many conditions it has and how deep they are nested.
pub(super) struct CompiledGuard<G = Guard> {
    guard: G,
    conditions: usize,
    depth: usize,
}

/// A named guard where it is used.
fn shared(named: &CompiledGuard<SharedGuard>) -> CompiledGuard {
    CompiledGuard { guard: Guard::Named(named.guard.clone()), conditions: named.conditions, depth: named.depth }
}

impl<'d> Compiler<'d> {
    pub(super) fn guard(&mut self, def: &'d definition::Guard, at: &str) -> Option<Guard> {
        self.measured(def, at, 0).map(|compiled| compiled.guard)
    }

    fn measured(&mut self, def: &'d definition::Guard, at: &str, depth: usize) -> Option<CompiledGuard> {
        if depth > MAX_NESTING {
            return self.too_large(at, format!("guards are nested deeper than {MAX_NESTING} levels"));
        }
        let compiled = match def {
            definition::Guard::Cel(text) => {
                let guard = self.cel(text, &format!("{at}/cel"), &[]).map(Guard::Cel)?;
                CompiledGuard { guard, conditions: 1, depth: 0 }
            }
            definition::Guard::Name(name) => return self.named_guard(name, at, depth),
            definition::Guard::And(all) => self.operands(all, &format!("{at}/and"), depth, Guard::And)?,
            definition::Guard::Or(any) => self.operands(any, &format!("{at}/or"), depth, Guard::Or)?,
            definition::Guard::Not(guard) => {
                let inner = self.measured(guard, &format!("{at}/not"), depth.saturating_add(1))?;
                CompiledGuard { guard: Guard::Not(Box::new(inner.guard)), ..inner }
            }
        };
        let compiled = CompiledGuard { depth: compiled.depth.saturating_add(1), ..compiled };
        if compiled.conditions > MAX_CONDITIONS {
            return self.too_large(at, format!("the guard has more than {MAX_CONDITIONS} conditions"));
        }
        if depth.saturating_add(compiled.depth) > MAX_NESTING {
            return self.too_large(at, format!("guards are nested deeper than {MAX_NESTING} levels"));
        }
        Some(compiled)
    }

    fn too_large(&mut self, at: &str, message: String) -> Option<CompiledGuard> {
        let help = "write fewer conditions, or compute a variable of which the guard reads the result";
        self.problem("guard-size", at, message, Some(help.into()));
        None
    }

    fn operands(
        &mut self,
        list: &'d [definition::Guard],
        at: &str,
        depth: usize,
        make: fn(Vec<Guard>) -> Guard,
    ) -> Option<CompiledGuard> {
        // A list of no conditions counts as one.
        let (mut guards, mut conditions, mut deepest) = (Some(Vec::new()), 0usize, 0);
        for (i, operand) in list.iter().enumerate() {
            match self.measured(operand, &format!("{at}/{i}"), depth.saturating_add(1)) {
                Some(operand) => {
                    conditions = conditions.saturating_add(operand.conditions);
                    deepest = deepest.max(operand.depth);
                    if let Some(guards) = &mut guards {
                        guards.push(operand.guard);
                    }
                }
                None => guards = None,
            }
        }
        Some(CompiledGuard { guard: make(guards?), conditions: conditions.max(1), depth: deepest })
    }

    /// Compiles a named guard once.
    fn named_guard(&mut self, name: &'d str, at: &str, depth: usize) -> Option<CompiledGuard> {
        match self.named_guards.get(name) {
            Some(NamedGuard::Open) => {
                let help = Some("a guard may use others, but not itself".into());
                self.problem("guard-loop", at, "guards refer to each other in a cycle", help);
                return None;
            }
            Some(NamedGuard::Done(compiled)) => return compiled.as_ref().map(shared),
            None => {}
        }
        let Some(guard) = self.def.guards.get(name) else {
            let help = self
                .did_you_mean(name, self.def.guards.keys().map(String::as_str))
                .unwrap_or_else(|| "declare it under `guards`, or write the condition in place as `when`".to_string());
            self.problem("unknown-guard", at, format!("no guard named `{name}`"), Some(help));
            return None;
        };
        self.named_guards.insert(name, NamedGuard::Open);
        let compiled = self.measured(guard, &format!("/guards/{}", escape(name)), depth.saturating_add(1));
        let compiled = compiled.map(|compiled| CompiledGuard {
            guard: Arc::new((name.into(), compiled.guard)),
            depth: compiled.depth.saturating_add(1),
            conditions: compiled.conditions,
        });
        let found = compiled.as_ref().map(shared);
        self.named_guards.insert(name, NamedGuard::Done(compiled));
        found
    }

    pub(super) fn ledger_kind(&mut self, name: &str, at: &str) -> Option<u32> {
        let found = self.def.ledger.get_index_of(name).and_then(|i| u32::try_from(i).ok());
        if found.is_none() {
            let help = self
                .did_you_mean(name, self.def.ledger.keys().map(String::as_str))
                .unwrap_or_else(|| "declare it under `ledger`".to_string());
            self.problem("unknown-ledger-kind", at, format!("the ledger has no kind `{name}`"), Some(help));
        }
        found
    }

    pub(super) fn require(&mut self, def: &definition::Require, at: &str) -> Option<Require> {
        match def {
            definition::Require::Use { kind, key, when, rules } => {
                let at = format!("{at}/use");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.template(key, &format!("{at}/key"), &[]);
                // `entry` is not a local: it is one of the fixed roots of the scope.
                let when = match when {
                    Some(cel) => Some(self.cel(cel, &format!("{at}/when"), &[])?),
                    None => None,
                };
                let rules = self.permit_rules(rules, &format!("{at}/rules"));
                Some(Require::Use { kind: kind?, key, when, rules })
            }
            definition::Require::Open { kind, key, rule } => {
                let kind = self.ledger_kind(kind, &format!("{at}/open/kind"));
                let key = self.template(key, &format!("{at}/open/key"), &[]);
                let rule = rule.as_ref().and_then(|rule| self.rule(rule, &format!("{at}/open/rule")));
                Some(Require::Open { kind: kind?, key, rule })
            }
            definition::Require::None { kind, rule } => {
                let rule = rule.as_ref().and_then(|rule| self.rule(rule, &format!("{at}/none/rule")));
                self.ledger_kind(kind, &format!("{at}/none/kind")).map(|kind| Require::None { kind, rule })
            }
        }
    }

    /// Resolves the rule for each failure of a permit.
    fn permit_rules(&mut self, rules: &indexmap::IndexMap<String, String>, at: &str) -> SmallVec<[(Code, u32); 2]> {
        let mut out = SmallVec::new();
        for (failure, rule) in rules {
            let at = format!("{at}/{}", escape(failure));
            let code = match failure.as_str() {
                "missing" => Code::PermitMissing,
                "revoked" => Code::PermitRevoked,
                "expired" => Code::PermitExpired,
                "exhausted" => Code::PermitExhausted,
                "scope" => Code::PermitScope,
                _ => {
                    self.problem(
                        "unknown-key",
                        &at,
                        format!("unknown permit failure `{failure}`"),
                        Some(format!("known failures: {}", definition::PERMIT_FAILURES.join(", "))),
                    );
                    continue;
                }
            };
            if let Some(rule) = self.rule(rule, &at) {
                out.push((code, rule));
            }
        }
        out
    }
}

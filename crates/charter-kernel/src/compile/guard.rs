//! Compiles the conditions of a transition: guards and conditions on the ledger.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Compiler, MAX_NESTING, escape};
use crate::definition;
use crate::machine::{Guard, Require};
use crate::refusal::Code;

impl<'d> Compiler<'d> {
    pub(super) fn guard(&mut self, def: &'d definition::Guard, at: &str, depth: usize) -> Option<Guard> {
        if depth > MAX_NESTING {
            self.problem(
                "guard-loop",
                at,
                "guards refer to each other in a cycle",
                Some("a guard may use others, but not itself".into()),
            );
            return None;
        }
        let deeper = depth.saturating_add(1);
        match def {
            definition::Guard::Cel(text) => self.cel(text, &format!("{at}/cel"), &[]).map(Guard::Cel),
            definition::Guard::Name(name) => match self.def.guards.get(name) {
                Some(guard) => {
                    let guard = self.guard(guard, &format!("/guards/{}", escape(name)), deeper)?;
                    Some(Guard::Named(Arc::new((name.clone().into_boxed_str(), guard))))
                }
                None => {
                    let help =
                        self.did_you_mean(name, self.def.guards.keys().map(String::as_str)).unwrap_or_else(|| {
                            "declare it under `guards`, or write the condition in place as `when`".to_string()
                        });
                    self.problem("unknown-guard", at, format!("no guard named `{name}`"), Some(help));
                    None
                }
            },
            definition::Guard::And(all) => {
                let all: Option<Vec<_>> =
                    all.iter().enumerate().map(|(i, g)| self.guard(g, &format!("{at}/and/{i}"), deeper)).collect();
                all.map(Guard::And)
            }
            definition::Guard::Or(any) => {
                let any: Option<Vec<_>> =
                    any.iter().enumerate().map(|(i, g)| self.guard(g, &format!("{at}/or/{i}"), deeper)).collect();
                any.map(Guard::Or)
            }
            definition::Guard::Not(guard) => {
                self.guard(guard, &format!("{at}/not"), deeper).map(|g| Guard::Not(Box::new(g)))
            }
        }
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

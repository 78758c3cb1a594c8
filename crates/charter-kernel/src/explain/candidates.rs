//! Why each transition that might have taken an event did not.

use charter_expr::Program;
use serde_json::Value as Json;

use super::words::{quoted, roles_of};
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::judge::{self, active_candidates};
use crate::machine::{Guard, Machine, Require, RoleSet, Template, Transition};
use crate::refusal::{Candidate, Code};
use crate::scope::EvalContext;
use crate::snapshot::{Actor, Snapshot};

impl Machine {
    pub(super) fn candidates(
        &self,
        snapshot: &Snapshot,
        actor: &Actor,
        ev: &Ev<'_>,
        envelope: &Envelope,
    ) -> Vec<Candidate> {
        let held = self.held(envelope);
        let mut settled = snapshot.clone();
        if let Some(ledger) = &mut settled.ledger {
            crate::ledger::Ledger::settle(ledger, envelope.at);
        }
        let eyes = EvalContext {
            machine: self,
            snapshot: &settled,
            actor,
            event: Some(ev),
            by: &envelope.by,
            now: envelope.at,
            locals: &[],
            entry: None,
        };
        let chart = self.chart(actor.chart());
        let all = active_candidates(chart, &actor.configuration, ev);
        all.into_iter().filter_map(|(id, t)| self.why_not(&eyes, actor, id, t, held)).collect()
    }

    /// Why a transition is not enabled; none if it is.
    pub(crate) fn why_not(
        &self,
        eyes: &EvalContext<'_>,
        actor: &Actor,
        id: u32,
        t: &Transition,
        held: RoleSet,
    ) -> Option<Candidate> {
        let of_rule = |failed, rule: Option<u32>, program: Option<&Program>, message| {
            Some(Candidate {
                transition: t.name.to_string(),
                failed,
                rule: rule.map(|rule| self.rule_name(rule).to_string()),
                expression: program.map(|p| p.source().to_string()),
                read: program.map(|p| reads(eyes, p)).unwrap_or_default(),
                message,
            })
        };
        let candidate =
            |failed: Code, program: Option<&Program>, message: String| of_rule(failed, None, program, message);
        let who = if eyes.by.id.is_empty() { "the sender".to_string() } else { format!("`{}`", eyes.by.id) };
        if !t.by.admits(held) {
            if t.refuse.is_some() {
                return None;
            }
            return candidate(
                Code::Authority,
                None,
                format!("only {} may take this; {who} has {}", self.role_names(t.by), roles_of(eyes.by)),
            );
        }
        if let Some(guard) = &t.guard
            && let Some((program, name, error)) = failing(eyes, guard)
        {
            let called = name.map(|n| format!("guard `{n}`")).unwrap_or_else(|| format!("`{}`", program.source()));
            if t.refuse.is_some() {
                return None; // that it is not forbidden explains nothing
            }
            let message = match error {
                Some(e) => format!("{called} could not be evaluated and so does not hold: {e}"),
                None => format!("{called} does not hold"),
            };
            return candidate(Code::Guard, Some(program), message);
        }
        if let Some(program) = &t.approves
            && !judge::approves(eyes, t)
        {
            let shown = eyes.event.and_then(|e| e.data().get("digest")).and_then(Json::as_str);
            let message = match (shown, eyes.cel(program).and_then(|v| v.to_json())) {
                (None, Ok(_)) => {
                    "an approval names what it approves: `digest` is missing from the data of the event".to_string()
                }
                (Some(shown), Ok(value)) => {
                    format!(
                        "the approval is for {shown}, but what would be approved now is {}",
                        crate::digest::Digest::of_json(&value).hex()
                    )
                }
                (_, Err(e)) => format!("what is to be approved could not be evaluated: {e}"),
            };
            return candidate(Code::Stale, Some(program), message);
        }
        for require in &t.requires {
            if let Err(code) = judge::requirement(eyes, require) {
                if t.refuse.is_some() {
                    return None;
                }
                let (program, message) = self.requirement_message(eyes, require, code);
                let Some(rule) = require.rule(code) else {
                    return candidate(code, program, message);
                };
                let message = format!("{}: {message}", self.sentence(rule, eyes));
                return of_rule(code, Some(rule), program, message);
            }
        }
        if let Some(rule) = t.refuse {
            let message = self.sentence(rule, eyes);
            return of_rule(Code::Rule, Some(rule), None, message);
        }
        let quorum = t.quorum.as_ref()?;
        if !quorum.of.admits(held) {
            return candidate(
                Code::Authority,
                None,
                format!("the quorum is of {}; {who} has {}", self.role_names(quorum.of), roles_of(eyes.by)),
            );
        }
        let digest = crate::digest::Digest::of_json(eyes.event.map_or(&Json::Null, Ev::data));
        let voted = actor
            .votes
            .iter()
            .any(|v| v.transition == id && v.digest == digest && v.by.iter().any(|b| b.as_ref() == eyes.by.id));
        if voted {
            candidate(
                Code::Authority,
                None,
                format!("{who} has voted already; {} different principals are needed", quorum.count),
            )
        } else {
            None
        }
    }

    fn requirement_message<'p>(
        &self,
        eyes: &EvalContext<'_>,
        require: &'p Require,
        code: Code,
    ) -> (Option<&'p Program>, String) {
        let (kind, key, when) = match require {
            Require::Use { kind, key, when, .. } => (*kind, Some(key), when.as_ref()),
            Require::Open { kind, key, .. } => (*kind, Some(key), None),
            Require::None { kind, .. } => (*kind, None, None),
        };
        let name = self.ledger.get(kind as usize).map_or("", AsRef::as_ref);
        let program = key.and_then(|t| if let Template::Cel(p) = t { Some(p) } else { None });
        let key = match key.map(|t| eyes.text(t)) {
            Some(Ok(key)) => key.to_string(),
            Some(Err(e)) => {
                return (program, format!("the key of the `{name}` could not be evaluated: {e}"));
            }
            None => String::new(),
        };
        match code {
            Code::PermitMissing => (program, format!("there is no `{name}` `{key}`")),
            Code::PermitRevoked => (program, format!("the `{name}` `{key}` was revoked")),
            Code::PermitExpired => (program, format!("the `{name}` `{key}` has expired")),
            Code::PermitExhausted => (program, format!("the `{name}` `{key}` has no uses left")),
            Code::PermitScope => (
                when,
                format!(
                    "the `{name}` `{key}` does not cover this: `{}` does not hold",
                    when.map_or("", Program::source)
                ),
            ),
            Code::ObligationMissing => (program, format!("no `{name}` `{key}` is open")),
            _ => {
                let open: Vec<&str> =
                    eyes.snapshot.ledger.iter().flat_map(|l| l.open_keys(kind)).map(AsRef::as_ref).collect();
                (None, format!("`{name}` still open: {}", quoted(&open)))
            }
        }
    }
}

/// The part of a guard that decides against it: its program, the name of the guard it belongs to, the error if there was one.
fn failing<'g>(eyes: &EvalContext<'g>, guard: &'g Guard) -> Option<(&'g Program, Option<&'g str>, Option<String>)> {
    match guard {
        Guard::Cel(p) => match eyes.holds(p) {
            Ok(true) => None,
            Ok(false) => Some((p, None, None)),
            Err(e) => Some((p, None, Some(e.to_string()))),
        },
        Guard::Named(named) => failing(eyes, &named.1).map(|(p, inner, e)| (p, inner.or(Some(&*named.0)), e)),
        Guard::And(all) => all.iter().find_map(|g| failing(eyes, g)),
        Guard::Or(any) => {
            if eyes.guard(guard) == Ok(true) {
                return None;
            }
            any.iter().find_map(|g| failing(eyes, g))
        }
        Guard::Not(inner) => match eyes.guard(inner) {
            Ok(false) => None,
            Ok(true) => first_program(inner).map(|p| (p, guard_name(inner), None)),
            Err(e) => first_program(inner).map(|p| (p, guard_name(inner), Some(e.to_string()))),
        },
    }
}

fn guard_name(guard: &Guard) -> Option<&str> {
    if let Guard::Named(named) = guard { Some(&named.0) } else { None }
}

fn first_program(guard: &Guard) -> Option<&Program> {
    match guard {
        Guard::Cel(p) => Some(p),
        Guard::Named(named) => first_program(&named.1),
        Guard::And(list) | Guard::Or(list) => list.iter().find_map(first_program),
        Guard::Not(inner) => first_program(inner),
    }
}

/// The values a program read, by path. Large ones are cut: a refusal is for people.
fn reads(eyes: &EvalContext<'_>, program: &Program) -> serde_json::Map<String, Json> {
    let mut map = serde_json::Map::new();
    for path in program.reads() {
        let value = path.eval(eyes).and_then(|v| v.to_json()).unwrap_or(Json::Null);
        map.insert(path.text().to_string(), short(value));
    }
    map
}

fn short(value: Json) -> Json {
    const MAX: usize = 500;
    match value {
        Json::String(s) if s.chars().count() > MAX => {
            Json::String(format!("{}…", s.chars().take(MAX).collect::<String>()))
        }
        Json::Array(_) | Json::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX {
                Json::String(format!("{}…", text.chars().take(MAX).collect::<String>()))
            } else {
                value
            }
        }
        other => other,
    }
}

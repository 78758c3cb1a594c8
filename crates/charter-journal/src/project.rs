//! Projections: computes what a record changes in the SQL tables. The changes depend only on the
//! record, so the tables can be deleted and rebuilt. `docs/sql.md` documents the tables.

use charter_kernel::{EffectId, Timestamp};
use serde_json::Value as Json;

use crate::record::{Fields, SourceKind, Verdict};

/// Keys in the output of an answer that make the answer a decision (see `docs/sql.md`).
const DECISIVE: [&str; 5] = ["confidence", "decision", "action", "outcome", "verdict"];

/// A change to a projection; its run and sequence number are in the record.
#[derive(Debug)]
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))] // the in-memory store has only some of these tables
pub(crate) enum Change<'r> {
    Transition {
        index: usize,
        name: &'r str,
    },
    Refusal {
        code: &'r str,
        rule: Option<&'r str>,
    },
    Effect {
        index: usize,
        kind: &'r str,
        actor: &'r str,
        invocation: Option<&'r str>,
        src: Option<&'r str>,
        data: Option<String>,
        open: bool,
    },
    EffectEnded {
        effect: EffectId,
        how: &'static str,
    },
    TimerSet {
        timer: &'r str,
        generation: u64,
        due: Timestamp,
    },
    TimerEnded {
        timer: &'r str,
        generation: u64,
    },
    Approval {
        index: usize,
        actor: &'r str,
        transition: Option<&'r str>,
        approves: Option<&'r str>,
        digest: Option<&'r str>,
        reason: Option<&'r str>,
        vote: bool,
    },
    Ledger {
        kind: &'r str,
        key: &'r str,
        status: &'r str,
        uses: Option<i64>,
        expires: Option<Timestamp>,
        due: Option<Timestamp>,
        data: String,
        how: Option<String>,
    },
    Decision {
        kind: &'static str,
        subject: &'r str,
        outcome: Option<String>,
        confidence: Option<f64>,
        data: String,
    },
    /// The pending decision is reviewed.
    Review,
    /// The pending decision gets no review: the run continued without one.
    Unreviewed,
}

/// Passes the changes of a record to `put`, in order.
pub(crate) fn project<'r, E>(r: &'r Fields<'_>, mut put: impl FnMut(Change<'r>) -> Result<(), E>) -> Result<(), E> {
    if let Some(refusal) = &r.refusal {
        return put(Change::Refusal { code: refusal.code.word(), rule: refusal.rule.as_deref() });
    }
    for (index, name) in r.transitions.iter().enumerate() {
        put(Change::Transition { index, name })?;
    }
    if let Some(effect) = r.answers.as_deref().and_then(EffectId::parse).filter(|_| r.verdict != Verdict::Late) {
        put(Change::EffectEnded { effect, how: if r.source.kind == SourceKind::Done { "done" } else { "error" } })?;
    }
    for change in &r.timers {
        let (timer, generation) = (change.timer.as_ref(), change.generation);
        put(match change.due {
            Some(due) => Change::TimerSet { timer, generation, due },
            None => Change::TimerEnded { timer, generation },
        })?;
    }
    for (index, effect) in r.effects.iter().enumerate() {
        let kind = text(effect, "kind").unwrap_or_default();
        if let Some(cancelled) = text(effect, "effect").filter(|_| kind == "cancel").and_then(EffectId::parse) {
            put(Change::EffectEnded { effect: cancelled, how: "cancelled" })?;
        }
        let data = ["input", "data", "value"].iter().find_map(|key| effect.get(*key)).map(canonical);
        let actor = text(effect, "actor").unwrap_or("root");
        let (invocation, src) = (text(effect, "invocation"), text(effect, "src").or_else(|| text(effect, "type")));
        put(Change::Effect { index, kind, actor, invocation, src, data, open: kind == "invoke" })?;
    }
    for entry in &r.ledger {
        let number = |key: &str| entry.get(key).and_then(Json::as_i64);
        put(Change::Ledger {
            kind: text(entry, "kind").unwrap_or_default(),
            key: text(entry, "key").unwrap_or_default(),
            status: text(entry, "status").unwrap_or_default(),
            uses: number("uses"),
            expires: number("expires").map(Timestamp),
            due: number("due").map(Timestamp),
            data: entry.get("data").map(canonical).unwrap_or_default(),
            how: entry.get("how").map(canonical),
        })?;
    }
    approvals_and_decisions(r, &mut put)
}

/// Passes the approvals, votes and decisions of a record to `put`.
fn approvals_and_decisions<'r, E>(
    r: &'r Fields<'_>,
    put: &mut impl FnMut(Change<'r>) -> Result<(), E>,
) -> Result<(), E> {
    let reason = || text(&r.event.data, "reason").or_else(|| text(&r.event.data, "feedback"));
    if r.verdict == Verdict::Vote {
        return put(Change::Approval {
            index: 0,
            actor: &r.to,
            transition: None,
            approves: None,
            digest: text(&r.event.data, "digest"),
            reason: reason(),
            vote: true,
        });
    }
    if r.verdict != Verdict::Accepted {
        return Ok(());
    }
    // The next event from outside reviews the pending decision; an answer means that the run
    // continued without a review.
    match r.source.kind {
        SourceKind::External if !r.event.r#type.starts_with("charter.") => put(Change::Review)?,
        SourceKind::Done | SourceKind::Error => put(Change::Unreviewed)?,
        _ => {}
    }
    for (index, a) in r.approvals.iter().enumerate() {
        put(Change::Approval {
            index,
            actor: &a.actor,
            transition: Some(&a.transition),
            approves: Some(&a.approves),
            digest: Some(&a.digest),
            reason: reason(),
            vote: false,
        })?;
        if index == 0 {
            put(Change::Decision {
                kind: "approval",
                subject: &a.approves,
                outcome: Some(r.event.r#type.to_string()),
                confidence: None,
                data: canonical(&r.event.data),
            })?;
        }
    }
    if r.source.kind != SourceKind::Done {
        return Ok(());
    }
    let output = r.event.data.get("output").and_then(Json::as_object);
    if let Some(output) = output.filter(|o| DECISIVE.iter().any(|key| o.contains_key(*key))) {
        let outcome = DECISIVE
            .iter()
            .skip(1)
            .find_map(|key| output.get(*key))
            .map(|v| v.as_str().map_or_else(|| canonical(v), str::to_owned));
        let subject = r.source.invocation.as_deref().unwrap_or_default();
        let data = r.event.data.get("output").map(canonical).unwrap_or_default();
        put(Change::Decision {
            kind: "answer",
            subject,
            outcome,
            confidence: output.get("confidence").and_then(Json::as_f64),
            data,
        })?;
    }
    Ok(())
}

fn text<'j>(value: &'j Json, key: &str) -> Option<&'j str> {
    value.get(key).and_then(Json::as_str)
}

fn canonical(value: &Json) -> String {
    charter_kernel::digest::canonical(value)
}

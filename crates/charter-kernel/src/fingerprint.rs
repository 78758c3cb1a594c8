//! The fingerprint of a snapshot, for state-space exploration: the bytes of everything that
//! determines the future of the run.
//!
//! Sequence numbers, ids of effects, generations and absolute times are left out (timers keep their
//! order).

use std::io::Write as _;

use serde_json::Value as Json;

use crate::machine::Machine;
use crate::snapshot::{Actor, Snapshot, Timer, TimerKind};

/// Selects the data that the fingerprint covers: each method writes the relevant part of a value,
/// or nothing.
pub trait FingerprintFilter {
    /// Writes a context variable of a chart; `chart` and `slot` are indices as in
    /// [`crate::Outline`].
    fn variable(&self, chart: usize, slot: usize, value: &Json, out: &mut Vec<u8>);
    /// Writes the input of an actor.
    fn input(&self, chart: usize, value: &Json, out: &mut Vec<u8>);
    /// Writes the data of a ledger entry.
    fn entry(&self, value: &Json, out: &mut Vec<u8>);
}

impl Machine {
    /// Writes the fingerprint of a snapshot.
    pub fn fingerprint(&self, s: &Snapshot, filter: &dyn FingerprintFilter, out: &mut Vec<u8>) {
        out.push(s.status as u8);
        // The order in which actors were created does not matter.
        let mut actors: Vec<&Actor> = s.actors().collect();
        actors.sort_by(|a, b| a.identity().id.cmp(&b.identity().id));
        for actor in actors {
            self.actor_fingerprint(actor, filter, out);
        }
        number(out, s.timers.len());
        for timer in &s.timers {
            timer_fingerprint(timer, out);
        }
        for held in s.held.iter() {
            text(out, &held.actor);
            text(out, &held.invocation);
            json(out, held.outcome.as_ref().unwrap_or_else(|e| e));
        }
        for (kind, key, entry) in s.ledger.iter().flat_map(|l| l.entries()) {
            text(out, kind);
            text(out, key);
            out.push(entry.status as u8);
            number(out, entry.uses.and_then(|u| usize::try_from(u).ok()).unwrap_or(usize::MAX));
            filter.entry(&entry.data, out);
        }
    }

    fn actor_fingerprint(&self, a: &Actor, filter: &dyn FingerprintFilter, out: &mut Vec<u8>) {
        let chart = a.chart() as usize;
        text(out, &a.identity().id);
        out.extend_from_slice(&a.chart().to_le_bytes());
        out.push(a.status as u8);
        number(out, a.configuration.len());
        for state in &a.configuration {
            out.extend_from_slice(&state.to_le_bytes());
        }
        for (history, states) in a.history.iter() {
            out.extend_from_slice(&history.to_le_bytes());
            number(out, states.len());
            states.iter().for_each(|s| out.extend_from_slice(&s.to_le_bytes()));
        }
        for (slot, value) in a.context.values.iter().enumerate() {
            match value {
                Some(value) => filter.variable(chart, slot, value, out),
                None => out.push(0),
            }
        }
        filter.input(chart, &a.identity().input, out);
        number(out, a.invocations.len());
        for i in &a.invocations {
            text(out, &i.id);
            text(out, &i.src);
            out.extend_from_slice(&i.state.unwrap_or(u32::MAX).to_le_bytes());
        }
        for v in a.votes.iter() {
            out.extend_from_slice(&v.transition.to_le_bytes());
            text(out, &v.digest.hex());
            v.by.iter().for_each(|b| text(out, b));
        }
        number(out, a.bound.len());
        a.bound.iter().for_each(|s| out.extend_from_slice(&s.to_le_bytes()));
    }
}

fn timer_fingerprint(t: &Timer, out: &mut Vec<u8>) {
    text(out, &t.actor);
    match &t.what {
        TimerKind::After { state, index } => {
            out.push(0);
            out.extend_from_slice(&state.to_le_bytes());
            out.extend_from_slice(&index.to_le_bytes());
        }
        TimerKind::Send { to, kind, data, send_id } => {
            out.push(1);
            text(out, to);
            text(out, kind);
            json(out, data);
            text(out, send_id.as_deref().unwrap_or(""));
        }
        TimerKind::Timeout { invocation, .. } => {
            out.push(2);
            text(out, invocation);
        }
        TimerKind::Due { kind, key } => {
            out.push(3);
            out.extend_from_slice(&kind.to_le_bytes());
            text(out, key);
        }
    }
}

fn number(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&u64::try_from(n).unwrap_or(u64::MAX).to_le_bytes());
}

fn text(out: &mut Vec<u8>, s: &str) {
    number(out, s.len());
    out.extend_from_slice(s.as_bytes());
}

fn json(out: &mut Vec<u8>, value: &Json) {
    // Writing plain data into a Vec cannot fail.
    let _ = write!(out, "{value}");
    out.push(0);
}

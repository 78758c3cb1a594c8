//! Writes a snapshot as canonical JSON text, without an intermediate [`Json`]: every record
//! contains the digest of this text, so it is written once per event. Keys are written in canonical
//! order.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::actors::MACHINE_EFFECT;
use crate::canonical::{write, write_int, write_object, write_str, write_uint};
use crate::digest::Digest;
use crate::envelope::EffectId;
use crate::ledger::{Entry, Ledger};
use crate::machine::{Chart, Machine};
use crate::snapshot::{Actor, Context, Held, Invocation, Snapshot, Timer, TimerKind, Vote};

impl Machine {
    /// Returns the canonical JSON (RFC 8785) of the snapshot.
    #[must_use]
    pub fn snapshot_text(&self, s: &Snapshot) -> String {
        let mut out = String::with_capacity(512);
        self.write_snapshot(&mut out, s);
        out
    }

    /// Computes the SHA-256 digest of the canonical JSON of the snapshot, as in records.
    #[must_use]
    pub fn snapshot_digest(&self, s: &Snapshot) -> Digest {
        Digest::of_bytes(self.snapshot_text(s).as_bytes())
    }

    /// Returns the snapshot as JSON.
    #[must_use]
    pub fn snapshot_json(&self, s: &Snapshot) -> Json {
        let text = self.snapshot_text(s);
        let mut reader = serde_json::Deserializer::from_str(&text);
        // Data may nest deeper than serde_json's default limit; the kernel has checked its depth on
        // arrival.
        reader.disable_recursion_limit();
        Json::deserialize(&mut reader).unwrap_or_default()
    }

    /// Appends the canonical JSON (RFC 8785) of the snapshot.
    pub fn write_snapshot(&self, out: &mut String, s: &Snapshot) {
        out.push_str("{\"actors\":");
        list(out, s.actors.iter(), |out, a| self.write_actor(out, a));
        out.push_str(",\"charter\":\"");
        s.charter().push_text(out);
        out.push_str("\",\"counter\":");
        write_uint(out, s.counter);
        if !s.held.is_empty() {
            out.push_str(",\"held\":");
            list(out, s.held.iter(), |out, h| held(out, h));
        }
        if let Some(l) = s.ledger.as_deref().filter(|l| l.kinds.iter().any(|k| !k.entries.is_empty())) {
            out.push_str(",\"ledger\":");
            ledger(out, l);
        }
        if let Some(output) = &s.output {
            out.push_str(",\"output\":");
            write(out, output);
        }
        if let Some(at) = s.paused_at {
            out.push_str(",\"paused_at\":");
            write_int(out, at.0);
        }
        out.push_str(",\"run\":");
        write_str(out, &s.run.id);
        out.push_str(",\"seq\":");
        write_uint(out, s.seq);
        out.push_str(",\"status\":\"");
        out.push_str(s.status.word());
        out.push('"');
        if !s.timers.is_empty() {
            out.push_str(",\"timers\":");
            list(out, s.timers.iter(), |out, t| self.write_timer(out, s, t));
        }
        out.push_str(",\"v\":1}");
    }

    fn write_actor(&self, out: &mut String, a: &Actor) {
        let chart = self.chart(a.chart());
        let paths =
            |out: &mut String, states: &[u32]| list(out, states.iter(), |out, s| write_str(out, chart.path(*s)));
        out.push_str("{\"active\":");
        list(out, a.active(), write_str);
        if !a.bound.is_empty() {
            out.push_str(",\"bound\":");
            paths(out, &a.bound);
        }
        out.push_str(",\"context\":");
        context(out, &a.context);
        if !a.history.is_empty() {
            out.push_str(",\"history\":");
            let entries = a.history.iter().map(|(h, states)| (chart.path(*h).as_ref(), states.as_slice()));
            write_object(out, entries, |out, states| paths(out, states));
        }
        out.push_str(",\"id\":");
        write_str(out, &a.identity().id);
        out.push_str(",\"input\":");
        write(out, &a.identity().input);
        if !a.invocations.is_empty() {
            out.push_str(",\"invocations\":");
            list(out, a.invocations.iter(), |out, i| invocation(out, chart, i));
        }
        if a.identity().invocation {
            out.push_str(",\"invoked\":true");
        }
        out.push_str(",\"machine\":");
        write_str(out, a.machine());
        if let Some(output) = &a.output {
            out.push_str(",\"output\":");
            write(out, output);
        }
        if let Some(parent) = &a.identity().parent {
            out.push_str(",\"parent\":");
            write_str(out, parent);
        }
        out.push_str(",\"status\":\"");
        out.push_str(a.status.word());
        out.push('"');
        if !a.votes.is_empty() {
            out.push_str(",\"votes\":");
            list(out, a.votes.iter(), |out, v| vote(out, chart, v));
        }
        out.push('}');
    }

    fn write_timer(&self, out: &mut String, s: &Snapshot, t: &Timer) {
        out.push_str("{\"actor\":");
        write_str(out, &t.actor);
        out.push_str(",\"due\":");
        write_int(out, t.due.0);
        out.push_str(",\"generation\":");
        write_uint(out, t.generation);
        out.push_str(",\"id\":");
        write_str(out, &t.id);
        out.push_str(",\"what\":");
        match &t.what {
            TimerKind::After { state, index } => {
                out.push_str("{\"after\":{\"index\":");
                write_uint(out, (*index).into());
                out.push_str(",\"state\":");
                write_str(out, s.actors.find(&t.actor).map_or("", |a| self.chart(a.chart()).path(*state)));
            }
            TimerKind::Send { to, kind, data, send_id } => {
                out.push_str("{\"send\":{\"data\":");
                write(out, data);
                out.push_str(",\"id\":");
                match send_id {
                    Some(id) => write_str(out, id),
                    None => out.push_str("null"),
                }
                out.push_str(",\"to\":");
                write_str(out, to);
                out.push_str(",\"type\":");
                write_str(out, kind);
            }
            TimerKind::Timeout { invocation, effect } => {
                out.push_str("{\"timeout\":{\"effect\":");
                if !effect_text(out, *effect) {
                    out.push_str("null");
                }
                out.push_str(",\"invocation\":");
                write_str(out, invocation);
            }
            TimerKind::Due { kind, key } => {
                out.push_str("{\"due\":{\"key\":");
                write_str(out, key);
                out.push_str(",\"kind\":");
                write_str(out, self.ledger.get(*kind as usize).map_or("", AsRef::as_ref));
            }
        }
        out.push_str("}}}");
    }
}

fn list<T>(out: &mut String, items: impl Iterator<Item = T>, mut item: impl FnMut(&mut String, T)) {
    out.push('[');
    for (i, x) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        item(out, x);
    }
    out.push(']');
}

/// Writes `"SEQ/INDEX"`. Returns false and writes nothing for a machine, which no effect has
/// started.
fn effect_text(out: &mut String, effect: EffectId) -> bool {
    let is_effect = effect != MACHINE_EFFECT;
    if is_effect {
        out.push('"');
        write_uint(out, effect.seq);
        out.push('/');
        write_uint(out, effect.index.into());
        out.push('"');
    }
    is_effect
}

fn context(out: &mut String, c: &Context) {
    let slot =
        |s: &u32| Some((c.identity.shape.slots.get(*s as usize)?.as_ref(), c.values.get(*s as usize)?.as_deref()?));
    write_object(out, c.identity.shape.sorted.iter().filter_map(slot), write);
}

fn invocation(out: &mut String, chart: &Chart, i: &Arc<Invocation>) {
    out.push('{');
    if i.effect != MACHINE_EFFECT {
        out.push_str("\"effect\":");
        effect_text(out, i.effect);
        out.push(',');
    }
    out.push_str("\"id\":");
    write_str(out, &i.id);
    out.push_str(",\"input\":");
    write(out, &i.input);
    out.push_str(",\"src\":");
    write_str(out, &i.src);
    if let Some(state) = i.state {
        out.push_str(",\"state\":");
        write_str(out, chart.path(state));
    }
    out.push('}');
}

fn vote(out: &mut String, chart: &Chart, v: &Vote) {
    out.push_str("{\"by\":");
    list(out, v.by.iter(), |out, by| write_str(out, by));
    out.push_str(",\"digest\":\"");
    v.digest.push_text(out);
    out.push_str("\",\"transition\":");
    write_str(out, &chart.transition(v.transition).name);
    out.push('}');
}

fn held(out: &mut String, h: &Held) {
    out.push_str("{\"actor\":");
    write_str(out, &h.actor);
    if let Ok(done) = &h.outcome {
        out.push_str(",\"done\":");
        write(out, done);
    }
    out.push_str(",\"effect\":");
    if !effect_text(out, h.effect) {
        out.push_str("\"\"");
    }
    if let Err(error) = &h.outcome {
        out.push_str(",\"error\":");
        write(out, error);
    }
    out.push_str(",\"invocation\":");
    write_str(out, &h.invocation);
    out.push('}');
}

fn ledger(out: &mut String, l: &Ledger) {
    let kinds = l.names.iter().map(AsRef::as_ref).zip(&l.kinds).filter(|(_, k)| !k.entries.is_empty());
    write_object(out, kinds, |out, kind| {
        write_object(out, kind.entries.iter().map(|(key, e)| (key.as_ref(), e.as_ref())), entry);
    });
}

fn entry(out: &mut String, e: &Entry) {
    out.push_str("{\"data\":");
    write(out, &e.data);
    for (key, at) in [(",\"due\":", e.due), (",\"expires\":", e.expires)] {
        if let Some(at) = at {
            out.push_str(key);
            write_int(out, at.0);
        }
    }
    if let Some(how) = &e.how {
        out.push_str(",\"how\":");
        write(out, how);
    }
    out.push_str(",\"status\":\"");
    out.push_str(e.status.word());
    out.push('"');
    if let Some(uses) = e.uses {
        out.push_str(",\"uses\":");
        write_uint(out, uses);
    }
    out.push('}');
}

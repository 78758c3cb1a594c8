//! The text of a record: its fields, written directly as canonical JSON, and its hash.

use charter_kernel::canonical::{write, write_int, write_object, write_str, write_uint};
use charter_kernel::{Digest, Principal};
use serde_json::Value as Json;

use super::fields::{Approval, EventField, Fields, Source};
use super::json::json_of;
use super::{GENESIS, timestamp};

/// The largest integer that every JSON parser represents exactly.
const SAFE: u64 = (1 << 53) - 1;

impl Fields<'_> {
    /// Appends the record; sets and returns its hash.
    pub(crate) fn write_hashed(&mut self, out: &mut String) -> Digest {
        let start = out.len();
        let place = self.write_with_zeros(out);
        let behind = place.saturating_add(HASH_MEMBER);
        let text = out.as_bytes();
        let hash =
            Digest::of_parts([text.get(start..place).unwrap_or_default(), text.get(behind..).unwrap_or_default()]);
        let mut member = String::with_capacity(HASH_MEMBER);
        hash_member(&mut member, &hash);
        // Replace the zeros.
        out.replace_range(place..behind, &member);
        self.hash = hash;
        hash
    }

    /// Appends the record with zeros as its hash; returns the position of the member `hash`.
    fn write_with_zeros(&self, out: &mut String) -> usize {
        out.push('{');
        if let Some(effect) = &self.answers {
            out.push_str("\"answers\":");
            write_str(out, effect);
            out.push(',');
        }
        if !self.approvals.is_empty() {
            out.push_str("\"approvals\":");
            list(out, &self.approvals, approval);
            out.push(',');
        }
        out.push_str("\"at\":\"");
        timestamp::push(out, self.at);
        out.push_str("\",\"by\":");
        principal(out, &self.by);
        out.push_str(",\"charter\":\"");
        self.charter.push_text(out);
        out.push_str("\",\"effects\":");
        list(out, &self.effects, write);
        out.push_str(",\"event\":");
        event(out, &self.event);
        if let Some(seen) = self.expected_seq {
            out.push_str(",\"expected_seq\":");
            whole(out, seen);
        }
        if let Some(origin) = &self.forked_from {
            out.push_str(",\"forked_from\":{");
            if origin.dry {
                out.push_str("\"dry\":true,");
            }
            out.push_str("\"hash\":\"");
            origin.hash.push_text(out);
            out.push_str("\",\"run\":");
            write_str(out, &origin.run);
            out.push_str(",\"seq\":");
            write_uint(out, origin.seq);
            out.push('}');
        }
        out.push_str(",\"from\":");
        list(out, &self.from, |out, s| write_str(out, s));
        out.push(',');
        let place = out.len();
        hash_member(out, &GENESIS);
        out.push_str("\"id\":");
        write_str(out, &self.id);
        if !self.ledger.is_empty() {
            out.push_str(",\"ledger\":");
            list(out, &self.ledger, write);
        }
        if let Some(manifest) = &self.manifest {
            out.push_str(",\"manifest\":");
            // Plain data with string keys always serializes.
            write(out, &serde_json::to_value(manifest).unwrap_or_default());
        }
        if !self.notes.is_empty() {
            out.push_str(",\"notes\":");
            list(out, &self.notes, write);
        }
        out.push_str(",\"prev\":\"");
        self.prev.push_text(out);
        out.push('"');
        if let Some(refusal) = &self.refusal {
            out.push_str(",\"refusal\":");
            // Plain data with string keys always serializes.
            write(out, &serde_json::to_value(refusal).unwrap_or_default());
        }
        out.push_str(",\"run\":");
        write_str(out, &self.run);
        out.push_str(",\"seq\":");
        write_uint(out, self.seq);
        out.push_str(",\"snapshot\":\"");
        self.snapshot.push_text(out);
        out.push_str("\",\"source\":");
        source(out, &self.source);
        out.push_str(",\"state\":");
        list(out, &self.state, |out, s| write_str(out, s));
        if let Some(status) = self.status {
            out.push_str(",\"status\":\"");
            out.push_str(status.word());
            out.push('"');
        }
        if !self.timers.is_empty() {
            out.push_str(",\"timers\":");
            list(out, &self.timers, |out, t| t.write(out));
        }
        out.push_str(",\"to\":");
        write_str(out, &self.to);
        out.push_str(",\"transitions\":");
        list(out, &self.transitions, |out, s| write_str(out, s));
        if let Some(unique) = &self.unique {
            out.push_str(",\"unique\":");
            // Plain data with string keys always serializes.
            write(out, &serde_json::to_value(unique).unwrap_or_default());
        }
        out.push_str(",\"v\":");
        write_uint(out, self.v.into());
        out.push_str(",\"verdict\":\"");
        out.push_str(self.verdict.word());
        out.push_str("\"}");
        place
    }
}

/// Length of the member `hash`, with the comma after it.
const HASH_MEMBER: usize = "\"hash\":\"sha256:\",".len() + 64;

fn hash_member(out: &mut String, hash: &Digest) {
    out.push_str("\"hash\":\"");
    hash.push_text(out);
    out.push_str("\",");
}

fn list<T>(out: &mut String, items: &[T], mut item: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (i, x) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        item(out, x);
    }
    out.push(']');
}

fn principal(out: &mut String, by: &Principal) {
    out.push('{');
    if let Some(auth) = by.auth {
        out.push_str("\"auth\":\"");
        out.push_str(auth.word());
        out.push_str("\",");
    }
    out.push_str("\"id\":");
    write_str(out, &by.id);
    if let Some(kind) = by.kind {
        out.push_str(",\"kind\":\"");
        out.push_str(kind.word());
        out.push('"');
    }
    out.push_str(",\"roles\":");
    list(out, &by.roles, |out, r| write_str(out, r));
    out.push('}');
}

fn event(out: &mut String, e: &EventField<'_>) {
    out.push('{');
    if e.redacted.is_none() {
        out.push_str("\"data\":");
        write(out, &e.data);
        out.push(',');
    }
    out.push_str("\"type\":");
    write_str(out, &e.r#type);
    if let Some(w) = &e.redacted {
        out.push_str(",\"withheld\":{\"digest\":\"");
        w.digest.push_text(out);
        out.push_str("\",\"size\":");
        write_uint(out, w.size);
        out.push('}');
    }
    out.push('}');
}

fn source(out: &mut String, s: &Source<'_>) {
    out.push('{');
    if let Some(at) = s.at {
        // A string, because it may be beyond 2^53.
        out.push_str("\"at\":\"");
        out.push_str(&at.0.to_string());
        out.push_str("\",");
    }
    if let Some(effect) = &s.effect {
        out.push_str("\"effect\":");
        write_str(out, effect);
        out.push(',');
    }
    if let Some(generation) = s.generation {
        out.push_str("\"generation\":");
        whole(out, generation);
        out.push(',');
    }
    if let Some(invocation) = &s.invocation {
        out.push_str("\"invocation\":");
        write_str(out, invocation);
        out.push(',');
    }
    out.push_str("\"kind\":\"");
    out.push_str(s.kind.word());
    out.push('"');
    for (key, text) in [(",\"timer\":", &s.timer), (",\"to\":", &s.to)] {
        if let Some(text) = text {
            out.push_str(key);
            write_str(out, text);
        }
    }
    out.push('}');
}

fn approval(out: &mut String, a: &Approval<'_>) {
    let entries =
        [("actor", &a.actor), ("approves", &a.approves), ("digest", &a.digest), ("transition", &a.transition)];
    write_object(out, entries.into_iter(), |out, text| write_str(out, text));
}

/// Writes an integer: as a number if every JSON parser represents it exactly, otherwise as a
/// string.
fn whole(out: &mut String, n: u64) {
    if n <= SAFE {
        write_int(out, n.try_into().unwrap_or(i64::MAX));
    } else {
        out.push('"');
        out.push_str(&n.to_string());
        out.push('"');
    }
}

/// Computes the hash that a record should have, as documented: parse the text, remove `hash`,
/// serialize it as canonical JSON, apply SHA-256.
pub(crate) fn rehash(text: &str) -> Option<Digest> {
    let Ok(Json::Object(mut map)) = json_of(text) else {
        return None;
    };
    map.remove("hash");
    Some(Digest::of_json(&Json::Object(map)))
}

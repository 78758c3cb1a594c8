//! Generates random configs and event streams that avoid the deviations in `docs/xstate.md`. A seed
//! determines a case. The configs of [`case`] are charters, too; those of [`wild`] use what only
//! XState has.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing)]

mod tree;
mod write;

use serde_json::{Value as Json, json};

use self::tree::Tree;

pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// Actions that change nothing in the machine. They log their names apart, as effects.
pub const NOTES: [&str; 3] = ["p", "q", "r"];
/// Actions that do more than log their name: they raise an event now or later, cancel it, or log
/// event data.
pub const SPECIAL: [(&str, &str); 4] = [
    ("tell", "{raise: {type: H}}"),
    ("later", "[{cancel: later}, {send: {to: self, type: H, delay: 5ms, id: later}}]"),
    ("never", "{cancel: later}"),
    (
        "given",
        "{assign: {log: \"= context.log + (has(event.output) && event.output != null ? string(event.output) : '-') + ' '\"}}",
    ),
];
const EVENTS: [&str; 11] = ["E", "F", "G.x", "G.x.y", "G", "H", "P0", "P1", "P2", "P3", "A B"];

pub struct Case {
    pub seed: u64,
    /// JSON text, because the order of keys matters.
    pub config: String,
    pub events: Vec<RuntimeEvent>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RuntimeEvent {
    Event(String),
    Wait(i64),
    /// The n-th pending invocation completes or fails.
    Done(usize),
    Failed(usize),
}

impl RuntimeEvent {
    fn json(&self) -> Json {
        match self {
            RuntimeEvent::Event(kind) => json!({"type": kind}),
            RuntimeEvent::Wait(ms) => json!({"wait": ms}),
            RuntimeEvent::Done(n) => json!({"done": n}),
            RuntimeEvent::Failed(n) => json!({"failed": n}),
        }
    }

    fn of(json: &Json) -> Option<RuntimeEvent> {
        let number = |key: &str| usize::try_from(json[key].as_u64()?).ok();
        let kind = || Some(RuntimeEvent::Event(json["type"].as_str()?.to_owned()));
        let wait = || Some(RuntimeEvent::Wait(json["wait"].as_i64()?));
        kind()
            .or_else(wait)
            .or_else(|| number("done").map(RuntimeEvent::Done))
            .or_else(|| number("failed").map(RuntimeEvent::Failed))
    }
}

/// Returns a charter with the declarations that the configs need.
pub fn around() -> String {
    let names = NAMES.map(|n| format!("  {n}: {{assign: {{log: \"= context.log + '{n} '\"}}}}\n"));
    let notes = NOTES.map(|n| format!("  {n}: {{log: {n}}}\n"));
    let special = SPECIAL.map(|(name, action)| format!("  {name}: {action}\n"));
    format!(
        "charter: 1\nid: around\nstrict: false\nstates: {{only: {{}}}}\n\
         guards: {{yes: 'true', no: 'false', is: params.value}}\nactors: {{work: {{kind: scripted}}}}\n\
         delays: {{soon: 5ms}}\nactions:\n{}{}{}  say: {{assign: {{log: \"= context.log + params.text + ' '\"}}}}\n",
        names.concat(),
        notes.concat(),
        special.concat()
    )
}

impl Case {
    /// One line of the file of cases: everything that XState needs. The config is text in it.
    pub fn line(&self) -> String {
        let events: Vec<Json> = self.events.iter().map(RuntimeEvent::json).collect();
        json!({"config": self.config, "events": events, "names": NAMES, "notes": NOTES}).to_string()
    }

    pub fn of_line(line: &Json) -> Case {
        let events = line["events"].as_array().unwrap().iter().map(|e| RuntimeEvent::of(e).unwrap()).collect();
        Case { seed: 0, config: line["config"].as_str().unwrap().to_owned(), events }
    }
}

pub struct Random(u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n.max(1)).unwrap()).unwrap()
    }
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Returns a case that is a charter, too.
pub fn case(seed: u64) -> Case {
    generate(seed, false)
}

/// Returns a case that uses everything that an import translates.
pub fn wild(seed: u64) -> Case {
    generate(seed, true)
}

fn generate(seed: u64, wild: bool) -> Case {
    let mut r = Random(seed);
    let tree = Tree::grow(&mut r, wild);
    let config = tree.config(&mut r);
    let events = (0..12)
        .map(|_| match r.below(100) {
            0..15 => RuntimeEvent::Wait(5),
            15..25 => RuntimeEvent::Done(r.below(4)),
            25..30 => RuntimeEvent::Failed(r.below(4)),
            _ => RuntimeEvent::Event(r.pick(&EVENTS).to_owned()),
        })
        .collect();
    Case { seed, config, events }
}

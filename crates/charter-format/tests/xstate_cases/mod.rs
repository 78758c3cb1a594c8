//! Random configs and streams of events, without the deviations that are named in `docs/xstate.md`. A seed makes a case, always the same.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value as Json, json};

pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const EVENTS: [&str; 6] = ["E", "F", "G.x", "G.x.y", "G", "H"];
const DESCRIPTORS: [&str; 8] = ["E", "F", "G.x", "G.*", "G.x.*", "H", "*", "E"];

pub struct Case {
    pub seed: u64,
    /// Text, because the order of its keys is meaning.
    pub config: String,
    pub events: Vec<Happening>,
}

#[derive(Debug, Clone)]
pub enum Happening {
    Event(&'static str),
    Wait(i64),
}

impl Case {
    pub fn line(&self) -> String {
        let events: Vec<Json> = self
            .events
            .iter()
            .map(|e| match e {
                Happening::Event(kind) => json!({"type": kind}),
                Happening::Wait(ms) => json!({"wait": ms}),
            })
            .collect();
        format!("{{\"config\":{},\"names\":{},\"events\":{}}}", self.config, json!(NAMES), json!(events))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n.max(1)).unwrap()).unwrap()
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Atomic,
    Compound,
    Parallel,
    Final,
    History,
}

struct State {
    key: String,
    kind: Kind,
    children: Vec<usize>,
    parent: Option<usize>,
}

pub fn case(seed: u64) -> Case {
    let mut r = Random(seed);
    let mut states = vec![State { key: "m".into(), kind: if r.chance(15) { Kind::Parallel } else { Kind::Compound }, children: vec![], parent: None }];
    let mut next = 0;
    while next < states.len() {
        grow(&mut states, next, &mut r);
        next += 1;
    }
    let config = write(&states, 0, &mut r);
    let events = (0..12).map(|_| if r.chance(20) { Happening::Wait(5) } else { Happening::Event(r.pick(&EVENTS)) }).collect();
    Case { seed, config, events }
}

fn depth(states: &[State], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(up) = states[at].parent {
        (at, depth) = (up, depth + 1);
    }
    depth
}

fn grow(states: &mut Vec<State>, at: usize, r: &mut Random) {
    let kind = states[at].kind;
    if !matches!(kind, Kind::Compound | Kind::Parallel) {
        return;
    }
    let deep = depth(states, at) >= 3 || states.len() > 24;
    let count = 2 + r.below(3);
    for n in 0..count {
        let child = match r.below(100) {
            _ if deep => Kind::Atomic,
            0..35 => Kind::Atomic,
            35..65 => Kind::Compound,
            65..80 => Kind::Parallel,
            80..92 if kind == Kind::Compound && n > 0 => Kind::Final,
            92.. if n > 0 => Kind::History,
            _ => Kind::Atomic,
        };
        let number = states.len();
        states.push(State { key: format!("s{number}"), kind: child, children: vec![], parent: Some(at) });
        states[at].children.push(number);
    }
}

fn path(states: &[State], at: usize) -> String {
    match states[at].parent {
        None => states[at].key.clone(),
        Some(up) => format!("{}.{}", path(states, up), states[at].key),
    }
}

/// Somewhere to go: anywhere but the root.
fn target(states: &[State], r: &mut Random) -> String {
    let to = 1 + r.below(states.len() - 1);
    format!("#{}", path(states, to))
}

/// A sibling further on, so that transitions which nobody sends come to an end.
fn onward(states: &[State], at: usize, r: &mut Random) -> Option<String> {
    let siblings = &states[states[at].parent?].children;
    let later: Vec<usize> = siblings.iter().copied().filter(|s| *s > at && states[*s].kind != Kind::History).collect();
    (!later.is_empty() && states[states[at].parent?].kind == Kind::Compound).then(|| states[r.pick(&later)].key.clone())
}

fn actions(r: &mut Random) -> String {
    let names: Vec<&str> = (0..r.below(3)).map(|_| r.pick(&NAMES)).collect();
    json!(names).to_string()
}

fn transition(states: &[State], at: usize, r: &mut Random) -> String {
    let mut parts = vec![format!("\"actions\":{}", actions(r))];
    let leaf = matches!(states[at].kind, Kind::Atomic);
    // Targetless on a state with regions is a named deviation.
    if !(leaf && r.chance(15)) {
        parts.push(format!("\"target\":\"{}\"", target(states, r)));
        if r.chance(25) && states[at].parent.is_some() {
            parts.push("\"reenter\":true".into());
        }
    }
    match r.below(10) {
        0 => parts.push("\"guard\":\"no\"".into()),
        1 => parts.push("\"guard\":\"yes\"".into()),
        _ => {}
    }
    format!("{{{}}}", parts.join(","))
}

fn write(states: &[State], at: usize, r: &mut Random) -> String {
    let state = &states[at];
    let mut parts: Vec<String> = Vec::new();
    if at == 0 {
        parts.push("\"id\":\"m\",\"context\":{\"log\":\"\"}".into());
    }
    match state.kind {
        Kind::History => {
            let deep = if r.chance(50) { "deep" } else { "shallow" };
            parts.push(format!("\"type\":\"history\",\"history\":\"{deep}\""));
            return format!("{{{}}}", parts.join(","));
        }
        Kind::Final => parts.push("\"type\":\"final\"".into()),
        Kind::Parallel => parts.push("\"type\":\"parallel\"".into()),
        Kind::Compound => {
            let able: Vec<usize> = state.children.iter().copied().filter(|c| states[*c].kind != Kind::History).collect();
            parts.push(format!("\"initial\":\"{}\"", states[r.pick(&able)].key));
        }
        Kind::Atomic => {}
    }
    parts.push(format!("\"entry\":{},\"exit\":{}", actions(r), actions(r)));
    if state.kind != Kind::Final {
        let mut on: Vec<(&str, String)> = Vec::new();
        for _ in 0..r.below(4) {
            let event = r.pick(&DESCRIPTORS);
            if on.iter().all(|(e, _)| *e != event) {
                let list: Vec<String> = (0..1 + r.below(2)).map(|_| transition(states, at, r)).collect();
                on.push((event, format!("[{}]", list.join(","))));
            }
        }
        let on: Vec<String> = on.into_iter().map(|(e, t)| format!("\"{e}\":{t}")).collect();
        parts.push(format!("\"on\":{{{}}}", on.join(",")));
        if let Some(to) = onward(states, at, r).filter(|_| r.chance(30)) {
            parts.push(format!("\"onDone\":{{\"target\":\"{to}\",\"actions\":{}}}", actions(r)));
        }
        if let Some(to) = onward(states, at, r).filter(|_| r.chance(12)) {
            parts.push(format!("\"always\":[{{\"guard\":\"no\",\"target\":\"{to}\"}},{{\"target\":\"{to}\",\"actions\":{}}}]", actions(r)));
        }
        if at > 0 && r.chance(25) {
            parts.push(format!("\"after\":{{\"5\":{},\"10\":{}}}", transition(states, at, r), transition(states, at, r)));
        }
    }
    if !state.children.is_empty() {
        let children: Vec<String> = state.children.iter().map(|c| format!("\"{}\":{}", states[*c].key, write(states, *c, r))).collect();
        parts.push(format!("\"states\":{{{}}}", children.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

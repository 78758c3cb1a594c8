//! Generates random configs and event streams that avoid the deviations in `docs/xstate.md`. A seed
//! determines a case.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value as Json, json};

pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
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
const EVENTS: [&str; 10] = ["E", "F", "G.x", "G.x.y", "G", "H", "P0", "P1", "P2", "P3"];
/// The events of states with regions, by depth. The states inside do not use them, because there is
/// a documented deviation: whether an ancestor handles an event that only some regions handle.
const OUTER: [&str; 4] = ["P0", "P1", "P2", "P3"];
const DESCRIPTORS: [&str; 8] = ["E", "F", "G.x", "G.*", "G.x.*", "H", "*", "E"];

pub struct Case {
    pub seed: u64,
    /// JSON text, because the order of keys matters.
    pub config: String,
    pub events: Vec<RuntimeEvent>,
}

#[derive(Debug, Clone)]
pub enum RuntimeEvent {
    Event(&'static str),
    Wait(i64),
    /// The n-th pending invocation completes or fails.
    Done(usize),
    Failed(usize),
}

/// Returns a charter with the declarations that the configs need.
pub fn around() -> String {
    let names = NAMES.map(|n| format!("  {n}: {{assign: {{log: \"= context.log + '{n} '\"}}}}\n"));
    let special = SPECIAL.map(|(name, action)| format!("  {name}: {action}\n"));
    format!(
        "charter: 1\nid: around\nstrict: false\nstates: {{only: {{}}}}\nguards: {{yes: 'true', no: 'false'}}\nactors: {{work: {{kind: scripted}}}}\nactions:\n{}{}",
        names.concat(),
        special.concat()
    )
}

impl Case {
    pub fn line(&self) -> String {
        let events: Vec<Json> = self
            .events
            .iter()
            .map(|e| match e {
                RuntimeEvent::Event(kind) => json!({"type": kind}),
                RuntimeEvent::Wait(ms) => json!({"wait": ms}),
                RuntimeEvent::Done(n) => json!({"done": n}),
                RuntimeEvent::Failed(n) => json!({"failed": n}),
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
    let mut states = vec![State {
        key: "m".into(),
        kind: if r.chance(15) { Kind::Parallel } else { Kind::Compound },
        children: vec![],
        parent: None,
    }];
    let mut next = 0;
    while next < states.len() {
        grow(&mut states, next, &mut r);
        next += 1;
    }
    let config = write(&states, 0, &mut r);
    let events = (0..12)
        .map(|_| match r.below(100) {
            0..15 => RuntimeEvent::Wait(5),
            15..25 => RuntimeEvent::Done(r.below(4)),
            25..30 => RuntimeEvent::Failed(r.below(4)),
            _ => RuntimeEvent::Event(r.pick(&EVENTS)),
        })
        .collect();
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

/// Picks a random target other than the root.
fn target(states: &[State], r: &mut Random) -> usize {
    1 + r.below(states.len() - 1)
}

fn in_regions(states: &[State], mut at: usize) -> bool {
    while let Some(up) = states[at].parent {
        if states[up].kind == Kind::Parallel {
            return true;
        }
        at = up;
    }
    false
}

/// Finds a state in another region, if `at` is inside a region.
fn beside(states: &[State], mut at: usize) -> Option<usize> {
    if states[at].kind == Kind::History {
        return None;
    }
    while let Some(up) = states[at].parent {
        if states[up].kind == Kind::Parallel {
            let other = |s: &usize| *s != at && states[*s].kind != Kind::History;
            let region = states[up].children.iter().copied().find(other)?;
            let mut inside = states[region].children.iter().copied();
            return inside.rfind(|s| states[*s].kind == Kind::Atomic).or(Some(region));
        }
        at = up;
    }
    None
}

fn has_regions(states: &[State], at: usize) -> bool {
    let parallel = |s: usize| states[s].kind == Kind::Parallel;
    (at..states.len()).any(|s| parallel(s) && (s == at || is_inside(states, s, at)))
}

fn is_inside(states: &[State], mut at: usize, of: usize) -> bool {
    while let Some(up) = states[at].parent {
        if up == of {
            return true;
        }
        at = up;
    }
    false
}

/// Picks a later sibling, so that eventless transitions terminate.
fn onward(states: &[State], at: usize, r: &mut Random) -> Option<String> {
    let siblings = &states[states[at].parent?].children;
    let later: Vec<usize> = siblings.iter().copied().filter(|s| *s > at && states[*s].kind != Kind::History).collect();
    (!later.is_empty() && states[states[at].parent?].kind == Kind::Compound).then(|| states[r.pick(&later)].key.clone())
}

fn actions(r: &mut Random) -> String {
    let mut names: Vec<&str> = (0..r.below(3)).map(|_| r.pick(&NAMES)).collect();
    if r.chance(8) {
        names.push(r.pick(&SPECIAL).0);
    }
    json!(names).to_string()
}

fn transition(states: &[State], at: usize, r: &mut Random) -> String {
    let mut parts = vec![format!("\"actions\":{}", actions(r))];
    let leaf = matches!(states[at].kind, Kind::Atomic);
    // Transitions inside regions always have a target: whether ancestors also handle the event of a
    // transition without a target is a documented deviation.
    let regions = in_regions(states, at);
    if !(leaf && !regions && r.chance(15)) {
        let mut to = target(states, r);
        // Entering a history state from inside its parent is a documented deviation.
        let looks_in = |to: usize| {
            let of = states[to].parent.filter(|_| states[to].kind == Kind::History);
            of.is_some_and(|of| of == at || is_inside(states, at, of))
        };
        let mut tries = 0;
        while looks_in(to) || (regions && leaf && to == at) {
            to = target(states, r);
            tries += 1;
            if tries > 50 {
                return "{\"guard\":\"no\"}".into();
            }
        }
        let mut names = vec![to];
        // The transition enters several regions at once.
        if let Some(beside) = beside(states, to).filter(|_| r.chance(30)) {
            names.push(beside);
        }
        let names: Vec<String> = names.iter().map(|to| format!("#{}", path(states, *to))).collect();
        parts.push(format!("\"target\":{}", json!(names)));
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
        Kind::Final => parts.push(format!("\"type\":\"final\",\"output\":\"o{at}\"")),
        Kind::Parallel => parts.push("\"type\":\"parallel\"".into()),
        Kind::Compound => {
            let able: Vec<usize> =
                state.children.iter().copied().filter(|c| states[*c].kind != Kind::History).collect();
            parts.push(format!("\"initial\":\"{}\"", states[r.pick(&able)].key));
        }
        Kind::Atomic => {}
    }
    parts.push(format!("\"entry\":{},\"exit\":{}", actions(r), actions(r)));
    if state.kind != Kind::Final {
        let mut on: Vec<(&str, String)> = Vec::new();
        for _ in 0..r.below(4) {
            let event = if has_regions(states, at) { OUTER[depth(states, at).min(3)] } else { r.pick(&DESCRIPTORS) };
            if event == "*" && in_regions(states, at) {
                continue;
            }
            if on.iter().all(|(e, _)| *e != event) {
                let list: Vec<String> = (0..1 + r.below(2)).map(|_| transition(states, at, r)).collect();
                on.push((event, format!("[{}]", list.join(","))));
            }
        }
        let on: Vec<String> = on.into_iter().map(|(e, t)| format!("\"{e}\":{t}")).collect();
        parts.push(format!("\"on\":{{{}}}", on.join(",")));
        let can_be_done = state.kind != Kind::Atomic || r.chance(5);
        if let Some(to) = onward(states, at, r).filter(|_| can_be_done && r.chance(50)) {
            parts.push(format!("\"onDone\":{{\"target\":\"{to}\",\"actions\":{}}}", actions(r)));
        }
        if let Some(to) = onward(states, at, r).filter(|_| r.chance(12)) {
            parts.push(format!(
                "\"always\":[{{\"guard\":\"no\",\"target\":\"{to}\"}},{{\"target\":\"{to}\",\"actions\":{}}}]",
                actions(r)
            ));
        }
        if at > 0 && r.chance(20) {
            let id = if r.chance(50) { format!("\"id\":\"w{at}\",") } else { String::new() };
            parts.push(format!(
                "\"invoke\":{{\"src\":\"work\",{id}\"onDone\":{},\"onError\":{}}}",
                transition(states, at, r),
                transition(states, at, r)
            ));
        }
        if at > 0 && r.chance(25) {
            parts.push(format!(
                "\"after\":{{\"5\":{},\"10\":{}}}",
                transition(states, at, r),
                transition(states, at, r)
            ));
        }
    }
    if !state.children.is_empty() {
        let children: Vec<String> =
            state.children.iter().map(|c| format!("\"{}\":{}", states[*c].key, write(states, *c, r))).collect();
        parts.push(format!("\"states\":{{{}}}", children.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

//! Random charters for the second opinion on proofs for all data: conditions, actions and
//! properties of all kinds, in few places each, so that one wrong decision of a proof shows.

use crate::second_opinion::Numbers;
use crate::second_opinion_parts::*;

/// What a charter has besides states, events and data. Each has a few of them, because with all of
/// them little could be proved.
#[derive(Clone, Copy, PartialEq)]
enum Feature {
    /// Actions and conditions that fail for some data.
    Failure,
    /// Permits and obligations.
    Ledger,
    /// Actors that are spawned.
    Children,
    Interlock,
    /// Delays that are computed.
    Delay,
    /// Conditions over senders.
    Sender,
    /// Votes and approvals.
    Vote,
    /// Times, digests, maps with computed keys, numbers that change their type.
    Value,
}
use Feature::{Children, Delay, Failure, Interlock, Ledger, Sender, Value, Vote};

const FEATURES: [Feature; 8] = [Failure, Ledger, Children, Interlock, Delay, Sender, Value, Vote];

/// How many transitions a charter has.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    /// Those of two states, so that each decision shows.
    Tiny,
    Sparse,
    Dense,
}

struct Maker<'r> {
    r: &'r mut Numbers,
    size: Size,
    features: Vec<Feature>,
}

impl Maker<'_> {
    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Whether a feature shows in this place.
    fn shows(&mut self, feature: Feature) -> bool {
        self.has(feature) && self.r.below(2) == 0
    }

    fn condition(&mut self, data: bool) -> &'static str {
        if data && self.shows(Failure) {
            return self.r.of(&FAILING);
        }
        if data && self.shows(Sender) {
            return self.r.of(&OF_SENDER);
        }
        if data && self.shows(Value) {
            return self.r.of(&OF_VALUE);
        }
        if data && self.r.below(2) == 0 { self.r.of(&OF_EVENT) } else { self.r.of(&OF_CONTEXT) }
    }

    fn action(&mut self, data: bool) -> String {
        let list: &[&str] = match data {
            true if self.shows(Failure) => &FAILING_ACTIONS,
            true if self.shows(Sender) => &ACTIONS_OF_SENDER,
            true if self.shows(Value) => &ACTIONS_OF_VALUE,
            true if self.r.below(3) > 0 => &ACTIONS,
            _ if self.shows(Ledger) => &ACTIONS_OF_LEDGER,
            true if self.shows(Children) => &["spawn: {machine: child, id: '= event.s', input: '= event.x'}"],
            _ if self.shows(Children) => &["spawn: {machine: child, id: one, input: 1}"],
            // An event that raises itself ends only at the limit of microsteps.
            _ => &ACTIONS[..7],
        };
        self.r.of(list).to_string()
    }

    /// A transition; with `data`, the data of an event and its sender can be read.
    fn transition(&mut self, data: bool, target: usize, conditional: bool) -> String {
        let mut out = format!("{{target: s{target}");
        if conditional && self.r.below(4) > 0 {
            match self.r.below(if data { 6 } else { 8 }) {
                0 if data => out.push_str(&format!(", guard: {}", self.r.of(&GUARDS))),
                _ => out.push_str(&format!(", when: \"{}\"", self.condition(data))),
            }
        }
        if self.r.below(3) > 0 {
            let mut actions = vec![format!("{{{}}}", self.action(data))];
            if self.r.below(3) == 0 {
                actions.push(format!("{{{}}}", self.action(data)));
            }
            out.push_str(&format!(", actions: [{}]", actions.join(", ")));
        }
        if conditional && data && self.shows(Vote) {
            out.push_str(self.r.of(&EXTRAS));
        }
        if conditional && self.shows(Ledger) {
            out.push_str(self.r.of(&REQUIRED));
        }
        out + "}"
    }

    /// A state. Few transitions lead to the last one, so that one wrong decision hides it.
    fn target(&mut self) -> usize {
        match self.size {
            Size::Tiny => 1 + self.r.below(4),
            _ if self.r.below(8) == 0 => 4,
            _ => self.r.below(4),
        }
    }

    fn anywhere(&mut self, data: bool) -> String {
        let target = self.target();
        self.transition(data, target, true)
    }

    /// In most charters, each state has one event with few transitions, of which the last one needs
    /// nothing: what one condition decides is seldom possible in another way, so that a wrong
    /// decision shows.
    fn events(&mut self) -> Vec<String> {
        let mut on = Vec::new();
        for event in 0..if self.size != Size::Dense { 1 } else { 3 } {
            let mut list = Vec::new();
            if self.size != Size::Dense {
                for _ in 0..1 + self.r.below(2) {
                    let target = self.target();
                    list.push(self.transition(true, target, true));
                }
                if self.r.below(2) == 0 {
                    let target = self.target();
                    list.push(self.transition(true, target, false));
                }
            } else {
                list.extend((0..self.r.below(3)).map(|_| self.anywhere(true)));
            }
            if !list.is_empty() {
                on.push(format!("E{event}: [{}]", list.join(", ")));
            }
        }
        if self.r.below(3) == 0 {
            on.push(format!("I: [{}]", self.anywhere(false)));
        }
        if self.has(Failure) && self.r.below(3) == 0 {
            on.push(format!("error.execution: [{}]", self.anywhere(false)));
        }
        if self.has(Ledger) && self.r.below(3) == 0 {
            on.push(format!("charter.overdue: [{}]", self.anywhere(false)));
        }
        on
    }

    fn state(&mut self, state: usize) -> String {
        if self.size == Size::Tiny && state > 1 {
            return format!("  s{state}: {{}}\n");
        }
        let mut keys = Vec::new();
        let on = self.events();
        if !on.is_empty() {
            keys.push(format!("on: {{{}}}", on.join(", ")));
        }
        if self.shows(Delay) {
            let delay = self.r.of(&["context.n * 1000", "6000 / context.n", "context.kept.x", "context.m * 1000.0"]);
            keys.push(format!("after: {{'= {delay}': {}}}", self.anywhere(false)));
        } else if self.r.below(4) == 0 {
            keys.push(format!("after: {{{}s: {}}}", self.r.below(5), self.anywhere(false)));
        }
        if self.r.below(4) == 0 {
            let when =
                self.r.of(&["event.output.ok", "event.output.v > 3", "event.output.ok && event.output.v == context.n"]);
            let (yes, no, failed) = (self.target(), self.target(), self.target());
            let error = self.r.of(&["", ", when: \"event.error.code == 'late'\""]);
            keys.push(format!(
                "invoke: {{src: w, timeout: 9s, onDone: [{{target: s{yes}, when: '{when}', actions: [{{assign: {{n: '= event.output.v'}}}}]}}, {{target: s{no}}}], onError: {{target: s{failed}{error}}}}}"
            ));
        }
        // Eventless transitions lead on, so that they end.
        if state < 3 && self.r.below(6) == 0 {
            keys.push(format!("always: [{{target: s{}, when: \"{}\"}}]", state + 1, self.r.of(&OF_CONTEXT)));
        }
        if self.r.below(8) == 0 {
            keys.push("exit: [{assign: {n: '= context.n + 1'}}]".to_string());
        }
        if self.r.below(12) == 0 {
            keys.push(format!("entry: [{{{}}}]", self.action(false)));
        }
        format!("  s{state}: {{{}}}\n", keys.join(", "))
    }
}

/// A charter.
pub(crate) fn charter(r: &mut Numbers) -> String {
    let size = [Size::Tiny, Size::Tiny, Size::Sparse, Size::Dense][r.below(4)];
    let features = match size {
        Size::Tiny => vec![FEATURES[r.below(FEATURES.len())]],
        _ => FEATURES.iter().copied().filter(|_| r.below(4) == 0).collect(),
    };
    let mut maker = Maker { r, size, features };
    let states: String = (0..5).map(|state| maker.state(state)).collect();
    let data = "{data: {$ref: '#/types/data'}}";
    let types = "{data: {type: object, required: [x, s, y], properties: {x: {$ref: '#/types/few'}, s: {$ref: '#/types/letter'}, t: {type: string}, y: {type: number}, z: {type: [integer, 'null']}, l: {type: array, items: {type: integer}}, digest: {type: string}}}, few: {type: integer, minimum: 0, maximum: 5}, letter: {enum: [a, b]}}";
    let (states_only, others) = PROPERTIES.split_at(6);
    let all: Vec<String> =
        states_only.iter().chain(others.iter().filter(|_| maker.r.below(2) == 0)).map(|p| quoted(p)).collect();
    let of_children = PROPERTIES_OF_CHILDREN.iter().filter(|_| maker.has(Children)).map(|p| p.to_string());
    let properties: Vec<String> =
        all.into_iter().chain(of_children).enumerate().map(|(i, p)| format!("  - {{id: p{i}, {p}}}\n")).collect();
    let mut rest = String::new();
    if maker.has(Ledger) {
        rest.push_str("ledger: {token: {}, duty: {}}\n");
    }
    if maker.has(Children) {
        rest.push_str("machines: {child: {context: {v: '= input'}, states: {c0: {on: {E1: {target: c1, when: event.x > 2, actions: [{assign: {v: '= event.x'}}]}}}, c1: {on: {E2: c0}, exit: [{assign: {v: 0}}]}}}}\n");
    }
    if maker.has(Interlock) {
        let lock = maker.r.of(&[
            "actors.root.context.n < 3",
            "!('s3' in actors.root.state) || actors.root.context.flag",
            "!('s4' in actors.root.state) || actors.root.context.who != null",
            "actors.root.context.n != 1",
        ]);
        rest.push_str(&format!("interlocks: [{{id: lock, assert: \"{lock}\"}}]\n"));
    }
    format!(
        "roles: {{r: {{}}, s: {{}}}}\ntypes: {types}\ninput: {{type: object, required: [k], properties: {{k: {{type: integer, minimum: 0, maximum: 3}}, o: {{type: string}}}}}}\nevents: {{E0: {data}, E1: {data}, E2: {data}, I: {{}}}}\ncontext: {{n: 0, m: 0.5, flag: false, who: null, s: a, list: [], kept: null, k: '= input.k', z: null, at: null, mark: '', map: {{}}}}\nguards: {{g0: context.n > 1, g1: context.flag, g2: context.k == 1 && context.who == null}}\nactors: {{w: {{kind: tool, output: {{type: object, required: [ok, v], properties: {{ok: {{type: boolean}}, v: {{type: integer}}}}}}}}}}\n{rest}states:\n{states}properties:\n{}",
        properties.concat()
    )
}

/// Puts the condition of a property in quotes.
fn quoted(property: &str) -> String {
    let (key, rest) = property.split_once(": ").unwrap();
    match rest.split_once(", unless-before") {
        Some((cel, event)) => format!("{key}: \"{cel}\", unless-before{event}"),
        None => format!("{key}: \"{rest}\""),
    }
}

//! A second opinion on every proof: random runs of the kernel, with data, principals, orders and
//! times that the exploration does not choose, never contradict what was called proved.

use std::collections::BTreeSet;

use crate::support::{document, report_with};
use charter_check::{Options, Verdict};
use charter_kernel::{Envelope, Event, Machine, Principal, Snapshot, Status};
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::json;

/// States `s0` to `s4` of one region or of two.
const STATES: usize = 5;

/// The conditions of generated transitions; the later ones depend on more than the run's state.
const CONDITIONS: [&str; 12] = [
    "",
    ", when: context.n < 2",
    ", when: context.n > 1",
    ", when: context.flag",
    ", when: '!context.flag && context.n == 2'",
    ", by: r",
    ", by: s",
    ", when: event.x == 3",
    ", when: by.id != context.who",
    ", when: by.id == 'p3'",
    ", quorum: {count: 2}",
    ", when: \"now > timestamp('2026-01-01T00:00:05Z')\"",
];

const ACTIONS: [&str; 6] = [
    "",
    ", actions: {assign: {n: '= context.n + 1'}}",
    ", actions: {assign: {flag: '= !context.flag'}}",
    ", actions: {assign: {n: 0}}",
    ", actions: {assign: {who: '= by.id'}}",
    ", actions: {assign: {n: '= event.x'}}",
];

#[derive(Debug, Clone)]
struct Edge {
    from: usize,
    to: usize,
    /// An event, or `None` for a timer.
    event: Option<usize>,
    condition: usize,
    action: usize,
}

fn edge(kinds: usize) -> impl Strategy<Value = Edge> {
    let event = prop::option::weighted(0.85, 0usize..3);
    (0..STATES, 0..STATES, event, 0..kinds, 0..ACTIONS.len().min(kinds))
        .prop_map(|(from, to, event, condition, action)| Edge { from, to, event, condition, action })
}

/// Charters of which about half depend on the configuration and on counters only.
fn edges() -> impl Strategy<Value = Vec<Edge>> {
    prop_oneof![
        2 => prop::collection::vec(edge(4), 3..9),
        1 => prop::collection::vec(edge(6), 3..9),
        1 => prop::collection::vec(edge(CONDITIONS.len()), 3..9),
    ]
}

fn region(edges: &[Edge], out: &mut String) {
    for state in 0..STATES {
        out.push_str(&format!("s{state}: {{"));
        for event in 0..3 {
            let of: Vec<&Edge> = edges.iter().filter(|e| e.from == state && e.event == Some(event)).collect();
            if event == 0 {
                out.push_str("on: {");
            }
            if !of.is_empty() {
                let list: Vec<String> = of
                    .iter()
                    .map(|e| format!("{{target: s{}{}{}}}", e.to, CONDITIONS[e.condition], ACTIONS[e.action]))
                    .collect();
                out.push_str(&format!("E{event}: [{}], ", list.join(", ")));
            }
        }
        out.push('}');
        if let Some(e) = edges.iter().find(|e| e.from == state && e.event.is_none()) {
            out.push_str(&format!(", after: {{{}s: s{}}}", 1 + e.condition, e.to));
        }
        out.push_str("}, ");
    }
}

fn source(first: &[Edge], second: Option<&[Edge]>) -> String {
    let mut states = String::new();
    match second {
        None => region(first, &mut states),
        Some(second) => {
            states.push_str("p: {type: parallel, states: {a: {states: {");
            region(first, &mut states);
            states.push_str("}}, b: {states: {");
            region(second, &mut states);
            states.push_str("}}}}");
        }
    }
    let names = (0..STATES).map(|s| match second {
        None => format!("s{s}"),
        Some(_) => format!("p.a.s{s}"),
    });
    let mut properties: Vec<String> =
        names.map(|name| format!("  - {{id: never-{name}, never: \"in('{name}')\"}}\n")).collect();
    if second.is_some() {
        properties.push("  - {id: never-both, never: \"in('p.a.s4') && in('p.b.s4')\"}\n".into());
    }
    properties.push("  - {id: never-many, never: context.n > 2}\n".into());
    properties.push("  - {id: always-few, always: context.n < 4 || context.flag}\n".into());
    format!(
        "roles: {{r: {{}}, s: {{}}}}\nevents: {{E0: {{}}, E1: {{}}, E2: {{by: [r, s]}}}}\ncontext: {{n: 0, flag: false, who: null}}\nstates: {{{states}}}\nproperties:\n{}",
        properties.concat()
    )
}

/// A small generator of numbers (SplitMix64), so that a failing run is found again.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n).unwrap()).unwrap()
    }

    pub(crate) fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

const START: i64 = 1_767_225_600_000;

/// Runs the machine at random; calls `each` with every snapshot and its time.
fn walk(machine: &Machine, seed: u64, each: &mut dyn FnMut(&Snapshot, i64)) {
    let mut numbers = Numbers(seed);
    let mut now = START;
    let begin = Envelope::host(0, Event::Start { input: json!(null) }, now);
    let Ok(started) = machine.start("r", &begin) else { return };
    let mut at = started.snapshot;
    each(&at, now);
    for _ in 0..25 {
        if at.status() != Status::Active {
            break;
        }
        let seq = at.seq() + 1;
        let due = at.next_timer().map(|t| (t.id.to_string(), t.generation, t.due.0));
        let later = now + [0, 1, 400, 1_000, 3_700][numbers.below(5)];
        let step = match due {
            // A host fires a timer that is due before anything else.
            Some((timer, generation, due)) if due <= later => {
                now = due.max(now);
                machine.step(&at, &Envelope::host(seq, Event::Timer { timer, generation }, now))
            }
            _ => {
                now = later;
                let roles: &[&str] = [&[][..], &["r"], &["s"], &["r", "s"]][numbers.below(4)];
                let by = Principal::new(&format!("p{}", numbers.below(5)), roles);
                let data = [json!(null), json!({"x": 3}), json!({"x": numbers.below(6)})][numbers.below(3)].clone();
                machine.step(&at, &Envelope::event(seq, &format!("E{}", numbers.below(3)), data, by, now))
            }
        };
        if let Ok(step) = step {
            at = step.snapshot;
            each(&at, now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(40, 300), ..ProptestConfig::default() })]
    #[test]
    fn no_random_run_contradicts_a_proof(
        first in edges(), second in prop::option::weighted(0.3, edges()), seed in any::<u64>()
    ) {
        let source = source(&first, second.as_deref());
        let report = report_with(&source, &Options { max_states: 2_000, ..Options::default() });
        let machine = Machine::compile(document(&source).definition).unwrap();
        let definition = machine.definition();
        let proved: Vec<(String, _, bool)> = definition.properties.iter().enumerate().filter_map(|(i, p)| {
            let at = format!("/properties/{i}");
            let held = report.findings.iter().any(|f| f.at == at && f.verdict == Some(Verdict::Proved));
            let (cel, bad) = match &p.rule {
                charter_kernel::definition::PropertyRule::Never { when, .. } => (when, true),
                charter_kernel::definition::PropertyRule::Always(cel) => (cel, false),
                charter_kernel::definition::PropertyRule::Eventually(_) => return None,
            };
            held.then(|| (p.id.clone(), machine.query(cel).unwrap(), bad))
        }).collect();
        let unreached: BTreeSet<String> = report.findings.iter()
            .filter(|f| f.code == "state-not-reached" && f.verdict == Some(Verdict::Proved))
            .map(|f| f.at.rsplit('/').next().unwrap().to_string()).collect();
        // A parallel charter has two states of each name.
        let unreached = if second.is_some() { BTreeSet::new() } else { unreached };
        let mut wrong = None;
        for run in 0..cases(60, 1_000) {
            walk(&machine, seed.wrapping_add(u64::from(run)), &mut |snapshot, now| {
                for (id, query, bad) in &proved {
                    if machine.ask(snapshot, "root", query, now) == Ok(json!(*bad)) {
                        wrong.get_or_insert(format!("`{id}` was called proved"));
                    }
                }
                for state in snapshot.actors().next().unwrap().state() {
                    if unreached.contains(state) {
                        wrong.get_or_insert(format!("`{state}` was called unreachable"));
                    }
                }
            });
        }
        prop_assert_eq!(wrong, None, "{}", source);
    }
}

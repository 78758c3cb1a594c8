//! Compares the kernel with its peers in one run: `cargo bench -p charter-peers --bench kernel`.
//! Compare ratios, not absolute figures.
//!
//! - `flat`: a ring of six states, one event. Peers: a hand-written `match`, `rust-fsm`, `statig`.
//! - `shapes`: parallel, deeply nested and guarded machines; the digest of a snapshot.
//! - `compile`: a charter of 1,000 states.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs, unreachable_pub)]

use charter_kernel::{Envelope, Event, Machine, Principal, Snapshot};
use charter_test_support::machine;
use divan::{Bencher, black_box};
use serde_json::json;

fn main() {
    divan::main();
}

fn start(machine: &Machine) -> Snapshot {
    machine.start("r", &Envelope::host(0, Event::Start { input: json!({}) }, 0)).expect("starts").snapshot
}

fn event(kind: &str) -> Envelope {
    Envelope::event(1, kind, json!({}), Principal::new("ana", &[]), 0)
}

const FLAT: &str = "
events: {NEXT: {}, NEVER: {}}
states:
  a: {on: {NEXT: b}}
  b: {on: {NEXT: c}}
  c: {on: {NEXT: d}}
  d: {on: {NEXT: e}}
  e: {on: {NEXT: f}}
  f: {on: {NEXT: a}}
";

mod flat {
    use super::*;

    #[divan::bench(sample_size = 1000)]
    fn charter(bencher: Bencher) {
        let machine = machine(FLAT);
        let mut snapshot = start(&machine);
        let envelope = event("NEXT");
        bencher.bench_local(move || {
            snapshot = machine.step(black_box(&snapshot), black_box(&envelope)).expect("taken").snapshot;
        });
    }

    #[divan::bench(sample_size = 1000)]
    fn charter_refusal(bencher: Bencher) {
        let machine = machine(FLAT);
        let snapshot = start(&machine);
        let envelope = event("NEVER");
        bencher.bench_local(move || machine.step(black_box(&snapshot), black_box(&envelope)).is_err());
    }

    #[derive(Clone, Copy)]
    enum State {
        A,
        B,
        C,
        D,
        E,
        F,
    }
    #[derive(Clone, Copy)]
    enum Input {
        Next,
        #[allow(dead_code)]
        Never,
    }

    #[divan::bench(sample_size = 1000)]
    fn hand_match(bencher: Bencher) {
        let mut state = State::A;
        bencher.bench_local(move || {
            state = match (black_box(state), black_box(Input::Next)) {
                (State::A, Input::Next) => State::B,
                (State::B, Input::Next) => State::C,
                (State::C, Input::Next) => State::D,
                (State::D, Input::Next) => State::E,
                (State::E, Input::Next) => State::F,
                (State::F, Input::Next) => State::A,
                (s, Input::Never) => s,
            };
        });
    }

    rust_fsm::state_machine! {
        #[derive(Debug)]
        #[state_machine(input(crate::flat::FsmInput), state(crate::flat::FsmState))]
        ring(A)
        A(Next) => B,
        B(Next) => C,
        C(Next) => D,
        D(Next) => E,
        E(Next) => F,
        F(Next) => A,
    }
    #[derive(Debug, Clone, Copy)]
    pub enum FsmInput {
        Next,
    }
    #[derive(Debug, Clone, Copy)]
    pub enum FsmState {
        A,
        B,
        C,
        D,
        E,
        F,
    }

    #[divan::bench(sample_size = 1000)]
    fn rust_fsm(bencher: Bencher) {
        let mut machine = ring::StateMachine::new();
        bencher.bench_local(move || {
            let _ = machine.consume(black_box(&FsmInput::Next));
        });
    }

    mod with_statig {
        use statig::prelude::*;

        #[derive(Default)]
        pub(super) struct Ring;
        pub(super) struct Next;

        #[state_machine(initial = "State::a()")]
        impl Ring {
            #[state]
            fn a(event: &Next) -> Outcome<State> {
                let _ = event;
                Transition(State::b())
            }
            #[state]
            fn b(event: &Next) -> Outcome<State> {
                let _ = event;
                Transition(State::c())
            }
            #[state]
            fn c(event: &Next) -> Outcome<State> {
                let _ = event;
                Transition(State::d())
            }
            #[state]
            fn d(event: &Next) -> Outcome<State> {
                let _ = event;
                Transition(State::e())
            }
            #[state]
            fn e(event: &Next) -> Outcome<State> {
                let _ = event;
                Transition(State::f())
            }
            #[state]
            fn f(event: &Next) -> Outcome<State> {
                let _ = event;
                Transition(State::a())
            }
        }
    }

    #[divan::bench(sample_size = 1000)]
    fn statig(bencher: Bencher) {
        use ::statig::prelude::*;
        let mut machine = with_statig::Ring.state_machine();
        bencher.bench_local(move || machine.handle(black_box(&with_statig::Next)));
    }
}

mod shapes {
    use super::*;

    fn ring(bencher: Bencher, yaml: &str, kinds: &[&str]) {
        let machine = machine(yaml);
        let mut snapshot = start(&machine);
        let envelopes: Vec<Envelope> = kinds.iter().map(|k| event(k)).collect();
        let mut next = envelopes.iter().cycle();
        bencher.bench_local(|| {
            let envelope = next.next().expect("a cycle does not end");
            snapshot = machine.step(&snapshot, envelope).expect("taken").snapshot;
        });
    }

    #[divan::bench(sample_size = 1000)]
    fn parallel_four_regions(bencher: Bencher) {
        let region = |n: usize| format!("  r{n}: {{states: {{a: {{on: {{GO: b}}}}, b: {{on: {{GO: a}}}}}}}}\n");
        let yaml = format!("events: {{GO: {{}}}}\ntype: parallel\nstates:\n{}", (0..4).map(region).collect::<String>());
        ring(bencher, &yaml, &["GO"]);
    }

    #[divan::bench(sample_size = 1000)]
    fn nested_sixteen_deep(bencher: Bencher) {
        fn nest(depth: usize, indent: usize, out: &mut String) {
            let pad = " ".repeat(indent);
            out.push_str(&format!("{pad}states:\n{pad}  s:\n"));
            if depth == 0 {
                out.push_str(&format!("{pad}    entry: []\n{pad}  t: {{}}\n"));
            } else {
                nest(depth - 1, indent + 4, out);
            }
        }
        let mut yaml = "events: {GO: {}}\non: {GO: .s}\n".to_string();
        nest(16, 0, &mut yaml);
        ring(bencher, &yaml, &["GO"]);
    }

    #[divan::bench(sample_size = 1000)]
    fn guard_and_assign(bencher: Bencher) {
        let yaml = "
events: {GO: {}}
context: {n: 0, limit: 10, name: x, list: [1, 2, 3]}
states:
  a: {on: {GO: [{when: context.n < context.limit, target: b, actions: {assign: {n: '= context.n + 1'}}}, {target: b, actions: {assign: {n: 0}}}]}}
  b: {on: {GO: a}}
";
        ring(bencher, yaml, &["GO"]);
    }

    #[divan::bench(sample_size = 1000)]
    fn snapshot_digest(bencher: Bencher) {
        let machine = machine(FLAT);
        let snapshot = start(&machine);
        bencher.bench_local(|| machine.snapshot_digest(&snapshot));
    }
}

#[divan::bench(sample_count = 20)]
fn compile_1000_states(bencher: Bencher) {
    let state = |n: usize| {
        format!("  s{n}: {{on: {{E{}: s{}, F: {{target: s0, when: context.n > {n}}}}}}}\n", n % 50, (n + 1) % 1000)
    };
    let events: String = (0..50).map(|n| format!("E{n}: {{}}, ")).collect();
    let source = format!(
        "charter: 1\nid: big\nevents: {{{events}F: {{}}}}\ncontext: {{n: 0}}\nstates:\n{}",
        (0..1000).map(state).collect::<String>()
    );
    let definition = charter_test_support::definition(&source);
    bencher
        .with_inputs(|| definition.clone())
        .bench_values(|definition| Machine::compile(definition).expect("compiles"));
}

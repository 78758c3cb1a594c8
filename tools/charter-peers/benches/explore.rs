//! Exploration speed, table-driven, through the kernel and from above, compared with `stateright`
//! on the same machine in the same run, and the time to the verdicts about each bundled charter:
//! `cargo bench -p charter-peers --bench explore`.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use charter_check::{Options, check, explore};
use charter_test_support::{document, machine};
use stateright::{Checker, Model};

const REGIONS: usize = 6;
const STATES: usize = 10;

fn main() {
    divan::main();
}

/// Generates a charter with parallel regions, each with an event that leads to its next state. Six
/// regions of ten states have a million states.
fn regions(regions: usize, states: usize, rest: &str) -> String {
    let mut source = String::from("charter: 1\nid: bench\nevents: {");
    for r in 0..regions {
        source.push_str(&format!("E{r}: {{}}, "));
    }
    source.push_str("}\nstates:\n  all:\n    type: parallel\n    states:\n");
    for r in 0..regions {
        source.push_str(&format!("      r{r}: {{states: {{"));
        for s in 0..states {
            source.push_str(&format!("s{s}: {{on: {{E{r}: s{}}}}}, ", (s + 1) % states));
        }
        source.push_str("}}\n");
    }
    source + rest
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn configurations_alone_1m(bencher: divan::Bencher) {
    let machine = machine(&regions(REGIONS, STATES, ""));
    bencher.counter(divan::counter::ItemsCount::new(STATES.pow(REGIONS as u32))).bench(|| {
        let found = explore(&machine, &Options::default());
        assert_eq!(found.explored().states, STATES.pow(REGIONS as u32));
        found
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn kernel_steps_16k(bencher: divan::Bencher) {
    // A property disables the table-driven exploration.
    let machine = machine(&regions(7, 4, "properties: [{id: p, never: 'false'}]\n"));
    bencher.counter(divan::counter::ItemsCount::new(4usize.pow(7))).bench(|| {
        let found = explore(&machine, &Options::default());
        assert_eq!(found.explored().states, 4usize.pow(7));
        found
    });
}

/// A counter whose steps the sender chooses: abstract states, each of which stands for many.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn abstract_states(bencher: divan::Bencher) {
    let mut states = String::new();
    for s in 0..100 {
        let next = (s + 1) % 100;
        states.push_str(&format!(
            "  s{s}: {{on: {{ADD: {{target: s{next}, when: event.by > 0, actions: {{assign: {{n: '= event.by'}}}}}}}}}}\n"
        ));
    }
    let source = format!(
        "charter: 1\nid: bench\nevents: {{ADD: {{data: {{type: object, required: [by], properties: {{by: {{type: integer, maximum: 9}}}}}}}}}}\ncontext: {{n: 1}}\nstates:\n{states}properties: [{{id: p, never: context.n < 1}}]\n"
    );
    let (document, machine) = (document(&source), machine(&source));
    let options = Options { max_states: 1, ..Options::default() };
    let count = check(&document, &machine, &options).explored.abstract_states;
    bencher.counter(divan::counter::ItemsCount::new(count)).bench(|| {
        let report = check(&document, &machine, &options);
        assert!(report.findings.iter().any(|f| f.code == "property-holds"));
        report
    });
}

#[divan::bench(sample_count = 3, sample_size = 1, args = ["automaton", "feijoa", "fred", "omen", "sentinel"])]
fn verdicts(bencher: divan::Bencher, name: &str) {
    let path = format!("{}/../../charters/{name}/charter.yaml", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    let (document, machine) = (document(&source), machine(&source));
    bencher.bench(|| check(&document, &machine, &Options::default()));
}

/// Seven regions of four states with a property, as in `kernel_steps_16k`.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn stateright_16k(bencher: divan::Bencher) {
    bencher.counter(divan::counter::ItemsCount::new(4usize.pow(7))).bench(|| {
        let count = Regions::<7, 4>.checker().spawn_bfs().join().unique_state_count();
        assert_eq!(count, 4usize.pow(7));
        count
    });
}

#[derive(Clone)]
struct Regions<const R: usize, const S: usize>;

impl<const R: usize, const S: usize> Model for Regions<R, S> {
    type State = [u8; R];
    type Action = usize;
    fn init_states(&self) -> Vec<Self::State> {
        vec![[0; R]]
    }
    fn actions(&self, _: &Self::State, actions: &mut Vec<usize>) {
        actions.extend(0..R);
    }
    fn next_state(&self, last: &Self::State, action: usize) -> Option<Self::State> {
        let mut next = *last;
        next[action] = (next[action] + 1) % S as u8;
        Some(next)
    }
    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::always("in range", |_, s: &Self::State| s.iter().all(|s| usize::from(*s) < S))]
    }
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stateright_1m(bencher: divan::Bencher) {
    bencher.counter(divan::counter::ItemsCount::new(STATES.pow(REGIONS as u32))).bench(|| {
        let count = Regions::<REGIONS, STATES>.checker().spawn_bfs().join().unique_state_count();
        assert_eq!(count, STATES.pow(REGIONS as u32));
        count
    });
}

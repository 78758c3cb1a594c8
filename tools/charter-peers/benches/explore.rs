//! Exploration speed, table-driven and through the kernel, compared with `stateright` on the same
//! machine in the same run: `cargo bench -p charter-peers --bench explore`.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use charter_check::{Options, explore};
use charter_test_support::machine;
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

#[derive(Clone)]
struct Regions;

impl Model for Regions {
    type State = [u8; REGIONS];
    type Action = usize;
    fn init_states(&self) -> Vec<Self::State> {
        vec![[0; REGIONS]]
    }
    fn actions(&self, _: &Self::State, actions: &mut Vec<usize>) {
        actions.extend(0..REGIONS);
    }
    fn next_state(&self, last: &Self::State, action: usize) -> Option<Self::State> {
        let mut next = *last;
        next[action] = (next[action] + 1) % STATES as u8;
        Some(next)
    }
    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::always("in range", |_, s: &Self::State| s.iter().all(|s| usize::from(*s) < STATES))]
    }
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stateright_1m(bencher: divan::Bencher) {
    bencher.counter(divan::counter::ItemsCount::new(STATES.pow(REGIONS as u32))).bench(|| {
        let count = Regions.checker().spawn_bfs().join().unique_state_count();
        assert_eq!(count, STATES.pow(REGIONS as u32));
        count
    });
}

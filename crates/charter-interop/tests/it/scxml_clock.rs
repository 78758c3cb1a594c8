//! Runs a machine to its end on a virtual clock, on which timers fire without waiting.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use charter_kernel::{Envelope, Event, Machine, Snapshot, Step};
use serde_json::Value as Json;

/// Upper limit of timers, for documents that never end.
const MAX_TIMERS: u64 = 1_000;

/// Runs the machine and returns the active atomic states of the root at the end.
pub fn run(machine: &Machine) -> Vec<String> {
    match start(machine) {
        Ok(step) => states(&finish(machine, step).unwrap_or_else(|e| panic!("{e}"))),
        Err(why) => vec![why],
    }
}

pub fn start(machine: &Machine) -> Result<Step, String> {
    let begin = Envelope::host(0, Event::Start { input: Json::Null }, 1_000_000);
    machine.start("run", &begin).map_err(|refusal| format!("start refused: {refusal:?}"))
}

pub fn finish(machine: &Machine, step: Step) -> Result<Snapshot, String> {
    let mut snapshot = step.snapshot;
    let first = snapshot.seq() + 1;
    for seq in first..first + MAX_TIMERS {
        if snapshot.status().is_finished() {
            break;
        }
        let Some(timer) = snapshot.next_timer() else {
            break;
        };
        let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
        let envelope = Envelope::host(seq, event, timer.due);
        snapshot =
            machine.step(&snapshot, &envelope).map_err(|refusal| format!("timer refused: {refusal:?}"))?.snapshot;
    }
    Ok(snapshot)
}

pub fn states(snapshot: &Snapshot) -> Vec<String> {
    let root = snapshot.actors().next();
    root.into_iter().flat_map(|actor| actor.state().map(str::to_owned)).collect()
}

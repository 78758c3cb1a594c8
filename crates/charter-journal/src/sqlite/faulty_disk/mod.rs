//! Random schedules of a store on a disk that fails: its calls fail, are done in part, or lie, and
//! the process dies or the power fails at any of them. What was acknowledged must be there after
//! each schedule, or the store or its verification must say what is missing.
//!
//! A failure prints the seed, and what happened. `FAULTY_DISK_SEED=N` runs the schedule of one
//! seed, `FAULTY_DISK_CASES=N` this many from there on.

mod model;
mod session;
mod smallest;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use charter_test_disk::Kind;
use charter_test_support::cases;

use session::Schedule;

/// How long one schedule may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kind of faults of a schedule.
fn kind(seed: u64) -> Kind {
    match seed % 4 {
        0 | 1 => Kind::Honest,
        2 => Kind::Syncs,
        _ => Kind::Liar,
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn acknowledged_records_survive_a_disk_that_fails_or_their_loss_is_named() {
    let all = if number("FAULTY_DISK_SEED").is_some() { 1 } else { u64::from(cases(100, 2_000)) };
    let (first, count) = (number("FAULTY_DISK_SEED").unwrap_or_default(), number("FAULTY_DISK_CASES").unwrap_or(all));
    let (sender, done) = channel();
    let worker = std::thread::spawn(move || {
        let mut totals = [0; 7];
        for seed in first..first + count {
            let _ = sender.send(seed);
            let seen = Schedule::run(seed, kind(seed));
            for (total, n) in totals.iter_mut().zip(seen) {
                *total += n;
            }
        }
        totals
    });
    let mut current = first;
    loop {
        match done.recv_timeout(PATIENCE) {
            Ok(seed) => current = seed,
            Err(RecvTimeoutError::Timeout) => panic!("seed {current} has not ended after {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let [acknowledged, failed, faults, crashes, named, deleted, accepted] =
        worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
    println!(
        "{count} schedules: {acknowledged} batches acknowledged, {failed} failed, {faults} faults, {crashes} crashes, {named} losses named, {accepted} accepted, {deleted} runs deleted"
    );
    if count >= 100 {
        assert!(acknowledged > count * 5 && failed > count / 10 && faults > count / 2, "too little happens");
        assert!(crashes > count / 3 && named > count / 100 && deleted > count / 10, "too little happens");
    }
}

#[test]
fn a_seed_gives_the_same_schedule_each_time() {
    for seed in 0..16 {
        let run = || {
            let mut schedule = Schedule::new(seed, kind(seed));
            schedule.sessions();
            schedule.said.clone()
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}

//! Ten thousand turns: the cost of a turn does not grow, and everything stays within its limits.
//! The module is named so that its tests run first, because they take longest.

use charter_canister::api::{Outcome, TurnsQuery};

use super::*;

const TURNS: u64 = 10_000;

#[test]
fn ten_thousand_turns_cost_the_same_each() {
    let mut c = Canister::new(None);
    // Keep turns small, because there are many. How much history enters a turn is a setting, and
    // not the subject of this test.
    c.change("config_set", ("episodes.kept", "1")).unwrap();
    c.change("update_soul", ("You are brief.",)).unwrap();
    for skill in ["greet", "note"] {
        c.change("skill_enable", (skill, false)).unwrap();
    }
    let mut costs = Vec::new();
    let (mut before, mut most) = (c.host.instructions(c.id), 0u64);
    for turn in 1..=TURNS {
        let call = c.submit("wake", (wake("Note this, and sign it"),));
        while let Some(step) = c.host.step() {
            assert!(step.failed.is_none(), "{step:?}");
            most = most.max(step.instructions);
        }
        let answer = c.host.await_call(&call).unwrap();
        if turn % 100 == 0 {
            let answer: Result<TurnEnd, Error> = candid::decode_one(&answer).unwrap();
            assert_eq!(answer.unwrap().number, turn);
            let now = c.host.instructions(c.id);
            costs.push((now - before) / 100);
            before = now;
        }
    }
    let (first, last) = (&costs[1..11], &costs[costs.len() - 10..]);
    let mean = |of: &[u64]| of.iter().sum::<u64>() / of.len() as u64;
    println!(
        "instructions of a turn: {} at the start, {} at the end, {} of the dearest message; heap {} bytes, stable memory {} pages",
        mean(first),
        mean(last),
        most,
        c.host.heap(c.id),
        c.host.stable_pages(c.id)
    );
    assert!(mean(last) < mean(first) * 5 / 4, "{} -> {}", mean(first), mean(last));
    // The limit of a message is 40 billion instructions.
    assert!(most < 1_000_000_000, "{most}");
    let runtime = c.runtime();
    assert_eq!(runtime.turns, TURNS);
    // The history is bounded, and so is the projection.
    let kept = runtime.end - runtime.first;
    assert!((10_000..=32_768).contains(&kept), "{runtime:?}");
    println!("{kept} of {} records are kept", runtime.end);
    let projection = c.projection();
    assert_eq!((projection.from, projection.current), (runtime.first, true));
    let query = TurnsQuery { newest_first: Some(true), limit: Some(1), ..TurnsQuery::default() };
    let turns = c.turns(query).turns;
    assert_eq!((turns[0].turn, turns[0].outcome), (TURNS, Outcome::Completed));
    let before = c.host.instructions(c.id);
    c.upgrade().unwrap();
    println!("instructions of an upgrade: {}", c.host.instructions(c.id) - before);
    assert_eq!(c.wake("on").unwrap().number, TURNS + 1);
    // Verify the whole export, which replays each event through the kernel.
    c.sound();
}

//! Hostile streams: nothing is applied without its approval.

use crate::common::Run;
use charter_kernel::{Digest, EffectKind, Principal};
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{ACTORS, EVENTS, ROLES, act, answered, changeset, data, error, output, start};

/// An attempt in a hostile stream.
#[derive(Debug, Clone)]
enum Try {
    Event { event: usize, id: usize, role: usize, digest: usize, accepted: Option<usize> },
    Answer { actor: usize, good: bool, proposal: usize, proposer: usize },
    Wait(i64),
    Pause(bool),
}

const PEOPLE: [&str; 4] = ["ana", "bo", "agent", "curate"];

fn tries() -> impl Strategy<Value = Try> {
    prop_oneof![
        4 => (0..EVENTS.len(), 0..PEOPLE.len(), 0..ROLES.len(), 0..5usize, prop::option::of(0..4usize))
            .prop_map(|(event, id, role, digest, accepted)| Try::Event { event, id, role, digest, accepted }),
        // A step of the shortest path, so that streams get far.
        6 => (0..PEOPLE.len(), 0..4usize, 0..PEOPLE.len()).prop_map(|(id, proposal, proposer)| Try::Event {
            event: 100 + proposal, id, role: proposer, digest: 0, accepted: None
        }),
        3 => (0..ACTORS.len(), any::<bool>(), 0..3usize, 0..PEOPLE.len())
            .prop_map(|(actor, good, proposal, proposer)| Try::Answer { actor, good, proposal, proposer }),
        1 => (0..400_000i64).prop_map(Try::Wait),
        1 => any::<bool>().prop_map(Try::Pause),
    ]
}

/// For all events from all senders: a step requests `apply` only if it is an approval of exactly
/// the changeset that is applied, by a person who has the role and is not its proposer. The
/// changeset is the last proposal or a part of it.
#[test]
fn nothing_is_applied_without_its_approval() {
    let applied = std::cell::Cell::new(0_u32);
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: cases(60, 300), ..ProptestConfig::default() });
    let result = runner.run(&prop::collection::vec(tries(), 1..60), |stream| {
        let mut run = start();
        let mut shown: Option<(Json, String)> = None;
        for attempt in stream {
            let before = run.seq;
            let mut sent = None;
            match attempt {
                Try::Event { event, id, role: proposer, .. } if event >= 100 => {
                    // One step of the shortest path, with its own proposal and proposer.
                    match run.state().as_str() {
                        "IDLE" => drop(act(&mut run, "ana", "operator", "START", json!({"goal": "g"}))),
                        "AWAITING_CONTEXT_APPROVAL" => {
                            let data = data(&run, "APPROVE_CONTEXT");
                            drop(act(&mut run, PEOPLE[id], "approver", "APPROVE_CONTEXT", data));
                        }
                        "AWAITING_PROPOSAL_APPROVAL" => {
                            let data = data(&run, "APPROVE_PROPOSAL");
                            sent = Some((PEOPLE[id], "approver", data.clone()));
                            drop(act(&mut run, PEOPLE[id], "approver", "APPROVE_PROPOSAL", data));
                        }
                        "ERROR" => drop(act(&mut run, "ana", "operator", "RESET", json!({}))),
                        state => {
                            let Some(actor) = ACTORS.iter().find(|a| answered(state, a, true).is_some()) else {
                                continue;
                            };
                            let proposal = changeset(["x", "y", "z", "x"][event - 100]);
                            let out = if *actor == "propose" {
                                json!({"changeset": proposal, "proposer": PEOPLE[proposer]})
                            } else {
                                output(actor)
                            };
                            answer(&mut run, actor, Ok(out));
                        }
                    }
                }
                Try::Event { event, id, role, digest, accepted } => {
                    let mut data = data(&run, EVENTS[event]);
                    if EVENTS[event].starts_with("APPROVE") {
                        let values = [
                            run.var("proposal"),
                            changeset("x"),
                            changeset("y"),
                            run.var("bundle"),
                            json!({"summary": "s", "changes": [changeset("x")["changes"][0]]}),
                        ];
                        data["digest"] = json!(Digest::of_json(&values[digest]).hex());
                        if let (Some(n), "APPROVE_PROPOSAL") = (accepted, EVENTS[event]) {
                            data["accepted"] = [json!(["a"]), json!(["b"]), json!(["a", "b"]), json!(["c"])][n].clone();
                        }
                    }
                    if EVENTS[event] == "APPROVE_PROPOSAL" {
                        sent = Some((PEOPLE[id], ROLES[role], data.clone()));
                    }
                    drop(act(&mut run, PEOPLE[id], ROLES[role], EVENTS[event], data));
                }
                Try::Answer { actor, good, proposal, proposer } => {
                    let out = if ACTORS[actor] == "propose" {
                        json!({"changeset": changeset(["x", "y", "z"][proposal]), "proposer": PEOPLE[proposer]})
                    } else {
                        output(ACTORS[actor])
                    };
                    answer(&mut run, ACTORS[actor], if good { Ok(out) } else { Err(error()) });
                }
                Try::Wait(ms) => drop(run.wait(ms)),
                Try::Pause(on) => drop(act(
                    &mut run,
                    "ana",
                    "operator",
                    if on { "charter.pause" } else { "charter.resume" },
                    json!({}),
                )),
            }
            if run.seq == before {
                continue;
            }
            let last = run.last.as_ref().unwrap();
            for effect in &last.effects {
                let EffectKind::Invoke { src, input, .. } = &effect.kind else { continue };
                if &**src != "apply" || effect.id.seq != run.seq {
                    continue;
                }
                applied.set(applied.get() + 1);
                let (id, role, data) = sent.clone().expect("only an approval requests it");
                let (proposal, proposer) = shown.clone().expect("a proposal was shown");
                prop_assert_eq!(role, "approver");
                prop_assert_ne!(id, proposer);
                let applied = &input["changeset"];
                prop_assert_eq!(&data["digest"], &json!(Digest::of_json(applied).hex()));
                for change in applied["changes"].as_array().unwrap() {
                    prop_assert!(proposal["changes"].as_array().unwrap().contains(change));
                }
                prop_assert_eq!(&applied["summary"], &proposal["summary"]);
                prop_assert_eq!(&input["approval"]["by"], &json!(id));
            }
            shown = match run.var("proposal") {
                Json::Null => None,
                proposal => Some((proposal, run.var("proposer").as_str().unwrap_or_default().to_owned())),
            };
        }
        Ok(())
    });
    result.unwrap();
    assert!(applied.get() > cases(5, 30), "the streams got far enough {} times", applied.get());
}

/// Sends an answer, requested or not.
fn answer(run: &mut Run, actor: &str, with: Result<Json, Json>) {
    let event = match with {
        Ok(output) => charter_kernel::Event::Done { invocation: actor.into(), effect: None, output },
        Err(error) => charter_kernel::Event::Failed { invocation: actor.into(), effect: None, error },
    };
    let envelope = charter_kernel::Envelope {
        seq: run.seq + 1,
        to: None,
        event,
        by: Principal::default(),
        at: run.at.into(),
        expected_seq: None,
        unique: None,
    };
    let _ = run.apply(&envelope);
}

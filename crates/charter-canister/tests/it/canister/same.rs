//! The same stream of events produces the same chain in the canister and on the embedded host.

use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, Store};
use charter_kernel::{Auth, PrincipalKind};
use charter_runtime::{Charter, Limits, Options, Runtime, SendEvent, Start};
use serde_json::{Value as Json, json};

use super::*;
use crate::support::add_executors;

enum Act {
    Call { method: &'static str, arg: Vec<u8>, event: &'static str, data: Json, id: Option<String> },
    Advance(u64),
}

fn act(method: &'static str, args: impl ArgumentEncoder, event: &'static str, data: Json) -> Act {
    Act::Call { method, arg: encode_args(args).unwrap(), event, data, id: None }
}

/// Returns a stream that reaches every state, with refusals, failures, timers and repeated events.
fn acts() -> Vec<Act> {
    let mut acts = Vec::new();
    for round in 0..6u64 {
        let said = format!("Round {round}: \"sign\" \u{1f600}");
        let woken = json!({"reason": "by hand", "input": said});
        acts.push(act("wake", (wake(&said),), "WakeRequested", woken));
        acts.push(act("reset_fault", (), "ResetFault", json!({})));
        let id = format!("soul {round}");
        for _ in 0..2 {
            let arg = encode_args(("Be brief.", Some(&id))).unwrap();
            let (event, data) = ("UpdateSoul", json!({"text": "Be brief."}));
            acts.push(Act::Call { method: "update_soul", arg, event, data, id: Some(id.clone()) });
        }
        acts.push(act("update_soul", ("",), "UpdateSoul", json!({"text": ""})));
        acts.push(Act::Advance(299_999 + round % 2));
        let adapter = ["stub", "mock"][round as usize % 2];
        let set = json!({"key": "inference.adapter", "value": adapter});
        acts.push(act("config_set", ("inference.adapter", adapter), "SetConfig", set));
        let set = json!({"key": "soul.text", "value": "x"});
        acts.push(act("config_set", ("soul.text", "x"), "SetConfig", set));
        acts.push(Act::Advance(700_000));
        let enable = json!({"name": "greet", "enabled": round.is_multiple_of(2)});
        acts.push(act("skill_enable", ("greet", round.is_multiple_of(2)), "EnableSkill", enable));
        acts.push(act("reset_fault", (), "ResetFault", json!({})));
        acts.push(act("sleep", (), "SleepRequested", json!({})));
        acts.push(act("set_loop", (true,), "SetLoop", json!({"enabled": true})));
        acts.push(Act::Advance(12_345));
    }
    acts
}

#[test]
fn the_chain_equals_that_of_the_embedded_host() {
    let mut host = LocalHost::new();
    host.advance(Duration::from_secs(10_000));
    let begin = i64::try_from(host.now().as_millis()).unwrap();
    let mut c = Canister::installed(Box::new(host), None);
    c.host.settle();
    for act in acts() {
        match act {
            Act::Call { method, arg, .. } => {
                c.host.update(c.id, owner(), method, &arg).unwrap();
                c.host.settle();
            }
            // Advance in steps of a second, because a missed timer fires late.
            Act::Advance(ms) => {
                let mut left = ms;
                while let Some(due) = c.runtime().next_due_ms {
                    let now = u64::try_from(c.host.now().as_millis()).unwrap();
                    let until = due.saturating_sub(now);
                    if until > left {
                        break;
                    }
                    left -= until;
                    c.advance(until);
                }
                c.advance(left);
            }
        }
    }
    let store = Arc::new(MemoryStore::new());
    let threads = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    threads.block_on(embedded(&c.id.to_text(), begin, store.clone()));
    let theirs = store.records(&c.id.to_text(), 0, usize::MAX).unwrap();
    let file = c.export();
    let ours: Vec<&str> = file.lines().skip(1).collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(*ours, theirs.text());
    }
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() > 80);
    assert_eq!(c.runtime().head, theirs.last().unwrap().hash.to_string());
    c.sound();
}

async fn embedded(run: &str, begin: i64, store: Arc<dyn Store>) {
    let by = charter_kernel::Principal::new(&owner().to_text(), &["controller"]);
    let by = by.of_kind(PrincipalKind::Person).authenticated(Auth::Key);
    let clock = VirtualClock::new(begin);
    let limits = Limits { events_per_second: 0, ..Limits::default() };
    let mut options = Options { limits, ..Options::default().clock(clock.clone()) };
    add_executors(&mut options.executors);
    let (runtime, _) = Runtime::open(store, options).await.unwrap();
    let path = format!("{}/../../charters/automaton/charter.yaml", env!("CARGO_MANIFEST_DIR"));
    let charter = runtime.add(Charter::load(path.as_ref()).unwrap()).await.unwrap();
    let start = Start { charter: charter.digest(), run: Some(run.into()), input: json!({}), by: by.clone() };
    runtime.start(start).await.unwrap();
    clock.settle().await;
    for act in acts() {
        match act {
            Act::Call { event, data, id, .. } => {
                let event = SendEvent { id, ..SendEvent::new(run, event, data, by.clone()) };
                runtime.send(event).await.unwrap();
            }
            Act::Advance(ms) => clock.advance(i64::try_from(ms).unwrap()).await,
        }
        clock.settle().await;
    }
    runtime.shutdown(Duration::ZERO).await;
}

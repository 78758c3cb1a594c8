//! Every state with every event by every role, compared with a table of legal moves that is
//! independent of the charter.

use charter_automaton::bindings::{AsController, AsHost, State, data};
use charter_kernel::{Code, Event, Machine, Refusal, Step};
use charter_typed::{EventSink, Session};
use serde_json::{Value as Json, json};

const EVENTS: [&str; 9] = [
    "InitCompleted",
    "WakeRequested",
    "ContextLoaded",
    "InferenceCompleted",
    "ActionsCompleted",
    "PersistCompleted",
    "SleepRequested",
    "TurnFailed",
    "ResetFault",
];

fn machine() -> Machine {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/automaton/charter.yaml");
    charter_test_support::machine(&std::fs::read_to_string(path).unwrap())
}

/// Returns the state after a legal move; `None` if the move is not legal.
fn next(state: State, event: &str) -> Option<State> {
    use State::*;
    match (state, event) {
        (Bootstrapping, "InitCompleted") => Some(Idle),
        (Idle | Sleeping, "WakeRequested") => Some(LoadingContext),
        (LoadingContext, "ContextLoaded") => Some(Inferring),
        (Inferring, "InferenceCompleted") => Some(ExecutingActions),
        (ExecutingActions, "ActionsCompleted") => Some(Persisting),
        (Persisting, "PersistCompleted") => Some(Sleeping),
        (Idle, "SleepRequested") => Some(Sleeping),
        (Bootstrapping | LoadingContext | Inferring | ExecutingActions | Persisting, "TurnFailed") => Some(Faulted),
        (Faulted, "ResetFault") => Some(Idle),
        _ => None,
    }
}

fn may(event: &str, role: &str) -> bool {
    match event {
        "WakeRequested" | "SleepRequested" => true,
        "ResetFault" => role == "controller",
        _ => role == "host",
    }
}

fn payload(event: &str) -> Json {
    match event {
        "WakeRequested" | "TurnFailed" => json!({"reason": "because"}),
        _ => json!({}),
    }
}

fn start(machine: &Machine) -> Session<'_> {
    Session::start(machine, "run-1", json!({}), 1_795_255_200_000).unwrap()
}

/// Returns a run that the host's events have brought into a state.
fn at(machine: &Machine, state: State) -> Session<'_> {
    let mut session = start(machine);
    let path: &[&str] = match state {
        State::Bootstrapping => &[],
        State::Idle => &["InitCompleted"],
        State::LoadingContext => &["InitCompleted", "WakeRequested"],
        State::Inferring => &["InitCompleted", "WakeRequested", "ContextLoaded"],
        State::ExecutingActions => &["InitCompleted", "WakeRequested", "ContextLoaded", "InferenceCompleted"],
        State::Persisting => {
            &["InitCompleted", "WakeRequested", "ContextLoaded", "InferenceCompleted", "ActionsCompleted"]
        }
        State::Sleeping => &["InitCompleted", "SleepRequested"],
        State::Faulted => &["TurnFailed"],
    };
    for event in path {
        session.send(None, event, payload(event), "node", "host").unwrap();
    }
    assert_eq!(session.state("root"), [state.path()]);
    session
}

fn turn(session: &Session<'_>) -> Json {
    session.snapshot().actor("root").unwrap().variable("turn").cloned().unwrap_or_default()
}

#[test]
fn every_state_with_every_event_by_every_role() {
    let machine = machine();
    let mut taken = 0;
    for state in State::ALL {
        for event in EVENTS {
            for role in ["controller", "host", "stranger"] {
                let mut session = at(&machine, state);
                let before = session.snapshot().clone();
                let result = session.send(None, event, payload(event), "x", role);
                let expected = if may(event, role) && role != "stranger" {
                    next(state, event).ok_or(Code::Unhandled)
                } else {
                    Err(Code::Authority)
                };
                match (result, expected) {
                    (Ok(_), Ok(to)) => {
                        taken += 1;
                        assert_eq!(session.state("root"), [to.path()], "{state:?} {event} {role}");
                        let in_turn = matches!(
                            to,
                            State::LoadingContext | State::Inferring | State::ExecutingActions | State::Persisting
                        );
                        assert_eq!(!turn(&session).is_null(), in_turn, "the lock of {state:?} {event}");
                    }
                    (Err(refusal), Err(code)) => {
                        assert_eq!(refusal.code, code, "{state:?} {event} {role}");
                        assert_eq!(session.snapshot(), &before, "a refusal changes nothing");
                    }
                    (result, expected) => {
                        panic!("{state:?} {event} {role}: {result:?}, expected {expected:?}")
                    }
                }
            }
        }
    }
    // There are 14 legal moves, three of which (two wakes and the sleep) are legal for both roles.
    assert_eq!(taken, 14 + 3);
}

#[test]
fn answers_of_the_actors_are_the_events() {
    let machine = machine();
    let mut session = start(&machine);
    let done = |invocation: &str, output: Json| Event::Done { invocation: invocation.into(), effect: None, output };
    session
        .host(done("loadSkills", json!({"skills": [{"name": "greet", "description": "d", "instructions": "i"}]})))
        .unwrap();
    assert_eq!(session.state("root"), ["Idle"]);
    AsController::new(&mut session, "ana")
        .wake_requested(data::WakeRequested { reason: "by hand".into(), input: Some("Say hello".into()) })
        .unwrap();
    session.host(done("loadContext", json!({"digest": "d"}))).unwrap();
    session.host(done("infer", json!({"thought": "t", "reply": "r", "actions": [{"kind": "note"}]}))).unwrap();
    session.host(done("act", json!({"results": [1]}))).unwrap();
    let step = session.host(done("persist", json!({"digest": "d"}))).unwrap();
    assert_eq!(session.state("root"), ["Sleeping"]);
    let recorded = emitted(&step);
    assert_eq!(recorded["outcome"], "completed");
    assert_eq!(recorded["turn"]["id"], "run-1/turn-1");
    assert_eq!(recorded["turn"]["results"], json!([1]));
}

fn emitted(step: &Step) -> Json {
    let data = step.effects.iter().find_map(|e| match &e.kind {
        charter_kernel::EffectKind::Emit { data, .. } => Some(data.clone()),
        _ => None,
    });
    data.expect("the turn is recorded")
}

#[test]
fn a_failure_ends_the_turn_and_a_controller_resets_it() {
    let machine = machine();
    for (state, invocation) in [
        (State::LoadingContext, "loadContext"),
        (State::Inferring, "infer"),
        (State::ExecutingActions, "act"),
        (State::Persisting, "persist"),
    ] {
        let mut session = at(&machine, state);
        let error = json!({"code": "unknown", "message": "the host was stopped in the middle of it"});
        let step = session.host(Event::Failed { invocation: invocation.into(), effect: None, error }).unwrap();
        assert_eq!(session.state("root"), ["Faulted"], "{state:?}");
        assert_eq!(emitted(&step)["reason"], "unknown: the host was stopped in the middle of it");
        AsController::new(&mut session, "ana").reset_fault().unwrap();
        assert_eq!(session.state("root"), ["Idle"]);
    }
}

#[test]
fn a_lost_turn_releases_its_lock_when_the_lease_expires() {
    let machine = machine();
    let mut session = at(&machine, State::Inferring);
    let lease =
        session.snapshot().timers().iter().find(|t| t.due.0 == 1_795_255_200_000 + 120_000).expect("the lease").clone();
    session.at(lease.due.0);
    session.host(Event::Timer { timer: lease.id.to_string(), generation: lease.generation }).unwrap();
    assert_eq!(session.state("root"), ["Faulted"]);
    assert!(turn(&session).is_null());
    // A turn that ends in time cancels its lease.
    let session = at(&machine, State::Sleeping);
    assert!(session.snapshot().timers().iter().all(|t| t.due.0 != 1_795_255_200_000 + 120_000));
}

fn code(result: Result<Step, Refusal>) -> Code {
    result.expect_err("refused").code
}

#[test]
fn soul_and_protected_keys_are_guarded() {
    let machine = machine();
    let mut session = at(&machine, State::Inferring);
    let soul = |text: &str| data::UpdateSoul { text: text.into() };
    let set = |key: &str, value: &str| data::SetConfig { key: key.into(), value: value.into() };
    AsController::new(&mut session, "ana").update_soul(soul("Be brief.")).unwrap();
    let root = session.snapshot().actor("root").unwrap().clone();
    assert_eq!(root.variable("soul"), Some(&json!({"text": "Be brief.", "version": 2})));
    let mut ana = AsController::new(&mut session, "ana");
    for empty in ["", "   "] {
        assert_eq!(code(ana.update_soul(soul(empty))), Code::Schema);
    }
    assert_eq!(code(ana.update_soul(soul(&"x".repeat(8193)))), Code::Schema);
    for key in ["soul", "soul.text", "soulful", "system", "system.version"] {
        assert_eq!(code(ana.set_config(set(key, "x"))), Code::Guard, "{key}");
    }
    assert_eq!(code(ana.set_config(set("loop.interval", "soon"))), Code::Guard);
    ana.set_config(set("loop.interval", "60s")).unwrap();
    ana.set_config(set("systematic", "yes")).unwrap();
    // No other role may send the event.
    assert_eq!(code(session.send(None, "UpdateSoul", json!({"text": "mine"}), "node", "host")), Code::Authority);
    assert_eq!(session.state("root"), ["Inferring"]);
}

#[test]
fn a_turn_with_too_many_actions_fails() {
    let machine = machine();
    let mut session = at(&machine, State::Inferring);
    let action = data::Action { kind: "note".into(), input: None };
    let many = data::InferenceCompleted { thought: None, reply: None, actions: Some(vec![action; 9]) };
    AsHost::new(&mut session, "node").inference_completed(many).unwrap();
    assert_eq!(session.state("root"), ["Faulted"]);
    let error = session.snapshot().actor("root").unwrap().variable("lastError").cloned().unwrap();
    assert_eq!(error["reason"], "more actions than a turn may take");
}

#[test]
fn only_enabled_skills_enter_the_context() {
    let machine = machine();
    let mut session = at(&machine, State::Idle);
    let skill = |name: &str| data::InstallSkill {
        name: name.into(),
        description: "d".into(),
        instructions: "i".into(),
        enabled: None,
        source: None,
        version: None,
    };
    let mut ana = AsController::new(&mut session, "ana");
    ana.install_skill(skill("a")).unwrap();
    ana.install_skill(skill("b")).unwrap();
    ana.enable_skill(data::EnableSkill { name: "a".into(), enabled: false }).unwrap();
    assert_eq!(code(ana.enable_skill(data::EnableSkill { name: "c".into(), enabled: true })), Code::Guard);
    let step = ana.wake_requested(data::WakeRequested { reason: "r".into(), input: None }).unwrap();
    let input = step.effects.iter().find_map(|e| match &e.kind {
        charter_kernel::EffectKind::Invoke { src, input, .. } if src.as_ref() == "loadContext" => Some(input.clone()),
        _ => None,
    });
    assert_eq!(input.unwrap()["skills"], json!([{"name": "b", "description": "d", "instructions": "i"}]));
}

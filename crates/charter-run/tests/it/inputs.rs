use charter_journal::Record;
use charter_kernel::definition::{ActorDecl, Delay};
use charter_kernel::{Code, EffectId, Principal, PrincipalKind, Timestamp};
use charter_run::{
    Action, ActorPolicy, Bounds, Denied, EventInput, Fault, IdState, Input, Kept, Known, Reply, Resume, Retry, Run,
    Trouble, after_failure, tasks,
};
use serde_json::json;

use crate::host::{BOUNDS, Host, WORK, boss, machine, made};

#[test]
fn a_start_requests_the_work_and_can_be_repeated() {
    let machine = machine();
    let mut host = Host::new(&machine);
    let handled = host.give(Input::start(json!(null), boss()));
    assert_eq!(handled.reply, Reply::Made(0));
    let [Action::Invoke(request)] = &handled.appended[0].actions[..] else { panic!("{:?}", handled.appended) };
    assert_eq!((request.effect, request.src.as_ref(), request.attempt), (WORK, "worker", 1));
    assert_eq!(host.run.open(), std::slice::from_ref(request));

    let again = host.give(Input::start(json!(null), boss()));
    assert_eq!(again.reply, Reply::Repeated(Box::new(host.records[0].clone())));
    let other = host.give(Input::start(json!({"n": 1}), boss()));
    assert_eq!(other.reply, Reply::Denied(Denied::RunExists));
    assert_eq!(host.records.len(), 1);
}

#[test]
fn an_event_is_recorded_once_under_its_id() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let first = made(&host.send("NOTE", json!({"n": 1}), Some("k"))).clone();
    let again = host.send("NOTE", json!({"n": 1}), Some("k"));
    assert_eq!(again.reply, Reply::Repeated(Box::new(first)));
    let other = host.send("NOTE", json!({"n": 2}), Some("k"));
    assert_eq!(other.reply, Reply::Denied(Denied::IdTaken { id: "k".into(), seq: 1 }));
    assert_eq!(host.records.len(), 2);
    assert_eq!((host.run.id_state("k"), host.run.id_state("x")), (IdState::Recent(1), IdState::New));
}

#[test]
fn nobody_but_the_host_is_the_host() {
    let machine = machine();
    let reserved = Reply::Denied(Denied::InvalidName(Principal::system().check_sender().unwrap_err()));
    let mut host = Host::new(&machine);
    assert_eq!(host.give(Input::start(json!(null), Principal::system())).reply, reserved);
    let mut host = Host::started(&machine);
    for by in [Principal::system(), Principal::new("system", &[]), Principal::new("eve", &["boss", "system"])] {
        let event = Input::Event(EventInput::new("NOTE", json!({"n": 1}), by.clone()));
        assert_eq!(host.give(event).reply, reserved);
        let answer = Input::Settled { effect: WORK, outcome: Ok(json!(1)), by };
        assert_eq!(host.give(answer).reply, reserved);
    }
    assert_eq!(host.records.len(), 1);
}

/// Otherwise one person counts as two, where two have to agree.
#[test]
fn a_sender_does_not_look_like_another() {
    let machine = machine();
    let mut host = Host::started(&machine);
    for by in
        [Principal::new("ana\u{200b}", &["boss"]), Principal::new("ana ", &[]), Principal::new("ana", &["boss\u{ad}"])]
    {
        let refused = Reply::Denied(Denied::InvalidName(by.check_sender().unwrap_err()));
        let event = Input::Event(EventInput::new("NOTE", json!({"n": 1}), by.clone()));
        assert_eq!(host.give(event).reply, refused);
        assert_eq!(host.give(Input::Settled { effect: WORK, outcome: Ok(json!(1)), by }).reply, refused);
    }
    assert_eq!(host.records.len(), 1);
}

#[test]
fn ids_beyond_the_window_are_unknown() {
    let machine = machine();
    let mut host = Host::started(&machine);
    for n in 0..300 {
        let id = format!("k{n}");
        let before = host.run.clone();
        host.send("NOTE", json!({"n": n}), Some(&id));
        // A copy of the run from before the event does not change.
        let absent = if n <= 256 { IdState::New } else { IdState::Unknown };
        assert_eq!((before.id_state(&id), host.run.id_state(&id)), (absent, IdState::Recent(n + 1)));
    }
    assert_eq!((host.run.id_state("k43"), host.run.id_state("k44")), (IdState::Unknown, IdState::Recent(45)));
    assert_eq!(host.run.id_state("k0"), IdState::Unknown);
    assert_eq!(host.run.id_state("new"), IdState::Unknown);
    assert_eq!(host.run.id_state("k299"), IdState::Recent(300));
    assert!(matches!(host.send("NOTE", json!({"n": 0}), Some("k0")).reply, Reply::Repeated(_)));
}

#[test]
fn ids_have_1_to_256_bytes() {
    let machine = machine();
    let mut host = Host::started(&machine);
    for bytes in [0, 257] {
        let denied = host.send("NOTE", json!({}), Some(&"x".repeat(bytes)));
        assert_eq!(denied.reply, Reply::Denied(Denied::IdLength { bytes }));
    }
    assert_eq!(made(&host.send("NOTE", json!({}), Some(&"x".repeat(256)))).seq, 1);
}

#[test]
fn ids_of_the_run_are_reserved_for_the_host() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let denied = host.send("NOTE", json!({}), Some("r/24"));
    assert_eq!(denied.reply, Reply::Denied(Denied::IdReserved { prefix: "r/".into() }));
    assert_eq!(made(&host.send("NOTE", json!({}), Some("rx/24"))).seq, 1);
    let own = EventInput { id: Some("r/0/0/a".into()), host_id: true, ..EventInput::new("NOTE", json!({}), boss()) };
    assert_eq!(made(&host.give(Input::Event(own))).id, "r/0/0/a");
}

#[test]
fn an_answer_that_is_not_awaited_has_no_record() {
    let machine = machine();
    let mut host = Host::started(&machine);
    for effect in [EffectId { seq: 0, index: 1 }, EffectId { seq: 9, index: 0 }] {
        assert_eq!(host.give(Input::answer(effect, Ok(json!(1)))).reply, Reply::NotAwaited);
    }
    host.send("STOP", json!(null), None);
    let late = host.give(Input::answer(WORK, Ok(json!({"n": 1}))));
    assert_eq!((late.reply, late.appended.len()), (Reply::NotAwaited, 0));
    assert_eq!(host.story(1), ["STOP accepted"]);
}

#[test]
fn a_refused_answer_becomes_its_failure_in_the_same_step() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let handled = host.give(Input::answer(WORK, Ok(json!({"n": 0}))));
    assert_eq!(host.story(1), ["done.invoke.work refused", "error.invoke.work accepted"]);
    assert_eq!(handled.reply, Reply::Made(1));
    let error = &host.records[2].event.data["error"];
    assert_eq!((&error["code"], &error["refusal"]), (&json!("refused"), &json!("execution")));
    assert_eq!(host.records[2].state, ["failed"]);
}

#[test]
fn failed_attempts_are_recorded_and_counted() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let retry = Retry { attempts: 2, jitter: 0.0, ..Retry::default() };
    let fault = || Fault::new("busy", "try later").retryable();
    let (error, again_at) = after_failure(&retry, "r/0/0", 1, fault(), host.now);
    assert_eq!(again_at, Some(Timestamp(1_000)));
    let input = Input::Outcome { effect: WORK, attempt: 1, outcome: Err(error), again_at };
    let handled = host.give(input);
    assert_eq!(handled.reply, Reply::Made(0));
    let open = host.run.open();
    assert_eq!((open[0].attempt, open[0].not_before), (2, Timestamp(1_000)));
    assert_eq!(handled.appended[0].actions, [Action::Invoke(open[0].clone())]);
    let (error, again_at) = after_failure(&retry, "r/0/0", 2, fault(), host.now);
    assert_eq!((&error["attempts"], again_at), (&json!(2), None));
    assert_eq!(after_failure(&retry, "r/0/0", 1, Fault::new("bad", ""), host.now).1, None);
    // The server requests a pause: it is obeyed if the actor has the time.
    let decl = ActorDecl { timeout: Some(Delay::Ms(60_000)), ..Default::default() };
    let retry = Retry { within: ActorPolicy::read(&decl).unwrap().retry.within, ..retry };
    let after = |ms: u64| after_failure(&retry, "r/0/0", 1, fault().with("retryAfterMs", ms), host.now).1;
    assert_eq!([after(0), after(30_000), after(60_000)], [Some(Timestamp(1_000)), Some(Timestamp(30_000)), None]);
    assert_eq!(after(u64::MAX), None);

    // During the pause no attempt was running; an attempt that was running may have taken effect.
    let mut again = |idempotent, now| host.run.after_restart(open[0].clone(), idempotent, Timestamp(now));
    assert!(matches!(again(false, 0), Resume::Again(_)));
    assert!(matches!(again(false, 1_000), Resume::Unknown(fault) if fault.code == "unknown"));
    assert!(matches!(again(true, 5_000), Resume::Again(_)));
}

/// Lets attempt 1 fail at a time; the next one begins a second later.
fn fails(host: &mut Host<'_>, at: i64) -> Vec<Action> {
    host.now = Timestamp(at);
    let error = Fault::new("busy", "try later").json();
    let input = Input::Outcome { effect: WORK, attempt: 1, outcome: Err(error), again_at: Some(Timestamp(at + 1_000)) };
    let mut handled = host.give(input);
    handled.appended.pop().unwrap().actions
}

fn control(host: &mut Host<'_>, kind: &str, at: i64) -> Vec<Action> {
    host.now = Timestamp(at);
    let by = Principal::new("op", &["operator"]);
    let mut handled = host.give(Input::Event(EventInput::new(kind, json!(null), by)));
    handled.appended.pop().unwrap().actions
}

/// Returns when attempt 2 may begin: in the run, and in the same run read from its records.
fn next_start(host: &mut Host<'_>) -> (Timestamp, Timestamp) {
    let live = host.run.request(WORK).unwrap();
    assert_eq!(live.attempt, 2);
    let kept = host.run.kept(host.machine, host.records.last().cloned());
    let mut read = Run::restore(host.machine, "r", 1, Kept { attempts: Default::default(), ..kept }).unwrap();
    let records = |from: u64, limit| -> Result<Vec<Record>, ()> {
        Ok(host.records.iter().skip(from as usize).take(limit).cloned().collect())
    };
    read.note_attempts(host.machine, records).unwrap();
    (live.not_before, read.request(WORK).unwrap().not_before)
}

#[test]
fn the_pause_between_two_attempts_stops_while_the_run_is_paused() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let started = fails(&mut host, 0);
    assert!(matches!(&started[..], [Action::Invoke(r)] if r.not_before == Timestamp(1_000)), "{started:?}");
    assert_eq!(control(&mut host, "charter.pause", 400), [Action::Hold(WORK)]);
    assert_eq!(next_start(&mut host), (Timestamp::MAX, Timestamp::MAX));
    // 600 ms are left.
    let resumed = control(&mut host, "charter.resume", 10_000);
    assert!(matches!(&resumed[..], [Action::Invoke(r)] if r.not_before == Timestamp(10_600)), "{resumed:?}");
    assert_eq!(next_start(&mut host), (Timestamp(10_600), Timestamp(10_600)));
}

#[test]
fn an_attempt_that_fails_while_the_run_is_paused_is_repeated_after_it_is_resumed() {
    let machine = machine();
    let mut host = Host::started(&machine);
    assert_eq!(control(&mut host, "charter.pause", 100), []);
    assert_eq!(fails(&mut host, 500), []);
    assert_eq!(next_start(&mut host), (Timestamp::MAX, Timestamp::MAX));
    let resumed = control(&mut host, "charter.resume", 10_000);
    assert!(matches!(&resumed[..], [Action::Invoke(r)] if r.not_before == Timestamp(11_000)), "{resumed:?}");
    assert_eq!(next_start(&mut host), (Timestamp(11_000), Timestamp(11_000)));
    // It has begun, so it continues.
    assert_eq!(control(&mut host, "charter.pause", 11_000), []);
    assert_eq!(next_start(&mut host), (Timestamp(11_000), Timestamp(11_000)));
}

#[test]
fn a_restart_of_a_paused_run_starts_nothing() {
    let machine = machine();
    let mut host = Host::started(&machine);
    control(&mut host, "charter.pause", 100);
    let request = host.run.request(WORK).unwrap();
    assert!(matches!(host.run.after_restart(request.clone(), false, host.now), Resume::Unknown(_)));
    assert_eq!(host.run.after_restart(request, true, host.now), Resume::Held);
    let resumed = control(&mut host, "charter.resume", 10_000);
    assert!(matches!(&resumed[..], [Action::Invoke(r)] if r.attempt == 1), "{resumed:?}");
    // An answer that is held needs no other attempt.
    control(&mut host, "charter.pause", 20_000);
    host.give(Input::answer(WORK, Ok(json!({"n": 1}))));
    assert_eq!(host.run.open(), []);
}

#[test]
fn a_refused_timer_waits_for_the_run_to_change() {
    let machine = machine();
    let mut host = Host::started(&machine);
    host.now = Timestamp(3_600_000);
    let handled = host.give(Input::Due);
    assert!(matches!(&handled.troubles[..], [Trouble::TimerRefused { code, .. }] if code == "execution"));
    assert_eq!(host.run.next_due(), Some(Timestamp(7_200_000)));
    assert_eq!(host.give(Input::Due).appended.len(), 0);
    host.send("NOTE", json!({"n": 1}), None);
    host.send("CHANGE", json!(null), None);
    assert_eq!(
        host.story(1),
        ["after.1h.working refused", "NOTE accepted", "after.1h.working refused", "CHANGE accepted"]
    );
    host.give(Input::Due);
    assert_eq!(host.story(5), ["after.1h.working accepted"]);
}

#[test]
fn tasks_are_answered_by_those_they_are_for() {
    let machine = machine();
    let mut host = Host::started(&machine);
    host.give(Input::answer(WORK, Ok(json!({"n": 1}))));
    let [task] = &tasks(&machine, host.run.snapshot().unwrap(), false)[..] else { panic!() };
    assert_eq!((task.effect.as_str(), task.by.as_slice()), ("r/1/0", ["boss".to_owned()].as_slice()));
    let review = EffectId { seq: 1, index: 0 };
    let settle = |by: Principal| Input::Settled { effect: review, outcome: Ok(json!("fine")), by };
    let eve = host.give(settle(Principal::new("eve", &[])));
    assert!(matches!(eve.reply, Reply::Denied(Denied::NotYours { .. })));
    // A role is not enough: the task is for persons.
    for kind in [PrincipalKind::Agent, PrincipalKind::Service] {
        let by = boss().of_kind(kind);
        assert!(!task.is_for(&by));
        let Reply::Denied(denied) = host.give(settle(by)).reply else { panic!() };
        assert_eq!(denied.to_string(), format!("the task `r/1/0` is for persons only; `bo` is of kind `{kind}`"));
        assert_eq!(denied.code(), Some((Code::Authority, Some("persons-only"))));
    }
    let Reply::Denied(denied) = host.give(settle(Principal::new("eve", &[]).of_kind(PrincipalKind::Agent))).reply
    else {
        panic!()
    };
    assert_eq!(denied.code(), Some((Code::Authority, None)), "roles are looked at first");
    // An invocation that the host executes itself is not a task.
    let own = Input::Settled { effect: WORK, outcome: Ok(json!(1)), by: boss() };
    assert!(matches!(host.give(own).reply, Reply::Denied(Denied::NoTask { .. })));
    let handled = host.give(settle(boss()));
    let record = made(&handled);
    assert_eq!((record.by.id.as_ref(), record.verdict.word()), ("bo", "accepted"));
    assert!(matches!(host.give(settle(boss())).reply, Reply::Denied(Denied::NoTask { .. })));
}

#[test]
fn a_paused_run_holds_the_first_answer_only() {
    let machine = machine();
    let mut host = Host::started(&machine);
    host.give(Input::answer(WORK, Ok(json!({"n": 1}))));
    let operator = || Principal::new("op", &["operator"]);
    host.give(Input::Event(EventInput::new("charter.pause", json!(null), operator())));
    let settle = |n: i64| Input::Settled { effect: EffectId { seq: 1, index: 0 }, outcome: Ok(json!(n)), by: boss() };
    assert_eq!(host.give(settle(1)).reply, Reply::Made(0));
    let again = host.give(settle(2)).reply;
    assert!(matches!(again, Reply::NotAwaited | Reply::Denied(Denied::NoTask { .. })), "{again:?}");
    host.give(Input::Event(EventInput::new("charter.resume", json!(null), operator())));
    assert_eq!(host.run.snapshot().unwrap().status(), charter_kernel::Status::Done);
}

#[test]
fn limits_deny_events_but_not_a_cancel() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let large = host.send("NOTE", json!({"n": 1, "s": "x".repeat(20_000)}), None);
    assert_eq!(large.reply, Reply::Denied(Denied::DataTooLarge { event: "NOTE".into(), limit: BOUNDS.data_bytes }));
    let bounds = Bounds { records: 1, ..BOUNDS };
    let note = |kind| Input::Event(EventInput::new(kind, json!({}), boss()));
    let mut handle = |input| host.run.handle(&machine, &bounds, Timestamp(0), input, Known::default());
    assert_eq!(handle(note("NOTE")).reply, Reply::Denied(Denied::TooManyRecords { limit: 1 }));
    assert_eq!(handle(Input::answer(WORK, Ok(json!({"n": 1})))).reply, Reply::Made(0));
    assert_eq!(handle(note("charter.cancel")).reply, Reply::Made(0));
}

#[test]
fn a_run_with_twice_as_many_records_as_the_limit_waits_for_no_timer() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let bounds = Bounds { records: 1, ..BOUNDS };
    let mut handle = |input, at| host.run.handle(&machine, &bounds, Timestamp(at), input, Known::default());
    assert_eq!(handle(Input::Due, 3_600_000).appended.len(), 1);
    assert_eq!(handle(Input::Due, 7_200_000).appended.len(), 0);
    assert_eq!(host.run.next_due(), None);
    let cancel = Input::Event(EventInput::new("charter.cancel", json!({}), Principal::new("op", &["operator"])));
    let handled = host.run.handle(&machine, &bounds, Timestamp(7_200_000), cancel, Known::default());
    assert_eq!(handled.reply, Reply::Made(0));
}

#[test]
fn a_run_that_never_started_denies_everything() {
    let machine = machine();
    let mut host = Host::new(&machine);
    for input in [
        Input::Event(EventInput::new("NOTE", json!({}), boss())),
        Input::answer(WORK, Ok(json!(1))),
        Input::Settled { effect: WORK, outcome: Ok(json!(1)), by: boss() },
    ] {
        assert_eq!(host.give(input).reply, Reply::Denied(Denied::NeverStarted));
    }
    assert_eq!(host.give(Input::Due).reply, Reply::None);
}

#[test]
fn a_fault_can_be_read_back_from_its_json() {
    let plain = Fault::new("busy", "try later");
    for fault in [plain.clone(), plain.clone().retryable(), plain.with("n", 1).with("list", json!([1]))] {
        assert_eq!(Fault::read(&fault.json()), fault);
    }
    assert_eq!(Fault::read(&json!("not a fault")), Fault::new("", ""));
}

//! Turns started by a call and by the loop, legal events, the history, upgrades between turns.

use charter_canister::api::{
    Error, History, Inference, InitArgs, NewSkill, Outcome, Page, Projection, Setting, Skill, TurnsQuery,
};

use charter_icp_host::each_host;

use super::*;

/// Runs a test on each available host.
fn on_each(test: impl Fn(Canister<&mut dyn Host>)) {
    each_host(|host| test(Canister::ready(host, None))).unwrap();
}

#[test]
fn a_wake_is_one_full_turn() {
    on_each(|mut c| {
        let runtime = c.runtime();
        assert_eq!((runtime.state.as_slice(), runtime.turns), (&["Idle".to_owned()][..], 0));
        assert_eq!(runtime.charter, charter_canister::built_in().digest.to_string());
        assert_eq!(runtime.run, c.id.to_text());
        let skills: Vec<Skill> = c.ask("skills", ());
        assert_eq!(skills.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["greet", "note"]);

        let end = c.wake("Hello, please sign this").unwrap();
        assert_eq!((end.number, end.outcome), (1, Outcome::Completed));
        assert_eq!(end.reply.as_deref(), Some("(mock) I heard: Hello, please sign this"));
        let runtime = c.runtime();
        assert_eq!(runtime.state, ["Sleeping"]);
        assert_eq!(runtime.last_turn, Some(end));
        assert!(runtime.turn.is_none() && runtime.last_error.is_none());

        // The log contains the envelope of the turn and its transitions.
        let events = c.events(Page { from: None, limit: Some(200) });
        let kinds: Vec<&str> = events.events.iter().map(|e| e.kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "charter.start",
                "done.invoke.loadSkills",
                "WakeRequested",
                "done.invoke.loadContext",
                "done.invoke.infer",
                "done.invoke.act",
                "done.invoke.persist"
            ]
        );
        assert_eq!(events.events[2].by, owner().to_text());
        assert_eq!(events.events[2].roles, ["controller"]);
        for (before, event) in events.events.iter().zip(&events.events[1..]) {
            assert_eq!(event.prev, before.hash);
        }
        // The projection has the turn.
        let projection = c.projection();
        assert_eq!((projection.turns, projection.refusals), (1, 0));
        assert!(projection.transitions >= 10 && projection.current, "{projection:?}");
        let turns = c.turns(TurnsQuery::default()).turns;
        assert_eq!((turns[0].turn, turns[0].adapter.as_deref()), (1, Some("mock")));
        assert!(turns[0].results.as_deref().unwrap().contains("\"algorithm\":\"mock\""));
        c.sound();
    });
}

#[test]
fn the_loop_wakes_it_and_can_be_switched_off() {
    on_each(|mut c| {
        c.advance(299_999);
        assert_eq!(c.runtime().turns, 0);
        c.advance(1);
        assert_eq!((c.runtime().turns, c.state().as_str()), (1, "Sleeping"));
        c.advance(300_000);
        let turns = c.turns(TurnsQuery::default()).turns;
        assert_eq!(turns.iter().map(|t| t.reason.as_str()).collect::<Vec<_>>(), ["timer", "timer"]);
        c.change("set_loop", (false,)).unwrap();
        c.advance(3_000_000);
        assert_eq!(c.runtime().turns, 2);
        // Set another interval.
        c.change("config_set", ("loop.interval", "60s")).unwrap();
        c.change("set_loop", (true,)).unwrap();
        c.advance(60_000);
        assert_eq!(c.runtime().turns, 3);
        c.sound();
    });
}

#[test]
fn it_can_start_awake_and_with_another_adapter() {
    let mut c = Canister::new(Some(InitArgs {
        soul: Some("You are brief.".into()),
        wake: Some("Say hello".into()),
        looping: Some(false),
        inference: Some(Inference::Stub),
        history: None,
    }));
    assert_eq!(c.state(), "Faulted");
    let error = c.runtime().last_error.unwrap();
    assert!(error.reason.starts_with("not-configured: the inference port"), "{error:?}");
    assert_eq!(c.soul().text, "You are brief.");
    let failed = c.turns(TurnsQuery { outcome: Some(Outcome::Failed), ..TurnsQuery::default() });
    assert_eq!(failed.turns.len(), 1);
    c.change("config_set", ("inference.adapter", "mock")).unwrap();
    c.change("reset_fault", ()).unwrap();
    assert_eq!(c.wake("Again").unwrap().outcome, Outcome::Completed);
    c.sound();
}

#[test]
fn a_refused_start_is_not_installed() {
    let mut host = LocalHost::new();
    let id = host.create(&[owner()]).unwrap();
    let args = InitArgs { soul: Some("  ".into()), ..InitArgs::default() };
    let args = encode_args((Some(args),)).unwrap();
    let reject = host.install(id, owner(), module(), &args).unwrap_err();
    assert!(reject.message.contains("the charter refuses to start"), "{reject}");
}

fn refused(result: Result<impl std::fmt::Debug, Error>) -> (u64, String) {
    match result {
        Err(Error::Refused(refusal)) => (refusal.seq, refusal.code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn illegal_events_are_refused_with_the_reason_and_logged() {
    let mut c = Canister::new(None);
    let mut expected = vec![refused(c.change("reset_fault", ()))];
    // One turn at a time: a second wake is refused, not queued.
    let first = c.submit("wake", (wake("one"),));
    c.host.tick();
    let second = c.submit("wake", (wake("two"),));
    let answer = c.host.await_call(&second).unwrap();
    let answer: Result<TurnEnd, Error> = candid::decode_one(&answer).unwrap();
    let Err(Error::Refused(refusal)) = &answer else { panic!("{answer:?}") };
    assert_eq!(refusal.code, "unhandled");
    assert!(refusal.legal.contains(&"UpdateSoul".to_owned()), "{refusal:?}");
    assert!(!refusal.legal.contains(&"WakeRequested".to_owned()));
    expected.push(refused(answer));
    let answer = c.host.await_call(&first).unwrap();
    let answer: Result<TurnEnd, Error> = candid::decode_one(&answer).unwrap();
    assert_eq!(answer.unwrap().number, 1);
    // Guards and schemas refuse events.
    expected.push(refused(c.change("sleep", ())));
    for key in ["soul", "soul.text", "system.run"] {
        expected.push(refused(c.change("config_set", (key, "x"))));
    }
    expected.push(refused(c.change("config_set", ("loop.interval", "soon"))));
    expected.push(refused(c.change("update_soul", (" ",))));
    expected.push(refused(c.change("skill_enable", ("nobody", true))));
    let end = c.runtime().end;
    let logged = c.refusals();
    let logged: Vec<(u64, String)> = logged.refusals.into_iter().map(|r| (r.seq, r.code)).collect();
    assert_eq!(logged, expected);
    assert_eq!(
        expected.iter().map(|(_, code)| code.as_str()).collect::<Vec<_>>(),
        ["unhandled", "unhandled", "unhandled", "guard", "guard", "guard", "guard", "schema", "guard"]
    );
    // The log contains the refusals as well, and the state is unchanged.
    let page = Page { from: Some(end - 1), limit: None };
    let last = c.events(page).events.pop().unwrap();
    assert_eq!((last.verdict.as_str(), &last.from), ("refused", &last.state));
    assert_eq!(c.soul().version, 1);
    // Input that is too large is rejected before it costs anything.
    let large = c.change("update_soul", ("x".repeat(70_000),));
    assert!(matches!(large, Err(Error::TooLarge { bytes: 70_000, .. })), "{large:?}");
    assert_eq!(c.runtime().end, end);
    c.sound();
}

#[test]
fn soul_settings_and_skills_survive_turns_and_upgrades() {
    on_each(|mut c| {
        c.change("update_soul", ("You are a lighthouse.",)).unwrap();
        c.change("config_set", ("harbour.name", "Kiel")).unwrap();
        let skill = NewSkill {
            name: "signal".into(),
            description: "when a ship is near".into(),
            instructions: "Blink.".into(),
            enabled: None,
            version: Some("2".into()),
        };
        c.change("skill_install", (skill,)).unwrap();
        c.change("skill_enable", ("greet", false)).unwrap();
        c.wake("A ship").unwrap();
        c.upgrade().unwrap();
        c.host.settle();
        assert_eq!((c.soul().text.as_str(), c.soul().version), ("You are a lighthouse.", 2));
        let name: Result<String, Error> = c.ask("config_get", ("harbour.name",));
        assert_eq!(name.unwrap(), "Kiel");
        let missing: Result<String, Error> = c.ask("config_get", ("harbour.depth",));
        assert!(matches!(missing, Err(Error::NotFound { .. })));
        let all: Vec<Setting> = c.ask("config", ());
        let run = Setting { key: "system.run".into(), value: c.id.to_text() };
        assert!(all.contains(&run), "{all:?}");
        let skills: Vec<Skill> = c.ask("skills", ());
        let enabled: Vec<(&str, bool)> = skills.iter().map(|s| (s.name.as_str(), s.enabled)).collect();
        assert_eq!(enabled, [("greet", false), ("note", true), ("signal", true)]);
        let end = c.wake("Another ship").unwrap();
        assert_eq!(end.number, 2);
        let query = TurnsQuery { newest_first: Some(true), limit: Some(1), ..TurnsQuery::default() };
        let turns = c.turns(query);
        assert_eq!((turns.turns[0].soul_version, turns.next), (2, Some(2)));
        assert!(turns.turns[0].thought.as_deref().unwrap().contains("note, signal"));
        c.sound();
    });
}

#[test]
fn an_upgrade_keeps_everything_and_sets_the_timers_again() {
    let mut c = Canister::new(None);
    for i in 0..3 {
        c.wake(&format!("number {i}")).unwrap();
    }
    c.advance(100_000);
    let (before, rows, file) = (c.runtime(), c.projection(), c.export());
    assert!(c.host.timer(c.id).is_some());
    c.upgrade().unwrap();
    c.host.settle();
    assert_eq!(c.runtime(), before);
    assert_eq!(c.projection(), rows);
    assert_eq!(c.export(), file);
    // The turn that was due in 200 s is still due.
    c.advance(199_999);
    assert_eq!(c.runtime().turns, 3);
    c.advance(1);
    assert_eq!(c.runtime().turns, 4);
    // Timers that became due in the meantime fire first.
    c.host.advance(Duration::from_secs(1_000));
    c.upgrade().unwrap();
    c.host.settle();
    assert_eq!(c.runtime().turns, 5);
    c.sound();
}

#[test]
fn the_projection_is_the_same_after_a_replay() {
    on_each(|mut c| {
        for i in 0..60 {
            c.wake(&format!("number {i}")).unwrap();
            if i % 9 == 0 {
                drop(c.change("reset_fault", ()));
            }
        }
        let before = c.projection();
        assert!(before.digest.is_some());
        let begun: Result<Projection, Error> = c.call("replay", ());
        assert!(!begun.unwrap().current, "300 records are more than a portion");
        c.host.settle();
        let after = c.projection();
        assert_eq!((after.replays, after.current), (1, true));
        assert_eq!(after, Projection { replays: 1, ..before });
        c.sound();
    });
}

#[test]
fn pages_are_bounded_and_lead_through_all() {
    on_each(|mut c| {
        for i in 0..30 {
            c.wake(&format!("number {i}")).unwrap();
        }
        let mut page = Page { from: None, limit: Some(7) };
        let mut seen = Vec::new();
        loop {
            let events = c.events(page);
            assert!(events.events.len() <= 7);
            seen.extend(events.events.iter().map(|e| e.seq));
            match events.next {
                Some(next) => page.from = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, (0..c.runtime().end).collect::<Vec<_>>());
        assert!(c.events(Page { from: Some(u64::MAX), limit: Some(0) }).events.is_empty());
        assert_eq!(c.events(Page { from: None, limit: Some(u32::MAX) }).events.len(), 152);
        for newest_first in [false, true] {
            let mut query = TurnsQuery { newest_first: Some(newest_first), limit: Some(8), ..TurnsQuery::default() };
            let mut seen = Vec::new();
            loop {
                let turns = c.turns(query);
                seen.extend(turns.turns.iter().map(|t| t.turn));
                match turns.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
            }
            if newest_first {
                seen.reverse();
            }
            assert_eq!(seen, (1..=30).collect::<Vec<_>>());
        }
    });
}

#[test]
fn the_history_is_bounded_and_the_rest_verifies() {
    let mut c = Canister::new(Some(InitArgs {
        history: Some(History { segment_records: 50, segment_bytes: u64::MAX }),
        ..InitArgs::default()
    }));
    for i in 0..100 {
        c.wake(&format!("number {i}")).unwrap();
    }
    c.host.settle();
    let runtime = c.runtime();
    assert!((150..=200).contains(&(runtime.end - runtime.first)), "{runtime:?}");
    let file = c.export();
    let report = charter_journal::verify_export(&mut file.as_bytes(), &[]).unwrap();
    assert!(report.is_verified(), "{:?}", report.findings);
    assert_eq!(report.runs[0].first, runtime.first);
    let projection = c.projection();
    assert_eq!((projection.from, projection.to), (runtime.first, runtime.end));
    let begun: Result<Projection, Error> = c.call("replay", ());
    begun.unwrap();
    c.host.settle();
    assert_eq!(c.projection(), Projection { replays: 1, ..projection });
    c.upgrade().unwrap();
    assert_eq!(c.wake("still there").unwrap().number, 101);
    c.sound();
}

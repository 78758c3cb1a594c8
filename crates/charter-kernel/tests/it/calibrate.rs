//! Looks for events that take more than 50 ms or 64 MB with the default limits: charters that each
//! spend the budget in one way. In a release build:
//!
//! `cargo test --release -p charter-kernel --test it calibrate -- --ignored --nocapture`

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use charter_kernel::{Envelope, Principal};
use serde_json::{Value as Json, json};

use crate::common::Run;
use crate::work;

/// The longest time of an event: ten times the goal, because debug builds and loaded machines are
/// slow; a test of the goal itself would depend on the machine.
const MAX_TIME: Duration = Duration::from_millis(500);

/// Returns the time that this thread has used: other processes do not count. Without it, the time
/// that has passed.
fn time() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = used.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    used.map_or_else(|| BEGIN.elapsed(), Duration::from_nanos)
}

/// Returns the peak of the memory of the process in MB, if it is known; the peak is reset first.
fn peak(reset: bool) -> Option<u64> {
    if reset {
        std::fs::write("/proc/self/clear_refs", "5").ok()?;
    }
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kb| kb / 1_024)
}

fn one(action: &str) -> String {
    format!(
        "
events: {{E: {{}}, NEXT: {{}}}}
ledger: {{permit: {{}}}}
context: {{list: [], map: {{}}, text: ''}}
machines: {{child: {{states: {{a: {{}}}}}}}}
states:
  s:
    on:
      NEXT: {{}}
      E: {{actions: {action}}}
"
    )
}

fn each(action: &str) -> String {
    one(&format!("{{each: {{in: '= event.list', as: _, index: i, do: {{{action}}}}}}}"))
}

#[test]
#[ignore = "measures; meant for release builds"]
fn no_event_takes_long_with_the_default_limits() {
    let many = |n: usize| json!({"list": vec![0; n], "text": "x".repeat(100_000)});
    let maps = json!({"list": (0..50_000).map(|i| json!({"a": i})).collect::<Vec<_>>()});
    let control = json!({"list": vec![0; 2_000], "text": "\u{1}".repeat(100_000)});
    let regions: String =
        (0..2_000).map(|i| format!("  r{i}: {{initial: a, states: {{a: {{on: {{E: b}}}}, b: {{}}}}}}\n")).collect();
    let list = |fewest: u32| format!("{{type: array, minItems: {fewest}, items: {{$ref: '#/types/tree'}}}}, ");
    let tree = format!(
        "types: {{tree: {{anyOf: [{}{{type: integer}}]}}}}\nevents: {{E: {{data: {{$ref: '#/types/tree'}}}}}}\nstates: {{s: {{on: {{E: s}}}}}}",
        (0..10).map(list).collect::<String>()
    );
    let cases: Vec<(&str, String, Json)> = vec![
        ("emit a text", each("emit: {type: OUT, data: '= event.text'}"), many(5_000)),
        ("emit control characters", each("emit: {type: OUT, data: '= event.text'}"), control),
        ("log numbers", each("log: '= i'"), many(90_000)),
        ("raise", each("raise: {type: NEXT, data: '= i'}"), many(900)),
        ("spawn", each("spawn: {machine: child, id: \"= 'c' + string(i)\", input: '= i'}"), many(900)),
        ("timers", each("send: {to: self, type: NEXT, delay: 1h, data: '= i'}"), many(9_000)),
        ("permits", each("grant: {kind: permit, key: \"= string(i)\", data: '= i'}"), many(90_000)),
        ("conditions", each("if: [{when: 'event.list.exists(x, x == 1)', do: []}]"), many(9_000)),
        ("digests", each("if: [{when: \"digest(event.text) == ''\", do: []}]"), many(9_000)),
        ("assign a list", each("assign: {list: '= context.list + [i]'}"), many(9_000)),
        ("assign a part", each("assign: {'map[string(i)]': '= i'}"), many(90_000)),
        ("assign maps", one("{assign: {list: '= event.list'}}"), maps.clone()),
        ("copies of maps", each("log: '= event.list'"), maps),
        ("strings", each("assign: {text: \"= context.text + 'xxxxxxxxxxxxxxxx'\"}"), many(90_000)),
        ("regions", format!("events: {{E: {{}}}}\ntype: parallel\nstates:\n{regions}"), json!({})),
        (
            "pattern",
            "events: {E: {data: {properties: {x: {pattern: '^(a+)+(b|a)*(a?){500}a{500}$'}}}}}\nstates: {s: {on: {E: s}}}"
                .to_owned(),
            json!({"x": "a".repeat(500_000)}),
        ),
        ("recursive anyOf", tree, json!([vec![json!(1); 20_000], vec![json!("x")]].concat())),
        (
            "transitions",
            format!(
                "events: {{E: {{}}}}\nstates:\n  s:\n    on:\n      E:\n{}",
                "        - {when: 'event.x == 1', target: s}\n".repeat(20_000)
            ),
            json!({"x": 2}),
        ),
    ];
    let plain = |(name, charter, data): (&'static str, String, Json)| {
        (name, Run::start(&charter), Envelope::event(1, "E", data, Principal::default(), 0))
    };
    let looks = [
        work::raises_beside_idle_regions(20_000, 900),
        work::conditions_beside_idle_regions(20_000, 900),
        work::regions_that_end(1_000),
        work::votes_in_regions(300, 100),
        work::stops_beside_a_queue(10_000, 900),
        work::cells_of_a_table(200, 1_000),
        work::many_targets(20_000),
        work::histories(20_000),
        work::states_in_expressions(20_000, 1_000),
        work::actors_in_expressions(5_000, 10_000),
        work::actors_as_a_value(5_000),
        work::services(30_000),
        work::closed_obligations(2_000, 20_000),
        work::changes_of_a_ledger(2_000, 5_000),
    ];
    let looks = looks.iter().map(|work| {
        let (run, envelope) = work.ready("");
        (work.name, run, envelope)
    });
    let mut slow = Vec::new();
    for (name, run, envelope) in cases.into_iter().map(plain).chain(looks) {
        let before = peak(true);
        let started = time();
        let result = run.machine.step(&run.snapshot, &envelope);
        let time = time().saturating_sub(started);
        let memory = peak(false).zip(before).map(|(after, before)| after.saturating_sub(before));
        let what = result.as_ref().map_or_else(|r| r.code.word(), |step| step.verdict.word());
        println!("{name:25} {time:>10.1?} {:>5} MB  {what}", memory.map_or("?".into(), |m| m.to_string()));
        if time > MAX_TIME {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

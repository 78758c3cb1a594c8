//! A second opinion on proofs for all data: random charters whose conditions read data, senders,
//! answers and stored values; random runs of the kernel never contradict what was called proved.
//!
//! `CHARTER_OPINIONS=N` checks N charters instead, beginning with number `CHARTER_OPINIONS_FROM`.

use std::collections::BTreeSet;

use crate::second_opinion::Numbers;
use crate::support::{document, report_with};
use charter_check::{Options, Verdict};
use charter_kernel::definition::PropertyRule;
use charter_kernel::{Digest, Envelope, Event, Machine, Principal, PrincipalKind, Query, Snapshot, Status};
use charter_test_support::cases;
use serde_json::{Value as Json, json};

const OF_CONTEXT: [&str; 16] = [
    "context.n < 2",
    "context.n > 1",
    "context.n == 3",
    "context.flag",
    "!context.flag && context.n == 2",
    "context.who == null",
    "context.who != null",
    "size(context.list) < 3",
    "size(context.list) == 2",
    "context.kept != null && context.kept.x == 3",
    "has(context.kept.t)",
    "context.m > 2.5",
    "context.m <= 1.5",
    "context.s == 'b'",
    "context.n * 3 - 1 == 5",
    "context.kept == null || context.kept.s != context.s",
];

const OF_EVENT: [&str; 28] = [
    "event.x == 3",
    "event.x * 2 == 5",
    "event.x * 2 == 6",
    "event.x > context.n",
    "event.x + context.n < 3",
    "event.s == 'a'",
    "event.s != context.s",
    "has(event.t) && event.t == 'k'",
    "event.t.size() == 2",
    "event.x in [1, 4]",
    "event.y > 2.5",
    "event.y < context.m",
    "by.id != context.who",
    "by.id == context.who",
    "by.id in context.list",
    "!(by.id in context.list)",
    "by.id == 'p3'",
    "by.kind == 'agent'",
    "'r' in by.roles",
    "digest(event.s) == digest(context.s)",
    "event.x / 2 == 1 ? context.flag : event.s == 'a'",
    "context.list.exists(i, i == by.id)",
    "event.t.startsWith('k') || event.x == 5",
    "context.kept.x == event.x",
    "math.abs(event.x) > 2",
    "math.greatest(event.x, context.n) == 3",
    "strings.quote(event.s).size() == 3",
    "type(event.x) == int",
];

const ACTIONS: [&str; 15] = [
    "",
    "assign: {n: '= context.n + 1'}",
    "assign: {n: '= context.n - 1'}",
    "assign: {n: 0}",
    "assign: {flag: '= !context.flag'}",
    "assign: {m: '= context.m * 2.0'}",
    "raise: {type: I}",
    "assign: {list: []}",
    "assign: {who: '= by.id'}",
    "assign: {n: '= event.x'}",
    "assign: {list: '= context.list + [by.id]'}",
    "assign: {kept: '= event.data', s: '= event.s'}",
    "assign: {m: '= event.y'}",
    "assign: {kept.x: '= event.x'}",
    "if: [{when: event.x > 2, do: [{assign: {flag: true}}]}, {do: [{assign: {n: '= 6 / event.x'}}]}]",
];

const EXTRAS: [&str; 8] = [
    "",
    "",
    "",
    ", by: r",
    ", by: [r, s]",
    ", quorum: {count: 2}",
    ", quorum: {count: 3, of: r}",
    ", approves: {value: context.kept, not_by: context.who}",
];

const PROPERTIES: [&str; 15] = [
    "never: in('s1')",
    "never: in('s2')",
    "never: in('s3')",
    "never: in('s4')",
    "never: in('s3'), unless-before: E0",
    "never: in('s4'), unless-before: E1",
    "never: context.n > 2",
    "never: context.n < 0",
    "always: context.n < 4 || context.flag",
    "never: size(context.list) > 2",
    "never: context.kept != null && context.kept.x == 3",
    "never: context.flag && context.n == 1",
    "never: context.s == 'b' && in('s2')",
    "never: context.m > 4.0",
    "never: context.who != null && context.who in context.list",
];

/// A transition; with `data`, the data of an event and its sender can be read.
fn transition(r: &mut Numbers, data: bool) -> String {
    let mut out = format!("{{target: s{}", r.below(5));
    let condition = match r.below(if data { 4 } else { 2 }) {
        0 => "",
        1 => r.of(&OF_CONTEXT),
        _ => r.of(&OF_EVENT),
    };
    if !condition.is_empty() {
        out.push_str(&format!(", when: \"{condition}\""));
    }
    let action = if data { r.of(&ACTIONS) } else { r.of(&ACTIONS[..8]) };
    if !action.is_empty() {
        out.push_str(&format!(", actions: [{{{action}}}]"));
    }
    if data {
        out.push_str(r.of(&EXTRAS));
    }
    out + "}"
}

/// In half of the charters, each state has one event with one or two transitions: what one
/// condition decides is seldom possible in another way, so that a wrong decision shows.
fn charter(r: &mut Numbers) -> String {
    let mut states = String::new();
    let is_sparse = r.below(2) == 0;
    for state in 0..5 {
        let mut keys = Vec::new();
        let mut on = Vec::new();
        for event in 0..if is_sparse { 1 } else { 3 } {
            let count = if is_sparse { 1 + r.below(2) } else { r.below(3) };
            let list: Vec<String> = (0..count).map(|_| transition(r, true)).collect();
            if !list.is_empty() {
                on.push(format!("E{event}: [{}]", list.join(", ")));
            }
        }
        if r.below(3) == 0 {
            on.push(format!("I: [{}]", transition(r, false)));
        }
        if !on.is_empty() {
            keys.push(format!("on: {{{}}}", on.join(", ")));
        }
        if r.below(3) == 0 {
            keys.push(format!("after: {{{}s: {}}}", 1 + r.below(5), transition(r, false)));
        }
        if r.below(4) == 0 {
            let done = format!(
                "{{target: s{}, when: '{}', actions: [{{assign: {{n: '= event.output.v'}}}}]}}, {{target: s{}}}",
                r.below(5),
                r.of(&["event.output.ok", "event.output.v > 3", "event.output.ok && event.output.v == context.n"]),
                r.below(5),
            );
            let error = r.of(&["", ", when: \"event.error.code == 'late'\""]);
            keys.push(format!(
                "invoke: {{src: w, timeout: 9s, onDone: [{done}], onError: {{target: s{}{error}}}}}",
                r.below(5)
            ));
        }
        // Eventless transitions lead on, so that they end.
        if state < 4 && r.below(5) == 0 {
            keys.push(format!("always: [{{target: s{}, when: \"{}\"}}]", state + 1, r.of(&OF_CONTEXT)));
        }
        if r.below(8) == 0 {
            keys.push("exit: [{assign: {n: '= context.n + 1'}}]".to_string());
        }
        states.push_str(&format!("  s{state}: {{{}}}\n", keys.join(", ")));
    }
    let data = "{data: {$ref: '#/types/data'}}";
    let types = "{data: {type: object, required: [x, s, y], properties: {x: {$ref: '#/types/few'}, s: {$ref: '#/types/letter'}, t: {type: string}, y: {type: number}, digest: {type: string}}}, few: {type: integer, minimum: 0, maximum: 5}, letter: {enum: [a, b]}}";
    let properties: Vec<String> =
        PROPERTIES.iter().enumerate().map(|(i, p)| format!("  - {{id: p{i}, {}}}\n", quoted(p))).collect();
    format!(
        "roles: {{r: {{}}, s: {{}}}}\ntypes: {types}\nevents: {{E0: {data}, E1: {data}, E2: {data}, I: {{}}}}\ncontext: {{n: 0, m: 0.5, flag: false, who: null, s: a, list: [], kept: null}}\nactors: {{w: {{kind: tool, output: {{type: object, required: [ok, v], properties: {{ok: {{type: boolean}}, v: {{type: integer}}}}}}}}}}\nstates:\n{states}properties:\n{}",
        properties.concat()
    )
}

/// Puts the condition of a property in quotes.
fn quoted(property: &str) -> String {
    let (key, rest) = property.split_once(": ").unwrap();
    match rest.split_once(", unless-before") {
        Some((cel, event)) => format!("{key}: \"{cel}\", unless-before{event}"),
        None => format!("{key}: \"{rest}\""),
    }
}

const START: i64 = 1_767_225_600_000;

fn data(r: &mut Numbers, at: &Snapshot) -> Json {
    let mut data = json!({
        "x": r.below(6),
        "s": r.of(&["a", "b"]),
        "y": ([json!(0.5), json!(1.5), json!(2.5), json!(3), json!(7.25), json!(-1)])[r.below(6)],
    });
    if r.below(2) == 0 {
        data["t"] = json!(r.of(&["k", "kk", "zz", "k2"]));
    }
    if r.below(2) == 0 {
        let kept = at.actor("root").and_then(|a| a.variable("kept")).cloned().unwrap_or_default();
        data["digest"] = json!(Digest::of_json(&kept).hex());
    }
    data
}

/// The next input of a random run, and its time.
fn input(r: &mut Numbers, at: &Snapshot, now: i64) -> (Envelope, i64) {
    let seq = at.seq() + 1;
    let pending = at.invocations().next().map(|(_, i)| i.id.to_string());
    let due = at.next_timer().map(|t| (t.id.to_string(), t.generation, t.due.0));
    match (r.below(10), pending, due) {
        (0..=2, Some(invocation), _) => {
            let output = json!({"ok": r.below(2) == 0, "v": r.below(7)});
            (Envelope::host(seq, Event::Done { invocation, effect: None, output }, now), now)
        }
        (3, Some(invocation), _) => {
            let error = [json!({"code": "late", "message": "no"}), json!(null), json!({"code": 3})][r.below(3)].clone();
            (Envelope::host(seq, Event::Failed { invocation, effect: None, error }, now), now)
        }
        (4 | 5, _, Some((timer, generation, due))) => {
            let now = due.max(now);
            (Envelope::host(seq, Event::Timer { timer, generation }, now), now)
        }
        (6, _, _) if r.below(3) == 0 => {
            let kind = r.of(&["charter.pause", "charter.resume", "charter.resume", "charter.cancel"]);
            (Envelope::event(seq, kind, json!(null), Principal::new("o", &["operator"]), now), now)
        }
        _ => {
            let now = now + [0, 1, 400][r.below(3)];
            let roles: &[&str] = [&[][..], &["r"], &["s"], &["r", "s"]][r.below(4)];
            let by = Principal::new(&format!("p{}", r.below(5)), roles);
            let by = if r.below(5) == 0 { by.of_kind(PrincipalKind::Agent) } else { by };
            (Envelope::event(seq, r.of(&["E0", "E0", "E1", "E2"]), data(r, at), by, now), now)
        }
    }
}

/// What a report has called proved about a charter.
struct Claims {
    machine: Machine,
    /// The properties: id, condition, the value that it must not have, the event that ends it.
    properties: Vec<(String, Query, bool, Option<String>)>,
    unreached: BTreeSet<String>,
    untaken: BTreeSet<String>,
}

impl Claims {
    fn of(source: &str, options: &Options) -> Claims {
        let report = report_with(source, options);
        let machine = Machine::compile(document(source).definition).unwrap();
        let proved = |at: &str| report.findings.iter().any(|f| f.at == at && f.verdict == Some(Verdict::Proved));
        let of = |(i, p): (usize, &charter_kernel::definition::Property)| {
            let (cel, bad, before) = match &p.rule {
                PropertyRule::Never { when, unless_before } => (when, true, unless_before.clone()),
                PropertyRule::Always(cel) => (cel, false, None),
                PropertyRule::Eventually(_) => return None,
            };
            proved(&format!("/properties/{i}")).then(|| (p.id.clone(), machine.query(cel).unwrap(), bad, before))
        };
        let properties = machine.definition().properties.iter().enumerate().filter_map(of).collect();
        let places = |code: &str| -> BTreeSet<String> {
            let of = report.findings.iter().filter(|f| f.code == code && f.verdict == Some(Verdict::Proved));
            of.map(|f| f.at.clone()).collect()
        };
        let name = |at: String| at.rsplit('/').next().unwrap().to_string();
        let unreached = places("state-not-reached").into_iter().map(name).collect();
        let untaken = places("transition-not-taken");
        Claims { machine, properties, unreached, untaken }
    }

    /// Runs the machine at random; returns the first claim that the run contradicts.
    fn contradicted_by(&self, seed: u64) -> Option<String> {
        let r = &mut Numbers(seed);
        let mut now = START;
        let begin = Envelope::host(0, Event::Start { input: json!(null) }, now);
        let mut at = self.machine.start("r", &begin).ok()?.snapshot;
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for _ in 0..30 {
            for (id, query, bad, before) in &self.properties {
                if before.as_ref().is_some_and(|event| seen.contains(event)) {
                    continue;
                }
                let answer = self.machine.ask(&at, "root", query, now);
                if answer == Ok(json!(*bad)) || answer.is_err() {
                    return Some(format!("`{id}` was called proved: {answer:?}"));
                }
            }
            if let Some(state) = at.actors().next()?.state().find(|s| self.unreached.contains(*s)) {
                return Some(format!("`{state}` was called unreachable"));
            }
            if at.status().is_finished() {
                break;
            }
            let (envelope, later) = input(r, &at, now);
            now = later;
            // While a run is paused, no timer is due.
            if at.status() == Status::Paused && matches!(envelope.event, Event::Timer { .. }) {
                continue;
            }
            let Ok(step) = self.machine.step(&at, &envelope) else { continue };
            if let Event::External { r#type, .. } = &envelope.event
                && step.verdict == charter_kernel::Verdict::Accepted
            {
                seen.insert(r#type.clone());
            }
            let outlines = self.machine.outlines();
            for (chart, transition) in step.taken() {
                let at = outlines[chart].transitions[transition as usize].at;
                if self.untaken.contains(at) {
                    return Some(format!("`{at}` was called never taken"));
                }
            }
            at = step.snapshot;
        }
        None
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_random_run_contradicts_a_proof_for_all_data() {
    let count = number("CHARTER_OPINIONS").unwrap_or(u64::from(cases(2, 40)));
    let from = number("CHARTER_OPINIONS_FROM").unwrap_or(0);
    let runs = u64::from(cases(40, 60));
    // Little is explored with examples, so that most proofs are from above.
    let options = Options { max_states: 60, effort: 2_000, max_data: 8, ..Options::default() };
    let (mut proved, mut claims) = (0, 0);
    for case in from..from + count {
        let source = charter(&mut Numbers(case.wrapping_mul(0x2545_f491_4f6c_dd1d)));
        let of = Claims::of(&source, &options);
        proved += of.properties.len();
        claims += of.properties.len() + of.unreached.len() + of.untaken.len();
        for run in 0..runs {
            let seed = case.wrapping_mul(1_000_003).wrapping_add(run);
            if let Some(wrong) = of.contradicted_by(seed) {
                panic!("charter {case}, run {run}: {wrong}\n{source}");
            }
        }
    }
    println!("{count} charters, {runs} runs each: {claims} claims, {proved} of them properties; none contradicted");
    // A test of no claims would say nothing.
    assert!(count < 10 || proved as u64 * 2 > count, "{proved} proofs in {count} charters");
}

//! A second opinion on proofs for all data: random charters whose conditions read data, senders,
//! answers and stored values; random runs of the kernel never contradict what was called proved.
//!
//! `CHARTER_OPINIONS=N` checks N charters instead, beginning with number `CHARTER_OPINIONS_FROM`.

use std::collections::BTreeSet;

use crate::second_opinion::Numbers;
use crate::second_opinion_charters::charter;
use crate::support::{document, report_with};
use charter_check::{Options, Verdict};
use charter_kernel::definition::PropertyRule;
use charter_kernel::{Auth, Digest, Envelope, Event, Machine, Principal, PrincipalKind, Query, Snapshot, Status};
use charter_test_support::cases;
use serde_json::{Value as Json, json};

const START: i64 = 1_767_225_600_000;

fn data(r: &mut Numbers, at: &Snapshot) -> Json {
    let mut data = json!({
        "x": r.below(6),
        "s": r.of(&["a", "b"]),
        "y": ([json!(0.5), json!(1.5), json!(2.5), json!(3), json!(7.25), json!(-1)])[r.below(6)],
    });
    if r.below(2) == 0 {
        data["t"] = json!(r.of(&["k", "kk", "zz", "7"]));
    }
    if r.below(2) == 0 {
        data["z"] = [json!(null), json!(0), json!(2)][r.below(3)].clone();
    }
    if r.below(2) == 0 {
        data["l"] = [json!([]), json!([1]), json!([2, 0])][r.below(3)].clone();
    }
    if r.below(2) == 0 {
        let name = r.of(&["kept", "kept", "s"]);
        let kept = at.actor("root").and_then(|a| a.variable(name)).cloned().unwrap_or_default();
        data["digest"] = json!(Digest::of_json(&kept).hex());
    }
    data
}

/// The input of a run.
fn start(r: &mut Numbers) -> Json {
    let k = r.below(4);
    if r.below(2) == 0 { json!({"k": k}) } else { json!({"k": k, "o": "o"}) }
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
            let by = if r.below(5) == 0 { by.authenticated(Auth::None) } else { by };
            let actors: Vec<String> = at.actors().map(|a| a.id().to_string()).collect();
            let to = if r.below(2) == 0 { "root" } else { &actors[r.below(actors.len())] };
            (Envelope::event(seq, r.of(&["E0", "E0", "E1", "E2"]), data(r, at), by, now).to(to), now)
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
        let begin = Envelope::host(0, Event::Start { input: start(r) }, now);
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

//! Work that a step does besides expressions and values: looking for transitions in many regions,
//! at the ends of regions, in histories, votes, queues, tables and lists of actors. Each charter
//! has a size: here a small one with little fuel, in `calibrate` a large one with the default
//! limits.

use std::time::{Duration, Instant};

use charter_kernel::{Code, Envelope, Principal};
use serde_json::{Value as Json, json};

use crate::common::Run;

/// A charter, the events that come first, and the data of the event `E` that does the work.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    charter: String,
    before: Vec<(&'static str, Json)>,
    data: Json,
}

/// One of these for each number, indented as states of a state.
fn each(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|i| format!("      {}\n", line(i))).collect()
}

fn list(n: usize) -> Json {
    json!({"list": vec![0; n]})
}

/// A charter with a parallel state `p` (its other keys, its states) and a state `q`.
fn parallel(p: &str, states: &str) -> String {
    format!(
        "events: {{E: {{}}, NEXT: {{}}, GO: {{}}, VOTE: {{}}}}
context: {{n: 0}}
machines: {{child: {{initial: a, states: {{a: {{on: {{NEXT: {{}}}}}}, b: {{}}}}}}}}
initial: p
states:
  p:
    type: parallel
{p}    states:
{states}  q: {{on: {{GO: p}}}}
"
    )
}

/// Actions that do this for each item of the list.
fn for_each(action: &str) -> String {
    format!("{{actions: {{each: {{in: '= event.list', as: _, index: i, do: {{{action}}}}}}}}}")
}

impl Work {
    fn new(name: &'static str, charter: String) -> Work {
        Work { name, charter, before: Vec::new(), data: json!({}) }
    }

    fn data(self, data: Json) -> Work {
        Work { data, ..self }
    }

    fn after(mut self, event: &'static str, data: Json) -> Work {
        self.before.push((event, data));
        self
    }

    /// Starts the run; returns it with the event `E`. `limits` is the inside of `limits`.
    pub(crate) fn ready(&self, limits: &str) -> (Run, Envelope) {
        let mut run = Run::start(&format!("limits: {{{limits}}}\n{}", self.charter));
        for (at, (event, data)) in self.before.iter().enumerate() {
            let by = Principal::new(&format!("p{at}"), &[]);
            let envelope = Envelope::event(run.snapshot.seq() + 1, event, data.clone(), by, 0);
            run.snapshot = run.machine.step(&run.snapshot, &envelope).unwrap().snapshot;
        }
        let envelope = Envelope::event(run.snapshot.seq() + 1, "E", self.data.clone(), Principal::new("e", &[]), 0);
        (run, envelope)
    }
}

pub(crate) fn raises_beside_idle_regions(n: usize, raises: usize) -> Work {
    let p = format!("    on: {{NEXT: {{}}, E: {}}}\n", for_each("raise: {type: NEXT}"));
    Work::new("raises beside idle regions", parallel(&p, &each(n, |i| format!("r{i}: {{}}")))).data(list(raises))
}

pub(crate) fn conditions_beside_idle_regions(n: usize, raises: usize) -> Work {
    let always = "    always: {when: context.n < 0, target: q}\n";
    let p = format!("{always}    on: {{NEXT: {{}}, E: {}}}\n", for_each("raise: {type: NEXT}"));
    Work::new("conditions beside idle regions", parallel(&p, &each(n, |i| format!("r{i}: {{}}")))).data(list(raises))
}

/// The last half of the regions has ended; each of the others looks at them when it ends.
pub(crate) fn regions_that_end(n: usize) -> Work {
    let others: String = (0..16).map(|i| format!(", s{i}: {{}}")).collect();
    let region = |i: usize| {
        let event = if i < n / 2 { "E" } else { "GO" };
        format!("r{i}: {{initial: a, states: {{a: {{on: {{{event}: f}}}}, f: {{type: final}}{others}}}}}")
    };
    Work::new("regions that end", parallel("", &each(n, region))).after("GO", json!({}))
}

/// Some regions have votes, and all of them get one.
pub(crate) fn votes_in_regions(n: usize, votes: usize) -> Work {
    let region = |i: usize| {
        let vote = "quorum: {count: 1000}, target: b";
        let first = if i < 10 { format!("VOTE: {{{vote}}}, ") } else { String::new() };
        format!("r{i}: {{initial: a, states: {{a: {{on: {{{first}E: {{{vote}}}}}}}, b: {{}}}}}}")
    };
    let work = Work::new("votes in regions", parallel("", &each(n, region)));
    (0..votes).fold(work, |work, i| work.after("VOTE", json!({"n": i})))
}

/// Actors are stopped while many events wait.
pub(crate) fn stops_beside_a_queue(n: usize, stops: usize) -> Work {
    let spawn = for_each("spawn: {machine: child, id: \"= 'c' + string(i)\"}");
    let last = stops - 1;
    let send = format!("{{each: {{in: '= event.queue', as: _, do: {{send: {{to: c{last}, type: NEXT}}}}}}}}");
    let stop = "{each: {in: '= event.list', as: _, index: i, do: {stop: \"= 'c' + string(i)\"}}}";
    let p = format!("    on:\n      GO: {spawn}\n      E: {{actions: [{send}, {stop}]}}\n");
    let data = json!({"list": vec![0; stops], "queue": vec![0; n]});
    Work::new("stops beside a queue", parallel(&p, "      r: {}\n")).after("GO", list(stops)).data(data)
}

/// Each actor has as many regions as the row of the table has cells.
pub(crate) fn cells_of_a_table(actors: usize, n: usize) -> Work {
    let states = each(n, |i| format!("r{i}: {{}}"));
    let cells: Vec<String> = (0..n).rev().map(|i| format!("s.r{i}")).collect();
    let charter = format!(
        "events: {{GO: {{}}, E: {{}}}}
machines:
  wide:
    initial: s
    states:
     s:
      type: parallel
      states:
{}
states:
  p: {{on: {{GO: {}, E: q}}}}
  q: {{}}
interlocks:
  - {{id: table, given: root, machine: wide, allow: {{p: [s], q: [{}]}}}}
",
        states.replace("      r", "         r"),
        for_each("spawn: {machine: wide, id: \"= 'c' + string(i)\"}"),
        cells.join(", ")
    );
    Work::new("cells of a table", charter).after("GO", list(actors))
}

/// Permits are changed beside many others.
pub(crate) fn changes_of_a_ledger(entries: usize, changes: usize) -> Work {
    let grant = |prefix: &str| for_each(&format!("grant: {{kind: permit, key: \"= '{prefix}' + string(i)\"}}"));
    let charter = format!(
        "events: {{GO: {{}}, E: {{}}}}\nledger: {{permit: {{}}}}\nstates:\n  s: {{on: {{GO: {}, E: {}}}}}\n",
        grant("a"),
        grant("b")
    );
    Work::new("changes of a ledger", charter).after("GO", list(entries)).data(list(changes))
}

/// Services are started, one beside the others.
pub(crate) fn services(n: usize) -> Work {
    let start = for_each("spawn: {machine: work, id: \"= 's' + string(i)\"}");
    let charter =
        format!("events: {{E: {{}}}}\nactors: {{work: {{kind: work}}}}\nstates:\n  s: {{on: {{E: {start}}}}}\n");
    Work::new("services", charter).data(list(n))
}

/// Each transition requires that no obligation is open, and then a role that the sender lacks.
pub(crate) fn closed_obligations(entries: usize, transitions: usize) -> Work {
    let none = "        - {requires: [{none: {kind: duty}}], quorum: {count: 1, of: nobody}, target: s}\n";
    let charter = format!(
        "events: {{GO: {{}}, CLOSE: {{}}, E: {{}}}}
roles: {{nobody: {{}}}}
ledger: {{duty: {{}}}}
states:
  s:
    on:
      GO: {}
      CLOSE: {{actions: {{close: {{kind: duty, all: true}}}}}}
      E:
{}        - {{target: s}}
",
        for_each("open: {kind: duty, key: \"= string(i)\"}"),
        none.repeat(transitions)
    );
    Work::new("closed obligations", charter).after("GO", list(entries)).after("CLOSE", json!({}))
}

fn refused(work: &Work, fuel: u64) {
    let (run, envelope) = work.ready("");
    assert!(run.machine.step(&run.snapshot, &envelope).is_ok(), "{}: not accepted", work.name);
    let (run, envelope) = work.ready(&format!("fuel: {fuel}"));
    let refused = run.machine.step(&run.snapshot, &envelope).map(drop).map_err(|r| r.code);
    assert_eq!(refused, Err(Code::TooCostly), "{}", work.name);
}

/// The fuel is more than what was charged before the work was.
#[test]
fn what_is_looked_at_is_charged() {
    refused(&raises_beside_idle_regions(400, 100), 5_000);
    refused(&conditions_beside_idle_regions(400, 100), 15_000);
    refused(&regions_that_end(200), 40_000);
    refused(&votes_in_regions(200, 30), 8_000);
    refused(&stops_beside_a_queue(1_000, 100), 15_000);
    refused(&cells_of_a_table(10, 100), 5_000);
    refused(&changes_of_a_ledger(400, 300), 20_000);
    refused(&services(1_000), 40_000);
    refused(&closed_obligations(400, 1_000), 30_000);
}

/// Enters all regions at once, in the opposite order.
pub(crate) fn many_targets(n: usize) -> Work {
    let targets: Vec<String> = (0..n).rev().map(|i| format!("'.r{i}.b'")).collect();
    let p = format!("    on: {{E: {{target: [{}]}}}}\n", targets.join(", "));
    Work::new("many targets", parallel(&p, &each(n, |i| format!("r{i}: {{initial: a, states: {{a: {{}}, b: {{}}}}}}"))))
}

pub(crate) fn histories(n: usize) -> Work {
    let region = |i: usize| {
        format!(
            "r{i}: {{initial: h, states: {{a: {{}}, h: {{type: history, target: a}}, d: {{type: history, history: deep, target: a}}}}}}"
        )
    };
    let p = "    on: {E: {target: p, reenter: true}}\n";
    Work::new("histories", parallel(p, &each(n, region)))
}

#[test]
fn many_targets_are_entered_in_linear_time() {
    // More than a second before, in a debug build; now less than ten milliseconds.
    let (run, envelope) = many_targets(1_000).ready("");
    let begin = Instant::now();
    run.machine.step(&run.snapshot, &envelope).unwrap();
    assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
}

/// A list of all active states is built for each item.
pub(crate) fn states_in_expressions(n: usize, items: usize) -> Work {
    let p = "    on: {E: {when: 'event.list.all(x, size(actors.root.state) > 0)'}, NEXT: {}}\n";
    Work::new("states in expressions", parallel(p, &each(n, |i| format!("r{i}: {{}}")))).data(list(items))
}

fn actors(n: usize, action: &str) -> Work {
    let spawn = for_each("spawn: {machine: child, id: '= event.name + string(i)'}");
    let p = format!("    on:\n      GO: {spawn}\n      E: {action}\n");
    let work = Work::new("", parallel(&p, "      r: {}\n"));
    (0..n / 500).fold(work, |work, i| {
        let mut data = list(500);
        data["name"] = json!(format!("a{i}-"));
        work.after("GO", data)
    })
}

pub(crate) fn actors_in_expressions(n: usize, items: usize) -> Work {
    let work = actors(n, "{when: \"event.list.all(x, !has(actors.nobody))\"}");
    Work { name: "actors in expressions", ..work.data(list(items)) }
}

pub(crate) fn actors_as_a_value(n: usize) -> Work {
    Work { name: "actors as a value", ..actors(n, "{actions: {log: '= actors'}}") }
}

#[test]
fn a_list_of_states_in_an_expression_costs_its_length() {
    let work = states_in_expressions(400, 100);
    let (run, envelope) = work.ready("");
    let refused = run.machine.step(&run.snapshot, &envelope).map(drop).map_err(|r| r.code);
    assert_eq!(refused, Err(Code::Guard));
    let (run, envelope) = work.ready("expression: 100000");
    assert!(run.machine.step(&run.snapshot, &envelope).is_ok());
}

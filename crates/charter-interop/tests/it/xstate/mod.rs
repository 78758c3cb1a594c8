//! XState configs: translation, diagnostics with paths, and the FRED example with its original
//! errors.

mod compared;
mod importing;
mod refused;

use std::path::Path;

use charter_format::{ReadOptions, read, read_file};
use charter_interop::import;
use charter_interop::import::Importer;
use charter_kernel::{Definition, EffectKind, Envelope, Event, Machine, Principal, Snapshot, Step};
use serde_json::{Value as Json, json};

/// A machine and its snapshot.
struct Run {
    machine: Machine,
    snapshot: Snapshot,
    seq: u64,
    at: i64,
    /// What the actions logged as effects.
    noted: String,
}

impl Run {
    fn start(definition: Definition) -> Run {
        let machine = Machine::compile(definition).unwrap_or_else(|p| panic!("{p:#?}"));
        Run::try_start(machine).unwrap()
    }

    /// Starts a run, or returns the code of the refusal.
    fn try_start(machine: Machine) -> Result<Run, &'static str> {
        let start = Envelope::host(0, Event::Start { input: Json::Null }, 1_000_000);
        let step = machine.start("run", &start).map_err(|refusal| refusal.code.word())?;
        let mut run = Run { machine, snapshot: step.snapshot.clone(), seq: 0, at: 1_000_000, noted: String::new() };
        run.note(&step);
        Ok(run)
    }

    fn note(&mut self, step: &Step) {
        for effect in &step.effects {
            if let EffectKind::Log { value, .. } = &effect.kind {
                self.noted += value.as_str().unwrap_or_default();
                self.noted += " ";
            }
        }
    }

    fn try_step(&mut self, event: Event) -> Result<(), &'static str> {
        self.seq += 1;
        let mut envelope = Envelope::host(self.seq, event, self.at);
        envelope.by = Principal::new("u", &[]);
        let step = self.machine.step(&self.snapshot, &envelope).map_err(|refusal| refusal.code.word())?;
        self.note(&step);
        self.snapshot = step.snapshot;
        Ok(())
    }

    fn step(&mut self, event: Event) -> &mut Run {
        self.try_step(event).unwrap();
        self
    }

    fn try_send(&mut self, kind: &str) -> Result<(), &'static str> {
        self.try_step(Event::External { r#type: kind.into(), data: Json::Null })
    }

    fn send(&mut self, kind: &str) -> &mut Run {
        self.try_send(kind).unwrap();
        self
    }

    fn done(&mut self, invocation: &str, output: Json) -> &mut Run {
        self.step(Event::Done { invocation: invocation.into(), effect: None, output })
    }

    fn failed(&mut self, invocation: &str) -> &mut Run {
        self.step(Event::Failed { invocation: invocation.into(), effect: None, error: json!({"message": "no"}) })
    }

    /// The pending invocations.
    fn pending(&self) -> Vec<String> {
        if self.snapshot.status().is_finished() {
            return Vec::new();
        }
        let mut ids: Vec<String> = self.snapshot.invocations().map(|(_, i)| i.id.to_string()).collect();
        ids.sort();
        ids
    }

    /// Completes or fails the n-th pending invocation.
    fn answer(&mut self, n: usize, well: bool) -> Result<(), &'static str> {
        let pending = self.pending();
        let Some(id) = n.checked_rem(pending.len()).and_then(|n| pending.get(n)) else {
            return Ok(());
        };
        let invocation = id.clone();
        self.try_step(match well {
            true => Event::Done { invocation, effect: None, output: json!(format!("done{n}")) },
            false => Event::Failed { invocation, effect: None, error: json!({"message": "no"}) },
        })
    }

    /// Advances the time and fires due timers.
    fn try_wait(&mut self, ms: i64) -> Result<(), &'static str> {
        let until = self.at + ms;
        while let Some(timer) = self.snapshot.next_timer().filter(|t| t.due.0 <= until) {
            let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
            self.at = timer.due.0.max(self.at);
            self.try_step(event)?;
        }
        self.at = until;
        Ok(())
    }

    fn wait(&mut self, ms: i64) -> &mut Run {
        self.try_wait(ms).unwrap();
        self
    }

    fn states(&self) -> Vec<String> {
        let mut states: Vec<String> = self.snapshot.actor("root").unwrap().state().map(str::to_owned).collect();
        states.sort();
        states
    }

    fn state(&self) -> String {
        self.states().join(" ")
    }
}

fn around(yaml: &str) -> Definition {
    let source = format!("charter: 1\nid: around\nstrict: false\nstates: {{only: {{}}}}\n{yaml}");
    let mut definition = read(&source, "around.yaml", &ReadOptions::default()).unwrap().definition;
    definition.root = Default::default();
    definition
}

fn config(json: &Json, around: &Definition) -> Run {
    let document = import::xstate(&json.to_string(), "c.json", around).unwrap_or_else(|e| panic!("{e}"));
    Run::start(document.definition)
}

/// Returns the messages of a refused config, with their paths.
fn refused(json: &str) -> Vec<String> {
    let errors = import::xstate(json, "c.json", &Definition::default()).unwrap_err();
    errors.list.iter().map(|d| format!("{}: {}", d.path, d.message)).collect()
}

#[test]
fn exact_descriptors_come_before_wildcards_and_longer_wildcards_before_shorter() {
    let chart = r#"{"initial": "s", "states": {"s": {"on": {"*": "any", "a.*": "short", "a.b.*": "long", "a.b.c": "exact"}}, "any": {}, "short": {}, "long": {}, "exact": {}}}"#;
    for (event, state) in
        [("a.b.c", "exact"), ("a.b.d", "long"), ("a.b", "long"), ("a.x", "short"), ("a", "short"), ("ab", "any")]
    {
        let document = import::xstate(chart, "c.json", &Definition::default()).unwrap();
        assert_eq!(Run::start(document.definition).send(event).state(), state, "{event}");
    }
}

#[test]
fn keys_that_are_array_indices_come_first_and_ascend() {
    let source = r#"{"initial": "b", "states": {"b": {}, "10": {}, "a": {}, "2": {}, "01": {}}}"#;
    let document = import::xstate(source, "c.json", &Definition::default()).unwrap();
    let keys: Vec<&String> = document.definition.root.state.states.keys().collect();
    assert_eq!(keys, ["2", "10", "b", "a", "01"]);
}

#[test]
fn a_transition_to_its_source_exits_it_only_with_reenter() {
    let around = around(
        "actions: {in: {assign: {log: \"= context.log + 'i'\"}}, out: {assign: {log: \"= context.log + 'o'\"}}}",
    );
    let chart = |reenter: bool| {
        json!({"initial": "s", "context": {"log": ""}, "states": {"s": {"entry": "in", "exit": "out", "initial": "a", "on": {"E": {"target": "s", "reenter": reenter}},
            "states": {"a": {"on": {"N": "b"}}, "b": {}}}}})
    };
    let log = |run: &Run| run.snapshot.actor("root").unwrap().variable("log").unwrap().clone();
    let mut run = config(&chart(false), &around);
    run.send("N").send("E");
    assert_eq!((run.state().as_str(), log(&run)), ("s.a", json!("i")));
    let mut run = config(&chart(true), &around);
    run.send("N").send("E");
    assert_eq!((run.state().as_str(), log(&run)), ("s.a", json!("ioi")));
}

#[test]
fn targets_resolve_as_in_xstate() {
    let chart = json!({"id": "m", "initial": "a", "on": {"ROOT": ".c.d"}, "states": {
        "a": {"on": {"SIBLING": "b", "DEEP": "c.e", "ID": "#given", "BELOW": "#given.f", "MACHINE": "#m.c.d"}},
        "b": {}, "c": {"initial": "d", "states": {"d": {"on": {"CHILD": "e"}}, "e": {"id": "given", "initial": "g", "states": {"f": {}, "g": {}}}}}}});
    for (events, state) in [
        (&["SIBLING"][..], "b"),
        (&["DEEP"], "c.e.g"),
        (&["ID"], "c.e.g"),
        (&["BELOW"], "c.e.f"),
        (&["MACHINE"], "c.d"),
        (&["ROOT"], "c.d"),
        (&["ROOT", "CHILD"], "c.e.g"),
    ] {
        let mut run = config(&chart, &Definition::default());
        for event in events {
            run.send(event);
        }
        assert_eq!(run.state(), state, "{events:?}");
    }
}

#[test]
fn invocations_and_platform_events_have_the_ids_of_xstate() {
    let around = around("actors: {w: {kind: scripted}}");
    let chart = json!({"id": "m", "initial": "a", "states": {
        "a": {"invoke": {"src": "w"}, "on": {"xstate.done.actor.0.m.a": "b", "*": "wrong"}},
        "b": {"initial": "x", "states": {"x": {"on": {"E": "y"}}, "y": {"type": "final"}}, "on": {"xstate.done.state.m.b": "c"}},
        "c": {"after": {"10": "d"}, "on": {"*": "wrong"}}, "d": {}, "wrong": {}}});
    let mut run = config(&chart, &around);
    run.done("0.m.a", json!(1));
    assert_eq!(run.state(), "b.x");
    run.send("E");
    assert_eq!(run.state(), "c");
    assert_eq!(run.wait(10).state(), "d");
}

#[test]
fn a_history_without_a_target_resolves_to_the_initial_state_of_its_parent() {
    let chart = json!({"initial": "s", "states": {"s": {"initial": "b", "states": {"a": {}, "b": {"on": {"N": "a"}}, "h": {"type": "history"}}, "on": {"OUT": "o"}}, "o": {"on": {"BACK": "s.h"}}, }});
    let mut run = config(&chart, &Definition::default());
    run.send("OUT").send("BACK");
    assert_eq!(run.state(), "s.b");
    run.send("N").send("OUT").send("BACK");
    assert_eq!(run.state(), "s.a");
}

#[test]
fn parameters_are_bound_to_params() {
    let around =
        around("guards: {over: context.n > params.limit}\nactions: {add: {assign: {n: \"= context.n + params.by\"}}}");
    let chart = json!({"initial": "s", "context": {"n": 0}, "states": {"s": {
        "always": {"guard": {"type": "over", "params": {"limit": 4}}, "target": "t"},
        "on": {"ADD": {"actions": [{"type": "add", "params": {"by": 2}}, {"type": "add", "params": {"by": 1}}]}}}, "t": {}}});
    let mut run = config(&chart, &around);
    assert_eq!(run.send("ADD").state(), "s");
    assert_eq!(run.send("ADD").state(), "t");
}

#[test]
fn combinations_of_guards_as_data() {
    let around = around("guards: {yes: \"true\", no: \"false\"}");
    let guard = |guard: Json| {
        let chart = json!({"initial": "s", "states": {"s": {"on": {"E": {"guard": guard, "target": "t"}}}, "t": {}}});
        config(&chart, &around).send("E").state() == "t"
    };
    assert!(guard(json!({"type": "and", "guards": ["yes", {"type": "not", "guard": "no"}]})));
    assert!(!guard(json!({"type": "and", "guards": ["yes", "no"]})));
    assert!(guard(json!({"type": "or", "guards": ["no", "yes"]})));
    assert!(guard(json!({"type": "stateIn", "stateValue": "s"})));
    assert!(!guard(json!({"type": "stateIn", "stateValue": {"t": "u"}})));
}

#[test]
fn errors_have_paths() {
    let found = refused(
        r##"{"initial": "a", "states": {
      "a": {"entry": "hello", "invoke": {"src": "work"}, "after": {"soon": "b"}, "on": {"E": {"guard": "ready", "target": "b"}, "F": null, "G": {"target": null}, "H": "nowhere", "done.x": "b"}},
      "b": {"invoke": {"src": null}, "exit": [null], "always": {"guard": null, "target": "a"}, "onDone": "#nobody"},
      "c": {"states": {"d": {}}}}}"##,
    );
    assert_eq!(
        found.join("\n"),
        "\
states.a.entry: undefined action `hello`
states.a.invoke.src: undefined actor `work`
states.a.after.soon: undefined delay `soon`
states.a.on.E.guard: undefined guard `ready`
states.a.on.F: this transition is `null`
states.a.on.G.target: a target is `null`
states.a.on.H: undefined state `nowhere`
states.a.on.\"done.x\": event type `done.x` is reserved
states.b.invoke.src: the `src` of an invocation is `null`
states.b.exit[0]: an action is `null`
states.b.always.guard: a guard is `null`
states.b.onDone: a state without children is never done; `onDone` is ignored
states.b.onDone: undefined state id `nobody`
states.c: a state with children requires `initial`"
    );
}

#[test]
fn fred_behaves_as_in_xstate_including_its_faults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xstate/fred.yaml");
    let document = read_file(&path, &ReadOptions { importer: &Importer, ..ReadOptions::default() })
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(!document.definition.strict);
    let mut run = Run::start(document.definition.clone());
    run.send("START").done("0.fred.intake", json!({"clarificationNeeded": []}));
    assert_eq!(run.state(), "mental_models");
    run.done("0.fred.mental_models", json!([])).done("0.fred.synthesis", json!({}));
    // The guard reads `context.decision`, but the transition that it guards assigns this variable:
    // a person is asked although the decision is confident.
    run.done("0.fred.decide", json!({"confidence": 0.99, "requiresHumanApproval": false}));
    assert_eq!(run.state(), "human_review");
    // After a rejection, the guard sees the previous decision, and a decision that is not confident
    // is executed without approval.
    run.send("HUMAN_REJECTED").done("0.fred.synthesis", json!({}));
    run.done("0.fred.decide", json!({"confidence": 0.1, "requiresHumanApproval": true}));
    assert_eq!(run.state(), "execute");
    run.done("0.fred.execute", json!({}));
    assert_eq!(run.state(), "complete");

    let mut run = Run::start(document.definition);
    for _ in 0..3 {
        run.send(if run.state() == "idle" { "START" } else { "RETRY" }).failed("0.fred.intake");
    }
    run.send("RETRY").failed("0.fred.intake").send("RETRY");
    assert_eq!(run.state(), "failed");
}

#[test]
fn keys_of_xstate_4_are_errors() {
    let found = refused(
        r#"{"initial": "a", "states": {"a": {"on": {"E": {"target": "b", "cond": "yes", "internal": true}, "": "b"}, "invoke": {"src": "w", "data": {}}}, "b": {"type": "final", "data": 1}}}"#,
    );
    assert_eq!(
        found,
        [
            "states.a.on.E.cond: `cond` is an XState 4 key, which a transition of XState 5 does not have",
            "states.a.on.E.internal: `internal` is an XState 4 key, which a transition of XState 5 does not have",
            "states.a.on.\"\": invalid event descriptor ``",
            "states.a.invoke.src: undefined actor `w`",
            "states.a.invoke.data: `data` is an XState 4 key, which an invocation of XState 5 does not have",
            "states.b.data: `data` is an XState 4 key, which a state of XState 5 does not have",
        ]
    );
}

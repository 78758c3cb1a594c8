//! Compares the kernel with XState itself: random configs and events, and recorded cases.
//!
//! The random comparison needs Node. It is skipped unless `XSTATE_DIR` is a folder in which `npm
//! install xstate@5` was run. `XSTATE_CASES` is the number of cases, and `XSTATE_SEED` the first
//! seed; `XSTATE_SHOW` prints the cases. A difference is reduced to a small case, which can be
//! added to `tests/xstate/cases.jsonl`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use charter_format::source::{self, Node, Syntax, Value};
use charter_format::{ReadOptions, read};
use charter_interop::import;
use charter_kernel::{Definition, Machine};
use serde_json::{Value as Json, json};

use super::Run;
use crate::xstate_cases::{self, Case, RuntimeEvent};

/// How many smaller cases are tried to reduce a difference.
const MAX_ATTEMPTS: usize = 1_000;

/// XState in a process of Node.
struct Oracle {
    node: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Option<Oracle> {
        let dir = std::env::var_os("XSTATE_DIR")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xstate/oracle.cjs");
        let mut node = Command::new("node")
            .arg(script)
            .env("XSTATE_DIR", dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (node.stdin.take().unwrap(), BufReader::new(node.stdout.take().unwrap()));
        Some(Oracle { node, input, output })
    }

    /// The snapshots of XState; an error if it cannot run the config.
    fn ask(&mut self, case: &Case) -> Json {
        writeln!(self.input, "{}", case.line()).unwrap();
        self.input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

/// The result of a comparison.
#[derive(Debug, PartialEq)]
enum Outcome {
    Same,
    /// XState cannot run the config.
    Refused,
    /// The same until XState lost its configuration or stopped with an error.
    Until,
    Different(String),
}

fn around() -> Definition {
    let mut around = read(&xstate_cases::around(), "around.yaml", &ReadOptions::default()).unwrap().definition;
    around.root = Definition::default().root;
    around
}

/// Runs a case in the kernel and compares it with what XState did.
fn compare(case: &Case, answer: &Json, around: &Definition) -> Outcome {
    let Some(expected) = answer.as_array() else {
        return Outcome::Refused;
    };
    let document = match import::xstate(&case.config, "case.json", around) {
        Ok(document) => document,
        Err(errors) => return Outcome::Different(format!("refused by the import: {errors}")),
    };
    let mut machine = match Machine::compile(document.definition) {
        Ok(machine) => Some(machine),
        Err(problems) => return Outcome::Different(format!("refused by the kernel: {problems:?}")),
    };
    let mut run = None;
    for (at, expected) in expected.iter().enumerate() {
        let endless = expected["error"].as_str().is_some_and(|error| error.starts_with("Infinite loop"));
        if expected["status"] == "broken" || (expected["status"] == "error" && !endless) {
            return Outcome::Until;
        }
        let step = match (&mut run, at.checked_sub(1).map(|at| &case.events[at])) {
            (None, _) => Run::try_start(machine.take().unwrap()).map(|started| run = Some(started)),
            (Some(run), _) if run.snapshot.status().is_finished() => Ok(()),
            (Some(run), Some(RuntimeEvent::Event(kind))) => run.try_send(kind),
            (Some(run), Some(RuntimeEvent::Wait(ms))) => run.try_wait(*ms),
            (Some(run), Some(RuntimeEvent::Done(n))) => run.answer(*n, true),
            (Some(run), Some(RuntimeEvent::Failed(n))) => run.answer(*n, false),
            (Some(_), None) => Ok(()),
        };
        let after = &case.events[..at];
        match step {
            // The budget of the event ends a loop as well, if its rounds cost much.
            Err(code) if endless && (code == "runaway" || code == "too-costly") => return Outcome::Same,
            Err(code) => {
                return Outcome::Different(format!("after {after:?}: refused as `{code}`, expected {expected}"));
            }
            Ok(()) => {}
        }
        let found = run.as_ref().map_or(Json::Null, seen);
        if found != *expected {
            return Outcome::Different(format!("after {after:?}:\n   found {found}\nexpected {expected}"));
        }
    }
    Outcome::Same
}

fn seen(run: &Run) -> Json {
    let snapshot = &run.snapshot;
    let log = snapshot.actor("root").unwrap().variable("log").cloned().unwrap_or_default();
    let status = if snapshot.status().is_finished() { "done" } else { "active" };
    // In an ambiguous path, dots inside keys are escaped.
    let path = |path: String| (!path.is_empty()).then(|| path.replace("\\.", "."));
    let mut states: Vec<String> = run.states().into_iter().filter_map(path).collect();
    states.sort();
    json!({"states": states, "log": log, "noted": run.noted, "status": status,
        "output": snapshot.output().cloned().unwrap_or_default(), "waits": run.pending()})
}

/// JSON with its keys in order, from which parts can be removed.
#[derive(Clone)]
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    fn of(node: &Node) -> Tree {
        match &node.value {
            Value::List(items) => Tree::List(items.iter().map(Tree::of).collect()),
            Value::Map(entries) => {
                Tree::Map(entries.iter().map(|e| (e.key.text.clone(), Tree::of(&e.value))).collect())
            }
            _ => Tree::Leaf(node.json().to_string()),
        }
    }

    fn text(&self) -> String {
        match self {
            Tree::Leaf(text) => text.clone(),
            Tree::List(items) => format!("[{}]", items.iter().map(Tree::text).collect::<Vec<_>>().join(",")),
            Tree::Map(entries) => {
                let entry = |(key, value): &(String, Tree)| format!("{}:{}", json!(key), value.text());
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// The number of parts that can be removed.
    fn parts(&self) -> usize {
        match self {
            Tree::Leaf(_) => 0,
            Tree::List(items) => items.iter().map(|item| 1 + item.parts()).sum(),
            Tree::Map(entries) => entries.iter().map(|(_, value)| 1 + value.parts()).sum(),
        }
    }

    /// Removes the n-th part.
    fn without(&mut self, mut n: usize) {
        let children: Vec<&mut Tree> = match self {
            Tree::Leaf(_) => return,
            Tree::List(items) => items.iter_mut().collect(),
            Tree::Map(entries) => entries.iter_mut().map(|(_, value)| value).collect(),
        };
        let mut found = None;
        for (at, child) in children.into_iter().enumerate() {
            if n == 0 {
                found = Some(at);
                break;
            }
            n -= 1;
            let parts = child.parts();
            if n < parts {
                return child.without(n);
            }
            n -= parts;
        }
        match (self, found) {
            (Tree::List(items), Some(at)) => drop(items.remove(at)),
            (Tree::Map(entries), Some(at)) => drop(entries.remove(at)),
            _ => {}
        }
    }
}

/// Removes parts of a case as long as the kernel and XState differ in the same way.
fn reduce(oracle: &mut Oracle, case: &Case, around: &Definition, why: &str) -> (Case, String) {
    let message =
        |why: &str| why.starts_with("refused").then(|| why.lines().find(|l| l.contains("error")).map(str::to_owned));
    let first = message(why);
    let mut tree = Tree::of(&source::parse(&case.config, "case.json", Syntax::Json).unwrap().root);
    let (mut events, mut why) = (case.events.clone(), why.to_owned());
    let mut attempts = 0;
    let mut differs = |tree: &Tree, events: &[RuntimeEvent]| {
        let case = Case { seed: case.seed, config: tree.text(), events: events.to_vec() };
        // The log is what is compared.
        if !case.config.contains("\"context\":{\"log\":\"\"}") {
            return None;
        }
        attempts += 1;
        match (attempts < MAX_ATTEMPTS).then(|| compare(&case, &oracle.ask(&case), around)) {
            Some(Outcome::Different(why)) if message(&why) == first => Some(why),
            _ => None,
        }
    };
    loop {
        let before = (tree.parts(), events.len());
        for at in (0..events.len()).rev() {
            let mut fewer = events.clone();
            fewer.remove(at);
            if let Some(found) = differs(&tree, &fewer) {
                (events, why) = (fewer, found);
            }
        }
        let mut n = 0;
        while n < tree.parts() {
            let mut smaller = tree.clone();
            smaller.without(n);
            match differs(&smaller, &events) {
                Some(found) => (tree, why) = (smaller, found),
                None => n += 1,
            }
        }
        if before == (tree.parts(), events.len()) {
            break;
        }
    }
    (Case { seed: case.seed, config: tree.text(), events }, why)
}

#[test]
fn the_kernel_behaves_as_xstate() {
    let Some(mut oracle) = Oracle::start() else {
        eprintln!("skipped: XSTATE_DIR is not set");
        return;
    };
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (count, seed) = (number("XSTATE_CASES", 500), number("XSTATE_SEED", 1));
    let around = around();
    let (mut compared, mut until, mut refused, mut different) = (0, 0, 0, Vec::new());
    for seed in seed..seed + count {
        let case = if seed % 4 == 0 { xstate_cases::case(seed) } else { xstate_cases::wild(seed) };
        if std::env::var_os("XSTATE_SHOW").is_some() {
            println!("{}", case.line());
        }
        match compare(&case, &oracle.ask(&case), &around) {
            Outcome::Same => compared += 1,
            Outcome::Until => until += 1,
            Outcome::Refused => refused += 1,
            Outcome::Different(why) => {
                let (small, why) = reduce(&mut oracle, &case, &around, &why);
                different.push(format!("seed {seed}: {}\n{}\n{why}\n", small.config, small.line()));
                if different.len() >= 8 {
                    break;
                }
            }
        }
    }
    eprintln!(
        "{compared} configs compared with XState, {until} until it lost its configuration or stopped, {refused} that it cannot run"
    );
    assert!(different.is_empty(), "{} differences:\n\n{}", different.len(), different.join("\n"));
    assert!((compared + until) * 10 > count * 6, "too few were compared: {compared} of {count}");
}

/// The recorded cases: random ones, and the reduced ones of differences that were found.
/// `XSTATE_RECORD=1` with `XSTATE_DIR` records the answers of XState again.
#[test]
fn the_kernel_behaves_as_xstate_did_in_recorded_cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xstate/cases.jsonl");
    let mut lines: Vec<Json> =
        std::fs::read_to_string(&path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    if std::env::var_os("XSTATE_RECORD").is_some() {
        let mut oracle = Oracle::start().expect("XSTATE_DIR is not set");
        for line in &mut lines {
            line["expected"] = oracle.ask(&Case::of_line(line));
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
    }
    let around = around();
    assert!(lines.len() > 30, "only {} cases", lines.len());
    for (number, line) in (1..).zip(&lines) {
        let outcome = compare(&Case::of_line(line), &line["expected"], &around);
        assert!(matches!(outcome, Outcome::Same | Outcome::Until), "line {number}: {outcome:?}\n{}", line["config"]);
    }
}

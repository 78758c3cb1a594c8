//! What the commands show: errors as JSON, rules in refusals, errors of actors, rates, and results
//! as soon as they are known.

use std::cell::RefCell;
use std::io::{BufRead, Read, Write};
use std::rc::Rc;

use charter_cli::{Io, run};
use serde_json::Value as Json;

use crate::support::{Scratch, charter, charter_with};

fn json_error(args: &[&str]) -> Json {
    let ran = charter(args);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
    let error: Json = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ran.err));
    error["error"].clone()
}

#[test]
fn with_json_errors_are_json() {
    let scratch = Scratch::new("json-errors");
    let db = scratch.0.join("missing.db").display().to_string();
    let error = json_error(&["--json", "runs", "--db", &db]);
    assert_eq!(error["message"], format!("journal file `{db}` not found"));
    assert!(error["help"].as_str().unwrap().contains("creates one"), "{error}");

    let charter = scratch.file("bad.yaml", "charter: 1\nid: x\nstates:\n  a: {on: {GO: nowhere}}\nevents: {GO: {}}\n");
    let error = json_error(&["step", &charter, "--json"]);
    let first = &error["diagnostics"][0];
    assert_eq!(error["message"], first["message"]);
    assert_eq!((&first["severity"], &first["line"], &first["file"]), (&"error".into(), &4.into(), &charter.into()));

    let error = json_error(&["--json", "runs", "--nothing"]);
    assert!(error["message"].as_str().unwrap().starts_with("unexpected argument '--nothing'"), "{error}");
}

const SHOP: &str = r#"
charter: 1
id: shop
rules: {P7: "= 'the amount ' + string(event.amount) + ' is too large'"}
events: {PAY: {data: {type: object, required: [amount], properties: {amount: {type: integer}}}}}
actors: {pay: {kind: exec, command: [sh, -c, "echo broken >&2; exit 3"], idempotent: true, timeout: 5s}}
states:
  open:
    on:
      PAY:
        - {when: event.amount > 100, refuse: P7}
        - paying
  paying: {invoke: {src: pay, onDone: closed, onError: closed}}
  closed: {type: final}
"#;

#[test]
#[cfg(unix)]
fn rules_and_errors_of_actors_are_shown_and_verify_takes_a_run() {
    let scratch = Scratch::new("shown");
    let shop = scratch.file("shop.yaml", SHOP);
    let db = scratch.0.join("charter.db").display().to_string();
    let ran = charter(&["run", &shop, "--run", "r1", "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let ran = charter(&["send", "r1", "PAY", r#"{"amount": 101}"#, "--db", &db]);
    assert!(ran.err.contains("refused (rule P7): the amount 101 is too large"), "{}", ran.err);
    charter(&["send", "r1", "PAY", r#"{"amount": 7}"#, "--db", &db]);
    let log = charter(&["log", "r1", "--db", &db]).out;
    assert!(log.contains(" rule P7: the amount 101 is too large\n"), "{log}");
    let error = log.lines().skip_while(|line| !line.contains("error.invoke")).nth(1).unwrap();
    assert!(error.contains("exit") && error.contains('3'), "{log}");

    for args in [&["verify", "r1", "--db", &db][..], &["verify", &db, "r1"], &["verify", "--db", &db]] {
        let ran = charter(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        assert!(ran.out.starts_with("verified: "), "{}", ran.out);
    }
    let ran = charter(&["verify", "r2", "--db", &db]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("run `r2` not found"), "{}", ran.err);
}

#[test]
fn a_long_stream_is_reported_with_its_rate() {
    let scratch = Scratch::new("rate");
    let gate = scratch.file(
        "gate.yaml",
        "charter: 1\nid: gate\nstream: {run: '= \"r\"', type: '= \"GO\"', at: '= 0'}\nevents: {GO: {}}\nstates: {a: {on: {GO: a}}}\n",
    );
    let long = charter_with(&["conform", &gate, "-", "--quiet"], &"{}\n".repeat(10_000));
    assert!(
        long.err.starts_with("10000 items in ") && long.err.trim_end().ends_with(" items per second"),
        "{}",
        long.err
    );
    let short = charter_with(&["conform", &gate, "-", "--quiet"], "{}\n");
    assert_eq!(short.err, "");
}

/// Lines of input that are available only after the results of the earlier lines were flushed.
struct Dialog {
    flushed: Rc<RefCell<usize>>,
    lines: Vec<&'static str>,
    given: usize,
    rest: &'static [u8],
}

impl Read for Dialog {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Dialog {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.rest.is_empty() && self.given < self.lines.len() {
            assert_eq!(*self.flushed.borrow(), self.given, "results flushed before line {} is read", self.given);
            self.rest = self.lines[self.given].as_bytes();
            self.given += 1;
        }
        Ok(self.rest)
    }
    fn consume(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }
}

/// Counts the lines that were flushed.
struct Flushed(Rc<RefCell<usize>>, usize);

impl Write for Flushed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1 += bytes.iter().filter(|b| **b == b'\n').count();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        *self.0.borrow_mut() = self.1;
        Ok(())
    }
}

#[test]
fn step_answers_each_line_of_standard_input_before_it_reads_the_next() {
    let scratch = Scratch::new("dialog");
    let gate = scratch.file("gate.yaml", "{charter: 1, id: gate, events: {GO: {}}, states: {a: {on: {GO: a}}}}");
    let flushed = Rc::new(RefCell::new(0));
    let lines = vec!["{\"type\": \"GO\"}\n"; 3];
    let dialog = Dialog { flushed: flushed.clone(), lines, given: 0, rest: b"" };
    let (mut out, mut err) = (Flushed(flushed.clone(), 0), Vec::new());
    let mut io = Io {
        out: &mut out,
        err: &mut err,
        input: Box::new(dialog),
        color_out: false,
        color_err: false,
        terminal: false,
        ready: |_| true,
        screen: None,
    };
    let exit = run(["charter", "step", &gate, "--events", "-"], &mut io);
    assert_eq!((exit.code(), *flushed.borrow()), (0, 3));
}

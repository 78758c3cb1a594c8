//! `charter sql`: the time that a query may take.
#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::support::processes::{Site, said};

/// A call of one function, which takes hours and in which SQLite does not look at the clock.
const STUCK: &str = "instr(zeroblob(50000000 + n), zeroblob(25000000) || x'01')";

const ONE: &str = "charter: 1\nid: one\ninitial: a\nstates: {a: {}}\n";

#[test]
fn a_query_that_does_not_leave_a_function_ends_the_command() {
    let site = Site::new("sql-stuck", &[("c.yaml", ONE.to_owned())]);
    site.run("run c.yaml");
    let ask = |format: &str| {
        let query = format!("WITH c(n) AS (VALUES (0), (1)) SELECT CASE n WHEN 0 THEN 'first' ELSE {STUCK} END FROM c");
        let begin = Instant::now();
        let ran = said(site.command(&format!("sql charter.db --timeout 1 {format}")).arg(query).output().unwrap());
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
        ran
    };
    let help = "help: `--timeout 6` lets it take 6 s\n";
    assert_eq!(ask(""), (2, String::new(), format!("error: the query was stopped after 1s\n{help}")));
    // The rows before it are printed.
    let (code, out, err) = ask("--json --arrays");
    assert!(code == 2 && out.lines().nth(1) == Some("[\"first\"]"), "{out}{err}");
    assert!(err.contains("\"message\":\"the query was stopped after 1s\""), "{err}");
}

#[test]
fn a_result_whose_reader_is_slow_or_leaves_is_printed_as_far_as_it_is_read() {
    let site = Site::new("sql-slow", &[("c.yaml", ONE.to_owned())]);
    site.run("run c.yaml");
    let script = |reader: &str| {
        let count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50000) SELECT x FROM c";
        let command = format!("\"$0\" sql charter.db --timeout 1 --json --arrays '{count}' | {reader}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command, env!("CARGO_BIN_EXE_charter")]).current_dir(site.path(""));
        said(shell.output().unwrap()).1
    };
    // Waiting for the reader does not count.
    assert_eq!(script("(sleep 3; wc -l)").trim(), "50001");
    assert_eq!(script("head -2"), "[\"x\"]\n[1]\n");
}

//! The promises of the bundled charters: each has a description, no violation is found, and the
//! table in its README says what `charter check` says. `UPDATE_DOCS=1 CHARTER_TESTS=full cargo test
//! -p charter-check promises` writes the tables; without `full`, only some states are explored.

use std::fs;
use std::path::Path;

use charter_check::{Finding, Options, Verdict, check};
use charter_test_support::full;

use crate::support::{document, machine};

const CHARTERS: [&str; 6] = ["automaton", "coder", "feijoa", "fred", "omen", "sentinel"];
const BEGIN: &str = "<!-- promises: generated, see crates/charter-check/tests/it/promises.rs -->\n";
const END: &str = "<!-- end of promises -->\n";

struct Row {
    promise: String,
    id: String,
    verdict: Verdict,
    obstacle: String,
}

/// The first obstacle that a finding names, without its place, which changes with every edit.
fn obstacle(finding: &Finding) -> String {
    // How far it came changes with every edit, too.
    const ENDED: &str = "the effort ended";
    if finding.message.contains(ENDED) {
        return ENDED.into();
    }
    let text = finding.message.rsplit_once("; ").map_or("", |(_, obstacle)| obstacle);
    let text = text.strip_prefix("not proved for all data: ").unwrap_or(text);
    let (place, why) = text.rsplit_once(": ").unwrap_or(("", text));
    let expression = place.rsplit_once("` (").map_or(String::new(), |(cel, _)| format!("{cel}`: "));
    format!("{expression}{why}").replace('|', "\\|")
}

fn rows(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../charters/{name}/charter.yaml"));
    let source = fs::read_to_string(path).unwrap();
    let (document, machine) = (document(&source), machine(&source));
    let options = match full() {
        // A proof is for all data; the states that are tried only look for a violation.
        true => Options { max_states: 200, ..Options::default() },
        false => Options { max_states: 2, max_data: 2, effort: 0, ..Options::default() },
    };
    let report = check(&document, &machine, &options);
    let mut rows = Vec::new();
    for (i, property) in document.definition.properties.iter().enumerate() {
        let at = format!("/properties/{i}");
        let finding = report.findings.iter().find(|f| f.at == at && f.code.starts_with("property-"));
        let finding = finding.unwrap_or_else(|| panic!("{name}: no verdict of `{}`", property.id));
        assert_ne!(finding.verdict, Some(Verdict::Violated), "{name}: {}", finding.message);
        rows.push(Row {
            promise: property.description.clone().unwrap_or_else(|| panic!("{name}: `{}` says nothing", property.id)),
            id: property.id.clone(),
            verdict: finding.verdict.unwrap(),
            obstacle: if finding.verdict == Some(Verdict::Proved) { String::new() } else { obstacle(finding) },
        });
    }
    rows
}

#[test]
fn the_tables_of_promises_say_what_check_says() {
    for name in CHARTERS {
        let rows = rows(name);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../charters/{name}/README.md"));
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap_or_else(|| panic!("{name}/README.md has no table"));
        let (table, after) = rest.split_once(END).unwrap();
        let line = |row: &Row| {
            let verdict = if row.verdict == Verdict::Proved { "proved" } else { "not decided" };
            format!("| {} | `{}` | {verdict} | {} |", row.promise, row.id, row.obstacle)
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        if full() && std::env::var_os("UPDATE_DOCS").is_some() {
            let head = "| promise | property | verdict | what stands in the way of a proof |\n|---|---|---|---|\n";
            fs::write(&path, format!("{before}{BEGIN}{head}{}\n{END}{after}", lines.join("\n"))).unwrap();
            continue;
        }
        let found: Vec<&str> = table.lines().skip(2).collect();
        // With fewer states, what is proved may not be decided.
        let same = |row: &Row, line: &str, found: &str| match full() {
            true => line == found,
            false => {
                let proved = row.verdict != Verdict::Proved || found.contains("| proved |");
                proved && found.starts_with(&format!("| {} | `{}` |", row.promise, row.id))
            }
        };
        let all = rows.iter().zip(&lines).zip(&found).all(|((row, line), found)| same(row, line, found));
        assert!(
            all && found.len() == lines.len(),
            "charters/{name}/README.md lags; it should say\n{}",
            lines.join("\n")
        );
    }
}

//! What a charter declares outside its charts: projections and limits.

use crate::common::problems;
use charter_kernel::definition::{Definition, Limits};

/// Whether a charter compiles in which one name or path of a projection is this one.
fn fits(view: &str, column: &str, path: &str) -> bool {
    let found = problems(&format!(
        "projections: {{\"{view}\": {{of: TURN, columns: {{\"{column}\": \"{path}\"}}}}}}\nstates: {{s: {{}}}}"
    ));
    assert!(found.iter().all(|(code, _)| code == "projection"), "{found:?}");
    found.is_empty()
}

#[test]
fn views_and_columns_have_plain_names_that_the_journal_does_not_use() {
    let longest = "v".repeat(63);
    for name in ["v", "turns_by_day", "v2", &longest] {
        assert!(fits(name, "number", "number") && fits("view", name, "number"), "{name}");
    }
    let longer = "v".repeat(64);
    for name in ["", "2v", "_v", "V", "vV", "v-w", "v w", "ä", "sqlite_v", &longer] {
        assert!(!fits(name, "number", "number") && !fits("view", name, "number"), "{name}");
    }
    // Tables of the journal; columns that every view has.
    for (name, is_view) in [("records", false), ("seq", true), ("run", true), ("at", true)] {
        assert_eq!((fits(name, "number", "number"), fits("view", name, "number")), (is_view, !is_view), "{name}");
    }
}

#[test]
fn the_path_of_a_column_is_names_joined_by_dots() {
    for path in ["n", "turn.number", "a-b.C_2", &"p".repeat(256)] {
        assert!(fits("view", "number", path), "{path}");
    }
    for path in ["", ".n", "n.", "a..b", "a b", "a/b", "ä", &"p".repeat(257)] {
        assert!(!fits("view", "number", path), "{path}");
    }
}

#[test]
fn the_digest_of_a_charter_has_the_newer_limits_only_if_they_are_set() {
    let text = |limits: Limits| serde_json::to_string(&Definition { limits, ..Definition::default() }).unwrap();
    let usual = Limits::default();
    let old = text(Limits { actors: 7, ..usual });
    assert!(old.contains("\"actors\":7") && !old.contains("\"fuel\"") && !old.contains("\"bytes\""), "{old}");
    assert!(text(Limits { fuel: 7, ..usual }).contains("\"fuel\":7"));
    assert!(text(Limits { bytes: 7, ..usual }).contains("\"bytes\":7"));
}

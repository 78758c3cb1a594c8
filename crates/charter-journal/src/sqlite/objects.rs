//! Compares the tables, indexes, views and triggers of a file with those of a new one.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::ids;
use super::schema::{WITH_IMPORTS, WITHOUT_HEAD, fresh, is_primary, objects};
use super::usage;
use super::views;

/// What is wrong with a table, index, view or trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Missing,
    Altered,
    Foreign,
}

/// An object of a file that does not belong to a journal as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    name: String,
    kind: String,
    wrong: Wrong,
}

impl Problem {
    /// Whether nothing may be written to the file. A foreign table or index is in nobody's way, and
    /// the tables of the event ids are rebuilt when the file is opened.
    pub(crate) fn prevents_writing(&self) -> bool {
        let is_rebuilt = ids::TABLES.iter().any(|(table, _)| *table == self.name);
        self.is_foreign_code() || self.wrong != Wrong::Foreign && !is_rebuilt
    }

    /// Whether it is SQL of somebody else, which runs when the journal is written or read.
    fn is_foreign_code(&self) -> bool {
        self.wrong == Wrong::Foreign && matches!(self.kind.as_str(), "trigger" | "view")
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Problem { name, kind, wrong } = self;
        let what = match wrong {
            Wrong::Missing => "is missing",
            Wrong::Altered => "has an unexpected definition",
            Wrong::Foreign => "does not belong to the journal",
        };
        let help = match wrong {
            Wrong::Foreign if self.is_foreign_code() => "; `charter rebuild` removes it",
            Wrong::Missing | Wrong::Altered if !is_primary(name, kind) => "; run `charter rebuild`",
            _ => "",
        };
        write!(f, "the {kind} `{name}` {what}{help}")
    }
}

/// Compares the tables, indexes, views and triggers with those of a new file. `declared` contains
/// the name and SQL of the views that charters declare.
pub(crate) fn problems(connection: &Connection, declared: BTreeMap<String, String>) -> rusqlite::Result<Vec<Problem>> {
    let (mut found, mut expected) = (objects(connection)?, fresh()?);
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    expected.retain(|name, _| version >= WITH_IMPORTS || name != "unique_keys");
    expected.retain(|name, _| version > WITH_IMPORTS || name != "interventions_run");
    if version <= WITH_IMPORTS {
        found.remove("imports");
    }
    let is_later = |name: &str| name == "host_state" || usage::OBJECTS.contains(&name);
    expected.retain(|name, _| !is_later(name) || found.contains_key(name));
    if version == WITHOUT_HEAD {
        for table in ["journal", "heads", "interventions", "deleted"] {
            expected.remove(table);
        }
    }
    // Added when the file is opened for writing.
    if ids::are_former(connection)? {
        expected.retain(|name, _| !ids::TABLES.iter().any(|(table, _)| table == name));
        found.remove(ids::FORMER_INDEX);
    }
    for (name, sql) in declared {
        expected.insert(name, ("view".into(), Some(sql)));
    }
    let mut all = Vec::new();
    for (name, (kind, sql)) in expected {
        let wrong = match found.remove(&name) {
            None => Wrong::Missing,
            Some(other) if other != (kind.clone(), sql) => Wrong::Altered,
            Some(_) => continue,
        };
        all.push(Problem { name, kind, wrong });
    }
    all.extend(found.into_iter().map(|(name, (kind, _))| Problem { name, kind, wrong: Wrong::Foreign }));
    Ok(all)
}

/// Removes the triggers and views that do not belong to the journal. They are no data.
pub(crate) fn drop_foreign(connection: &Connection) -> rusqlite::Result<()> {
    let in_transaction = !connection.is_autocommit();
    let declared = match views::declared(connection) {
        // SQLite has rolled the transaction back: what follows would be committed at once.
        Err(e) if in_transaction && connection.is_autocommit() => return Err(e),
        declared => declared.unwrap_or_default(),
    };
    for problem in problems(connection, declared)?.into_iter().filter(Problem::is_foreign_code) {
        let name = problem.name.replace('"', "\"\"");
        connection.execute_batch(&format!("DROP {} \"{name}\"", problem.kind))?;
    }
    Ok(())
}

/// The table and the condition of an index that has one, from its SQL.
pub(super) fn partial_index(sql: &str) -> Option<(&str, &str)> {
    let (before, condition) = sql.split_once(" WHERE ")?;
    let table = before.strip_prefix("CREATE INDEX ")?.split_once(" ON ")?.1.split('(').next()?;
    Some((table, condition))
}

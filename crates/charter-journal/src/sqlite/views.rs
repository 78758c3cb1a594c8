//! Views declared by charters (`projections`) over the events that runs emit: domain-specific
//! tables that need no code.
//!
//! If several charters declare a view of the same name, the highest version wins, regardless of the
//! order in which they were stored, so that a rebuild creates the same views.

use std::collections::BTreeMap;

use charter_kernel::Definition;
use charter_kernel::definition::Projection;
use rusqlite::Connection;

use super::schema;

/// Returns the name and SQL of each view that the stored charters declare.
pub(crate) fn declared(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut select = connection.prepare("SELECT version, digest, core FROM charters")?;
    let mut rows = select.query([])?;
    let mut found: BTreeMap<String, (Rank, String)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (version, digest, core): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // Most charters declare none; skip parsing them.
        if !core.contains("\"projections\"") {
            continue;
        }
        // Verification reports definitions that cannot be parsed.
        let Ok(definition) = serde_json::from_str::<Definition>(&core) else {
            continue;
        };
        for (name, view) in &definition.projections {
            let Some(sql) = create(name, view) else {
                continue;
            };
            let rank = (numbers(&version), version.clone(), digest.clone());
            match found.get(name) {
                Some((other, _)) if *other > rank => {}
                _ => drop(found.insert(name.clone(), (rank, sql))),
            }
        }
    }
    // The kernel refuses the names of Charter's tables. A definition that it has not checked must
    // not replace a table or an index either.
    if !found.is_empty() {
        for own in schema::fresh()?.keys() {
            found.remove(own);
        }
    }
    let sql = found.into_iter().map(|(name, (_, sql))| (name, sql));
    Ok(sql.collect())
}

/// Recreates the views that the stored charters declare.
pub(crate) fn recreate(connection: &Connection) -> rusqlite::Result<()> {
    for (name, sql) in declared(connection)? {
        connection.execute_batch(&format!("DROP VIEW IF EXISTS \"{name}\"; {sql}"))?;
    }
    Ok(())
}

type Rank = (Vec<u64>, String, String);

/// Splits a version into numbers for comparison, so that `1.10.0` is after `1.9.0`.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}

/// Builds the SQL of a view; returns `None` for names that the kernel also refuses.
fn create(name: &str, view: &Projection) -> Option<String> {
    if !Projection::is_name(name) {
        return None;
    }
    let mut columns = String::from("e.run AS run, e.seq AS seq, r.at AS at");
    for (column, path) in &view.columns {
        if !Projection::is_name(column) || !Projection::is_path(path) {
            return None;
        }
        let path: String = path.split('.').map(|part| format!(".\"{part}\"")).collect();
        columns.push_str(&format!(", e.data ->> '${path}' AS \"{column}\""));
    }
    let of = view.of.replace('\'', "''");
    Some(format!(
        "CREATE VIEW \"{name}\" AS SELECT {columns} FROM effects AS e JOIN records AS r ON r.run = e.run AND r.seq = e.seq \
         WHERE e.kind = 'emit' AND e.src = '{of}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::{create, declared, numbers, recreate};
    use crate::sqlite::schema;
    use charter_kernel::Definition;
    use charter_kernel::definition::Projection;
    use rusqlite::Connection;

    #[test]
    fn names_are_validated_before_they_reach_sql() {
        let view = |column: &str, path: &str| Projection {
            of: "it's".into(),
            columns: [(column.to_owned(), path.to_owned())].into_iter().collect(),
            ..Projection::default()
        };
        let sql = create("turns", &view("number", "turn.number")).unwrap();
        assert!(sql.contains(r#"e.data ->> '$."turn"."number"' AS "number""#), "{sql}");
        assert!(sql.ends_with("e.src = 'it''s'"), "{sql}");
        assert_eq!(create("a\"; DROP TABLE records", &view("c", "p")), None);
        assert_eq!(create("sqlite_x", &view("c", "p")), None);
        assert_eq!(create("v", &view("c", "a\"b")), None);
        assert_eq!(create("v", &view("c'", "a")), None);
    }

    #[test]
    fn built_in_tables_cannot_be_replaced() {
        let file = Connection::open_in_memory().unwrap();
        schema::create(&file).unwrap();
        let view = Projection { of: "told".into(), ..Projection::default() };
        let names = ["records", "effects_open", "events", "mine"];
        let definition =
            Definition { projections: names.map(|n| (n.to_owned(), view.clone())).into(), ..Definition::default() };
        let core = serde_json::to_string(&definition).unwrap();
        file.execute("INSERT INTO charters VALUES ('d', '', '', '', ?1, '', '')", [core]).unwrap();
        // The second time, the views already exist.
        for _ in 0..2 {
            recreate(&file).unwrap();
            let kept = declared(&file).unwrap();
            assert_eq!(kept.keys().collect::<Vec<_>>(), ["mine"]);
            assert_eq!(super::super::objects::problems(&file, declared(&file).unwrap()).unwrap(), []);
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("1.10.0") > numbers("1.9.0"));
        assert!(numbers("") < numbers("0.1"));
    }
}

//! The views that charters declare (`projections`): over the events that runs emit, so that a table of a domain needs no code.
//!
//! Of charters that declare a view of the same name the one with the highest version decides; which came first is no matter, so that the
//! views are the same after a rebuild.

use std::collections::BTreeMap;

use charter_kernel::Definition;
use charter_kernel::definition::Projection;
use rusqlite::Connection;

use super::schema;

/// Name and SQL of the views that the stored charters declare.
pub(crate) fn declared(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut select = connection.prepare("SELECT version, digest, core FROM charters")?;
    let mut rows = select.query([])?;
    let mut found: BTreeMap<String, (Rank, String)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (version, digest, core): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // Most charters have none, and reading them is work.
        if !core.contains("\"projections\"") {
            continue;
        }
        // One that cannot be read is told when it is verified.
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
    // The kernel refuses names of our own tables; a definition that it has not seen must not get at them either, nor at an index.
    if !found.is_empty() {
        for own in schema::fresh()?.keys() {
            found.remove(own);
        }
    }
    let sql = found.into_iter().map(|(name, (_, sql))| (name, sql));
    Ok(sql.collect())
}

/// Makes the views what the stored charters declare.
pub(crate) fn renew(connection: &Connection) -> rusqlite::Result<()> {
    for (name, sql) in declared(connection)? {
        connection.execute_batch(&format!("DROP VIEW IF EXISTS \"{name}\"; {sql}"))?;
    }
    Ok(())
}

type Rank = (Vec<u64>, String, String);

/// `1.10.0` comes after `1.9.0`.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}

/// The SQL of a view; none for names that the kernel does not let through either.
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
    use super::{create, declared, numbers, renew};
    use crate::sqlite::schema;
    use charter_kernel::Definition;
    use charter_kernel::definition::Projection;
    use rusqlite::Connection;

    #[test]
    fn only_plain_names_reach_sql() {
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
    fn nothing_of_ours_is_replaced() {
        let file = Connection::open_in_memory().unwrap();
        schema::create(&file).unwrap();
        let view = Projection { of: "told".into(), ..Projection::default() };
        let names = ["records", "effects_open", "events", "mine"];
        let definition =
            Definition { projections: names.map(|n| (n.to_owned(), view.clone())).into(), ..Definition::default() };
        let core = serde_json::to_string(&definition).unwrap();
        file.execute("INSERT INTO charters VALUES ('d', '', '', '', ?1, '', '')", [core]).unwrap();
        // Twice: the second time the views are there.
        for _ in 0..2 {
            renew(&file).unwrap();
            let kept = declared(&file).unwrap();
            assert_eq!(kept.keys().collect::<Vec<_>>(), ["mine"]);
            assert_eq!(schema::problems(&file).unwrap(), [""; 0]);
        }
    }

    #[test]
    fn versions_are_numbers() {
        assert!(numbers("1.10.0") > numbers("1.9.0"));
        assert!(numbers("") < numbers("0.1"));
    }
}

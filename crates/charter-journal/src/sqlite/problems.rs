//! Compares the tables of a file with each other and with what its records give.

use rusqlite::Connection;

use super::changes::project_all;
use super::schema::{self, TABLES};
use super::write::charter_check;
use super::{ids, keys, views};

/// What is wrong with the tables, indexes, views and triggers themselves.
pub(super) fn of_schema(c: &Connection) -> rusqlite::Result<Vec<String>> {
    // Unreadable charters are reported by other checks.
    let declared = views::declared(c).unwrap_or_default();
    Ok(schema::problems(c, declared)?.iter().map(ToString::to_string).collect())
}

/// What is wrong with the content of the tables.
pub(super) fn of_content(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut problems = Vec::new();
    charter_problems(c, &mut problems)?;
    projection_problems(c, &mut problems)?;
    if !ids::matches(&*c.unchecked_transaction()?)? {
        problems.push("table `event_ids` does not match the records; run `charter rebuild`".into());
    }
    problems.extend(keys::problems(&*c.unchecked_transaction()?)?);
    Ok(problems)
}

/// Checks the digest of the metadata and source of each charter. The key of the row is the digest
/// of the definition.
fn charter_problems(c: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut select =
        c.prepare("SELECT digest, id, version, name, source, check_digest FROM charters ORDER BY digest")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let text = |i: usize| row.get_ref(i).map(|v| v.as_str().unwrap_or("\u{fffd}"));
        if charter_check(text(1)?, text(2)?, text(3)?, text(4)?) != text(5)? {
            problems.push(format!("charter {}: its id, version, name or source has been changed", text(0)?));
        }
    }
    Ok(())
}

/// Rebuilds the projections in memory and compares them.
fn projection_problems(c: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    // One read transaction, since a writer may be active.
    let c = &*c.unchecked_transaction()?;
    let fresh = Connection::open_in_memory()?;
    schema::create_projections(&fresh)?;
    fresh.execute_batch("BEGIN")?;
    // Unreadable records are reported by the verification of the records.
    if project_all(c, &fresh)?.is_err() {
        return Ok(());
    }
    for (table, order) in TABLES {
        let sql = format!("SELECT * FROM {table} ORDER BY {order}");
        let (mut stored, mut rebuilt) = (c.prepare(&sql)?, fresh.prepare(&sql)?);
        let columns = stored.column_count();
        let (mut stored, mut rebuilt) = (stored.query([])?, rebuilt.query([])?);
        loop {
            let same = match (stored.next()?, rebuilt.next()?) {
                (None, None) => break,
                (Some(a), Some(b)) => {
                    (0..columns).all(|i| matches!((a.get_ref(i), b.get_ref(i)), (Ok(a), Ok(b)) if a == b))
                }
                _ => false,
            };
            if !same {
                problems.push(format!("table `{table}` does not match the records; run `charter rebuild`"));
                break;
            }
        }
    }
    Ok(())
}

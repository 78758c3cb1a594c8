//! Compares the tables of a file with each other and with what its records give.

use charter_kernel::{Definition, Digest};
use rusqlite::Connection;

use super::changes::project_all;
use super::objects;
use super::schema::{self, TABLES};
use super::write::charter_check;
use super::{ids, keys, views};
use crate::error::StoreError;
use crate::stored_charter::StoredCharter;

/// What is wrong with the tables, indexes, views and triggers themselves.
pub(super) fn of_schema(c: &Connection) -> rusqlite::Result<Vec<String>> {
    // Unreadable charters are reported by other checks.
    let declared = views::declared(c).unwrap_or_default();
    Ok(objects::problems(c, declared)?.iter().map(ToString::to_string).collect())
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

/// Checks the metadata of each charter, and the definition of those that no run uses: the others
/// are read with their records.
fn charter_problems(c: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut select = c.prepare(
        "SELECT digest, id, version, name, source, check_digest, core,
           EXISTS (SELECT 1 FROM runs WHERE charter = digest) FROM charters ORDER BY digest",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let text = |i: usize| row.get_ref(i).map(|v| v.as_str().unwrap_or("\u{fffd}"));
        let is_used: bool = row.get(7)?;
        let (digest, core) = (text(0)?, text(6)?);
        let definition = match Digest::parse(digest) {
            Some(digest) => {
                let charter = StoredCharter { digest, name: String::new(), core: core.into(), source: String::new() };
                charter.definition().map_err(|e| match e {
                    StoreError::Damaged(why) => why,
                    e => e.to_string(),
                })
            }
            None => Err(format!("charter {digest}: its digest is invalid")),
        };
        let is_changed = charter_check(text(1)?, text(2)?, text(3)?, text(4)?) != text(5)?;
        let is_other = |d: &Definition| Ok::<_, rusqlite::Error>(d.id != text(1)? || d.version != text(2)?);
        match definition {
            Err(why) if !is_used => problems.push(why),
            Ok(definition) if is_changed || is_other(&definition)? => problems.push(changed(digest)),
            Err(_) if is_changed => problems.push(changed(digest)),
            _ => {}
        }
    }
    Ok(())
}

fn changed(digest: &str) -> String {
    format!("charter {digest}: its id, version, name or source has been changed")
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

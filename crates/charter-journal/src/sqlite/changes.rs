//! Writes the projections, both while records are written and during a rebuild.

use rusqlite::{Connection, ErrorCode, params};
use rustc_hash::FxHashSet;

use super::prepared::{Prepared, integer};
use crate::error::StoreError;
use crate::project::{Change, project};
use crate::record::Fields;

/// Projects every record of one database into the tables of another (or of the same) database.
pub(super) fn project_all(from: &Connection, to: &Connection) -> rusqlite::Result<Result<(), StoreError>> {
    let mut to = Prepared::new(to);
    let mut waiting: FxHashSet<String> = FxHashSet::default();
    let mut select = from.prepare("SELECT run, seq, json FROM records ORDER BY n")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let damaged = |why: String| -> rusqlite::Result<Result<(), StoreError>> {
            let (run, seq): (String, i64) = (row.get(0)?, row.get(1)?);
            Ok(Err(StoreError::Damaged(format!("run `{run}`, record {seq}: {why}"))))
        };
        let fields = match Fields::read(row.get_ref(2)?.as_str()?) {
            Ok(fields) => fields,
            Err(e) => return damaged(e.to_string()),
        };
        let before = waiting.contains(fields.run.as_ref());
        let mut after = before;
        match put_changes(&mut to, &fields, &mut after) {
            Ok(()) => {}
            // All keys contain the run and the sequence number, so two rows contain the same
            // record.
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                return damaged(format!(
                    "its rows already exist (the text is that of record {} of run `{}`)",
                    fields.seq, fields.run
                ));
            }
            Err(e) => return Err(e),
        }
        if after && !before {
            waiting.insert(fields.run.into_owned());
        } else if before && !after {
            waiting.remove(fields.run.as_ref());
        }
    }
    Ok(Ok(()))
}

/// Writes the changes of a record to the projections. `waiting` tells whether a decision of the run
/// is waiting for a review, and is updated.
pub(super) fn put_changes(to: &mut Prepared<'_>, r: &Fields<'_>, waiting: &mut bool) -> rusqlite::Result<()> {
    let (run, seq) = (r.run.as_ref(), integer(r.seq));
    let number = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
    // Usually a record ends one timer and sets another; the row is then reused.
    let mut ended: Option<(&str, u64)> = None;
    project(r, |change| {
        let changed = match change {
            Change::Transition { index, name } => to.execute(
                "INSERT INTO transitions(run, seq, idx, transition) VALUES (?1, ?2, ?3, ?4)",
                params![run, seq, number(index), name],
            ),
            Change::Refusal { code, rule } => to.execute(
                "INSERT INTO refusals(run, seq, at, type, by, code, rule) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![run, seq, r.at_text(), r.event.r#type, r.by.id, code, rule],
            ),
            Change::Effect {
                index,
                kind,
                actor,
                invocation,
                src,
                data,
                open,
            } => {
                let status = if open { "open" } else { "told" };
                to.execute(
                    "INSERT INTO effects(run, seq, idx, kind, actor, invocation, src, data, status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![run, seq, number(index), kind, actor, invocation, src, data, status],
                )
            }
            Change::EffectEnded { effect, how } => to.execute(
                "UPDATE effects SET status = ?4, ended_seq = ?5 WHERE run = ?1 AND seq = ?2 AND idx = ?3 AND status = 'open'",
                params![run, integer(effect.seq), effect.index, how, seq],
            ),
            Change::TimerEnded { timer, generation } => match ended.replace((timer, generation)) {
                Some(earlier) => delete_timer(to, run, earlier),
                None => Ok(0),
            },
            Change::TimerSet {
                timer,
                generation,
                due,
            } => {
                let moved = match ended.take() {
                    Some((old, of)) => to.execute(
                        "UPDATE OR REPLACE timers SET timer = ?4, generation = ?5, due = ?6, set_seq = ?7 WHERE run = ?1 AND timer = ?2 AND generation = ?3",
                        params![run, old, integer(of), timer, integer(generation), due.0, seq],
                    )?,
                    None => 0,
                };
                match moved {
                    0 => to.execute(
                        "INSERT OR REPLACE INTO timers(run, timer, generation, due, set_seq) VALUES (?1, ?2, ?3, ?4, ?5)",
                        params![run, timer, integer(generation), due.0, seq],
                    ),
                    moved => Ok(moved),
                }
            }
            Change::Approval {
                index,
                actor,
                transition,
                approves,
                digest,
                reason,
                vote,
            } => {
                let kind = if vote { "vote" } else { "approval" };
                let roles = r.by.roles.join(" ");
                to.execute(
                    "INSERT INTO approvals(run, seq, idx, at, kind, by, roles, actor, transition, approves, digest, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                    params![run, seq, number(index), r.at_text(), kind, r.by.id, roles, actor, transition, approves, digest, reason],
                )
            }
            Change::Ledger {
                kind,
                key,
                status,
                uses,
                expires,
                due,
                data,
                how,
            } => to.execute(
                "INSERT INTO ledger(run, kind, key, status, uses, expires, due, data, how, first_seq, seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
                 ON CONFLICT(run, kind, key) DO UPDATE SET status = excluded.status, uses = excluded.uses, expires = excluded.expires, due = excluded.due,
                   data = excluded.data, how = excluded.how, seq = excluded.seq",
                params![run, kind, key, status, uses, expires.map(|t| t.0), due.map(|t| t.0), data, how, seq],
            ),
            Change::Decision {
                kind,
                subject,
                outcome,
                confidence,
                data,
            } => {
                let waits = kind == "answer";
                *waiting |= waits;
                to.execute(
                    "INSERT INTO decisions(run, seq, at, kind, subject, outcome, confidence, data, by, waiting) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                    params![run, seq, r.at_text(), kind, subject, outcome, confidence, data, r.by.id, waits],
                )
            }
            // Nearly every external event is a possible review, but a review is rarely pending.
            Change::Review | Change::Unreviewed if !std::mem::take(waiting) => Ok(0),
            Change::Review => to.execute(
                "UPDATE decisions SET waiting = 0, review_seq = ?2, review = ?3, reviewer = ?4 WHERE run = ?1 AND waiting = 1",
                params![run, seq, r.event.r#type, r.by.id],
            ),
            Change::Unreviewed => to.execute(
                "UPDATE decisions SET waiting = 0 WHERE run = ?1 AND waiting = 1",
                [run],
            ),
        };
        changed.map(drop)
    })?;
    match ended {
        Some(timer) => delete_timer(to, run, timer).map(drop),
        None => Ok(()),
    }
}

fn delete_timer(to: &mut Prepared<'_>, run: &str, (timer, generation): (&str, u64)) -> rusqlite::Result<usize> {
    to.execute(
        "DELETE FROM timers WHERE run = ?1 AND timer = ?2 AND generation = ?3",
        params![run, timer, integer(generation)],
    )
}

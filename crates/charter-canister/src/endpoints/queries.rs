//! The methods that only read, for everybody.

use ic_cdk::api::msg_caller;
use ic_cdk::query;

use super::controller;
use crate::api::{
    Check, Error, Events, ExportArgs, ExportPart, Page, Projection, Refusals, Runtime, Setting, Skill, Soul, Task,
    Turns, TurnsQuery, limit,
};
use crate::host::{self, failed, with};
use crate::platform::with_sql;
use crate::view;

/// The state of the automaton.
#[query]
fn runtime() -> Runtime {
    let by = controller(msg_caller());
    with(|c| view::runtime(&c.automaton, host::now(), &by))
}

/// The soul.
#[query]
fn soul() -> Soul {
    with(|c| view::soul(&c.automaton))
}

/// All settings, including the keys of the soul and the system.
#[query]
fn config() -> Vec<Setting> {
    let all = with(|c| c.automaton.stable.settings()).into_iter();
    all.map(|(key, value)| Setting { key, value }).collect()
}

/// A setting.
#[query]
fn config_get(key: String) -> Result<String, Error> {
    let found = with(|c| c.automaton.stable.setting(&key));
    found.ok_or_else(|| Error::NotFound { message: format!("no setting `{key}`") })
}

/// The skills.
#[query]
fn skills() -> Vec<Skill> {
    with(|c| view::skills(&c.automaton))
}

/// The tasks that wait for a person.
#[query]
fn tasks() -> Vec<Task> {
    with(|c| view::tasks(&c.automaton))
}

/// Turns that ended, from the projection.
#[query]
fn turns(query: TurnsQuery) -> Result<Turns, Error> {
    let most = limit(query.limit);
    let found = with(|c| with_sql(|sql| c.projection.turns(sql, &query, most)));
    let mut turns = found.map_err(failed)?;
    let more = turns.len() > most as usize;
    turns.truncate(most as usize);
    // Limit the page by size as well as by count: the Internet Computer limits the size of a
    // response.
    let mut bytes = 0usize;
    let size = |t: &crate::api::Turn| {
        let parts = [&t.input, &t.failure, &t.thought, &t.reply, &t.actions, &t.results];
        parts.into_iter().flatten().fold(512usize, |n, p| n.saturating_add(p.len()))
    };
    let fit = turns.iter().take_while(|t| {
        let fits = bytes < crate::api::PAGE_BYTES;
        bytes = bytes.saturating_add(size(t));
        fits
    });
    let fit = fit.count();
    let cut = fit < turns.len();
    turns.truncate(fit);
    let next = turns.last().map(|t| t.turn).filter(|_| more || cut);
    Ok(Turns { turns, next })
}

/// Records of the log.
#[query]
fn events(page: Page) -> Result<Events, Error> {
    with(|c| view::events(&c.automaton, &page)).map_err(failed)
}

/// Refused events, from the projection.
#[query]
fn refusals(page: Page) -> Result<Refusals, Error> {
    let most = page.limit();
    let from = page.from.unwrap_or_default();
    let found = with(|c| with_sql(|sql| c.projection.refusals(sql, from, most)));
    let mut refusals = found.map_err(failed)?;
    let next = refusals.get(most as usize).map(|r| r.seq);
    refusals.truncate(most as usize);
    with(|c| view::say_refusals(&c.automaton, &mut refusals)).map_err(failed)?;
    Ok(Refusals { refusals, next })
}

/// The state of the SQL projection.
#[query]
pub(super) fn projection() -> Result<Projection, Error> {
    with(|c| {
        let (first, end) = (c.automaton.stable.log.first(), c.automaton.stable.log.end());
        let ([turns, transitions, refusals], digest) = with_sql(|sql| c.projection.rows(sql)).map_err(failed)?;
        let progress = c.projection.progress();
        Ok(Projection {
            schema: progress.schema.clone(),
            from: progress.from,
            to: progress.to,
            first,
            end,
            current: progress.error.is_none() && !c.projection.is_behind(first, end),
            replays: progress.replays,
            turns,
            transitions,
            refusals,
            digest,
            error: progress.error.clone(),
        })
    })
}

/// Whether the stored data agrees with the run.
#[query]
fn check() -> Check {
    with(|c| view::check(&c.automaton))
}

/// The journal in parts; concatenated, they are a file that `charter verify` reads.
#[query]
fn export(args: ExportArgs) -> Result<ExportPart, Error> {
    with(|c| view::export(&c.automaton, &args)).map_err(failed)
}

//! Dry forks: no actor is called. A call that the other run has made too gets the answer that it
//! got there; any other one waits for a person.

use std::sync::Arc;

use charter_journal::{Record, SourceKind, Store, StoreError, origin};
use charter_kernel::{EffectId, Event};
use charter_run::InvocationRequest;
use serde_json::Value as Json;

use crate::charter::Charter;
use crate::events::{RuntimeEvent, Working};
use crate::inner::Inner;

impl Inner {
    /// Answers an invocation of a dry fork from the past of the other run, or leaves it to a
    /// person.
    pub(crate) fn repeat(self: &Arc<Self>, charter: &Charter, run: &Arc<str>, request: InvocationRequest) {
        if self.is_closing() {
            return;
        }
        let InvocationRequest { effect, invocation, src, .. } = request;
        let kind = charter.actors.get(src.as_ref()).map_or_else(|| "".into(), |actor| actor.kind.clone());
        let working = Working {
            run: run.clone(),
            effect: effect.text(run).into(),
            invocation,
            src,
            kind,
            attempt: 1,
            since: self.clock.now(),
        };
        self.calls.register(effect, working.clone(), |registration| {
            let parts = (self.clone(), run.clone(), self.clock.turn(), self.clock.work(), registration);
            let task = self.handle.spawn(async move {
                let (inner, run, turn, activity, registration) = parts;
                turn.await;
                let of = run.clone();
                match inner.with_store(move |inner| answer(inner.store.as_ref(), &of, effect)).await {
                    Ok(Ok(Some(outcome))) => inner.give(&run, effect, 1, outcome).await,
                    Ok(Ok(None)) => inner.publisher.publish(RuntimeEvent::Waiting(working)),
                    Ok(Err(e)) => inner.publisher.trouble(Some(&run), format!("cannot read the other run: {e}")),
                    Err(e) => inner.publisher.trouble(Some(&run), e.to_string()),
                }
                drop(activity);
                drop(registration);
            });
            task.abort_handle()
        });
    }
}

/// Returns the answer that the other run of a fork got for the same call, if there is one.
///
/// An effect of the shared records is the same call. Later, the calls with the same actor and the
/// same input are matched in order: the first of the fork with the first of the other run, and so
/// on.
fn answer(store: &dyn Store, run: &str, effect: EffectId) -> Result<Option<Result<Json, Json>>, StoreError> {
    let Some(origin) = origin(store, run)? else {
        return Ok(None);
    };
    let other = &*origin.run;
    // The other run may have been deleted, and its id given to another one.
    if store.run(other)?.is_none()
        || store.records(other, origin.seq, 1)?.first().is_none_or(|last| last.hash != origin.hash)
    {
        return Ok(None);
    }
    let later = origin.seq.saturating_add(1);
    let wanted = if effect.seq < later {
        Some(effect)
    } else {
        let Some(call) = call(store, run, effect)? else {
            return Ok(None);
        };
        let mut before = 0_usize;
        find(store, run, later, "\"invoke\"", |record| {
            let same = calls(record).filter(|(_, other)| is_same(&call, other));
            let earlier = same.filter(|(id, _)| *id < effect).count();
            before = before.saturating_add(earlier);
            (record.seq >= effect.seq).then_some(())
        })?;
        find(store, other, later, "\"invoke\"", |record| {
            let same: Vec<EffectId> =
                calls(record).filter(|(_, other)| is_same(&call, other)).map(|(id, _)| id).collect();
            let found = same.get(before).copied();
            before = before.saturating_sub(same.len());
            found
        })?
    };
    let Some(wanted) = wanted.map(|effect| (effect, effect.text(other))) else {
        return Ok(None);
    };
    find(store, other, wanted.0.seq, &wanted.1, |record| {
        let is_answer = matches!(record.source.kind, SourceKind::Done | SourceKind::Error)
            && record.source.effect.as_deref() == Some(&wanted.1)
            && record.refusal.is_none();
        match record.envelope().ok().filter(|_| is_answer)?.event {
            Event::Done { output, .. } => Some(Ok(output)),
            Event::Failed { error, .. } => Some(Err(error)),
            _ => None,
        }
    })
}

/// Visits the records of a run whose text contains `word`, until `visit` returns something.
fn find<T>(
    store: &dyn Store,
    run: &str,
    from: u64,
    word: &str,
    mut visit: impl FnMut(&Record) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let mut found = None;
    store.scan(Some(run), from, &mut |row| {
        let text = std::str::from_utf8(row.text).ok().filter(|text| text.contains(word));
        found = text.and_then(|text| Record::read(text).ok()).and_then(|record| visit(&record));
        found.is_none()
    })?;
    Ok(found)
}

/// The calls of actors that a record requests.
fn calls(record: &Record) -> impl Iterator<Item = (EffectId, &Json)> {
    let calls = record.effects.iter().filter(|effect| effect.get("kind").is_some_and(|kind| kind == "invoke"));
    calls.filter_map(|call| Some((EffectId::parse(call.get("id")?.as_str()?)?, call)))
}

/// Returns the call that an effect of a run is.
fn call(store: &dyn Store, run: &str, effect: EffectId) -> Result<Option<Json>, StoreError> {
    let record = store.records(run, effect.seq, 1)?.into_iter().next();
    Ok(record.and_then(|record| calls(&record).find(|(id, _)| *id == effect).map(|(_, call)| call.clone())))
}

/// Whether two calls ask the same actor for the same.
fn is_same(one: &Json, other: &Json) -> bool {
    ["src", "input"].into_iter().all(|key| one.get(key) == other.get(key))
}

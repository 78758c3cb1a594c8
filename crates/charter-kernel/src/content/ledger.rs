//! The actions that write the ledger: grant and revoke permits, open and close obligations.

use serde_json::Value as Json;

use crate::budget::Work;
use crate::event::Ev;
use crate::fault::Fault;
use crate::ledger::{Entry, EntryStatus};
use crate::machine::Action;
use crate::scope::Local;
use crate::snapshot::TimerKind;
use crate::time::Timestamp;
use crate::transaction::StepTransaction;

/// What an entry takes besides its key and its data, in the run, the record and the snapshot.
const ENTRY_BYTES: u64 = 512;

impl StepTransaction<'_> {
    pub(super) fn ledger_action(
        &mut self,
        actor_ix: usize,
        action: &Action,
        ev: Option<&Ev<'_>>,
        locals: &[Local],
    ) -> Result<(), Fault> {
        self.budget.build(ENTRY_BYTES, Work::Run);
        if let Some(unknowns) = self.budget.unknowns() {
            return match (unknowns.choose(2), action) {
                (0, Action::Open { kind, due: Some(_), .. }) => self.set_due(actor_ix, *kind),
                (0, Action::Close { kind, key: None, .. }) => {
                    let kind = *kind;
                    self.cancel_timers(|t| matches!(&t.what, TimerKind::Due { kind: k, .. } if *k == kind));
                    Ok(())
                }
                (0, _) => Ok(()),
                _ => Err(Fault::execution("ledger")),
            };
        }
        let ctx = self.context(actor_ix, ev, locals);
        let machine = self.m;
        let about = |reason: &str, kind: u32, key: Option<&str>| {
            Fault::execution(reason).with("kind", machine.ledger_name(kind)).with("name", key.unwrap_or_default())
        };
        match action {
            Action::Grant { kind, key, uses, expires, data } => {
                let key = ctx.text(key)?;
                let uses = match uses.as_ref().map(|t| ctx.json(t)).transpose()? {
                    None | Some(Json::Null) => None,
                    Some(n) => Some(n.as_u64().filter(|n| *n > 0).ok_or_else(|| Fault::execution("uses"))?),
                };
                let expires = expires.as_ref().map(|t| ctx.timestamp(t)).transpose()?.flatten();
                let data = data.as_ref().map(|t| ctx.value(t)).transpose()?.unwrap_or_default();
                let status =
                    if expires.is_some_and(|t| t <= self.at) { EntryStatus::Expired } else { EntryStatus::Granted };
                let entry = Entry { status, uses, expires, due: None, data, how: None };
                let fault = about("already-granted", *kind, Some(&key));
                if self.ledger_mut().insert(*kind, key, entry) { Ok(()) } else { Err(fault) }
            }
            Action::Revoke { kind, key } => {
                let key = key.as_ref().map(|t| ctx.text(t)).transpose()?;
                let fault = about("no-permit", *kind, key.as_deref());
                if self.ledger_mut().revoke(*kind, key.as_deref()) { Ok(()) } else { Err(fault) }
            }
            Action::Open { kind, key, due, data } => {
                let key = ctx.text(key)?;
                let due = due.as_ref().map(|t| ctx.timestamp(t)).transpose()?.flatten();
                let data = data.as_ref().map(|t| ctx.value(t)).transpose()?.unwrap_or_default();
                let entry = Entry { status: EntryStatus::Open, uses: None, expires: None, due, data, how: None };
                let fault = about("already-opened", *kind, Some(&key));
                let timer = format!("due/{}/{key}", self.m.ledger_name(*kind)).into();
                if !self.ledger_mut().insert(*kind, key.clone(), entry) {
                    return Err(fault);
                }
                match due {
                    Some(due) => {
                        let actor = self.actor(actor_ix).identity().id.clone();
                        // While the run is paused, as much is left of it as from now on.
                        let due = Timestamp(due.0.saturating_sub(self.stood().0));
                        self.set_timer_at(timer, actor, due, TimerKind::Due { kind: *kind, key })
                    }
                    None => Ok(()),
                }
            }
            Action::Close { kind, key, how } => {
                let key = key.as_ref().map(|t| ctx.text(t)).transpose()?;
                let how = how.as_ref().map(|t| ctx.value(t)).transpose()?;
                let fault = about("not-open", *kind, key.as_deref());
                let closed = self.ledger_mut().close(*kind, key.as_deref(), how.as_ref());
                if closed.is_empty() && key.is_some() {
                    return Err(fault);
                }
                let kind = *kind;
                self.cancel_timers(
                    |t| matches!(&t.what, TimerKind::Due { kind: k, key } if *k == kind && closed.contains(key)),
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

//! The actions that write the ledger: permits are granted and revoked, obligations opened and closed.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::event::Ev;
use crate::ledger::{Entry, EntryStatus};
use crate::machine::Action;
use crate::snapshot::TimerKind;
use crate::transaction::{Fault, StepTransaction};

impl StepTransaction<'_> {
    pub(super) fn ledger_action(
        &mut self,
        actor_ix: usize,
        action: &Action,
        ev: Option<&Ev<'_>>,
        locals: &[Arc<Json>],
    ) -> Result<(), Fault> {
        let eyes = self.eyes(actor_ix, ev, locals);
        let name = |kind: u32| self.m.ledger.get(kind as usize).map_or("", AsRef::as_ref);
        match action {
            Action::Grant { kind, key, uses, expires, data } => {
                let key = eyes.text(key)?;
                let uses = match uses.as_ref().map(|t| eyes.json(t)).transpose()? {
                    None | Some(Json::Null) => None,
                    Some(n) => Some(
                        n.as_u64()
                            .filter(|n| *n > 0)
                            .ok_or_else(|| Fault::execution("`uses` is a whole number, at least 1"))?,
                    ),
                };
                let expires = expires.as_ref().map(|t| eyes.moment(t)).transpose()?.flatten();
                let data = data.as_ref().map(|t| eyes.value(t)).transpose()?.unwrap_or_default();
                let status =
                    if expires.is_some_and(|t| t <= self.at) { EntryStatus::Expired } else { EntryStatus::Granted };
                let entry = Entry { status, uses, expires, due: None, data, how: None };
                let fault = Fault::execution(format!(
                    "the permit `{}` `{key}` was granted before; a key is used once in a run",
                    name(*kind)
                ));
                if self.ledger_mut().insert(*kind, key, entry) { Ok(()) } else { Err(fault) }
            }
            Action::Revoke { kind, key } => {
                let key = key.as_ref().map(|t| eyes.text(t)).transpose()?;
                let fault = || {
                    Fault::execution(format!(
                        "there is no permit `{}` `{}` to revoke",
                        name(*kind),
                        key.as_deref().unwrap_or("")
                    ))
                };
                let fault = fault();
                if self.ledger_mut().revoke(*kind, key.as_deref()) { Ok(()) } else { Err(fault) }
            }
            Action::Open { kind, key, due, data } => {
                let key = eyes.text(key)?;
                let due = due.as_ref().map(|t| eyes.moment(t)).transpose()?.flatten();
                let data = data.as_ref().map(|t| eyes.value(t)).transpose()?.unwrap_or_default();
                let entry = Entry { status: EntryStatus::Open, uses: None, expires: None, due, data, how: None };
                let fault = Fault::execution(format!(
                    "the obligation `{}` `{key}` was opened before; a key is used once in a run",
                    name(*kind)
                ));
                let timer = format!("due/{}/{key}", name(*kind)).into();
                if !self.ledger_mut().insert(*kind, key.clone(), entry) {
                    return Err(fault);
                }
                match due {
                    Some(due) => {
                        let actor = self.actor(actor_ix).identity().id.clone();
                        self.set_timer_at(timer, actor, due, TimerKind::Due { kind: *kind, key })
                    }
                    None => Ok(()),
                }
            }
            Action::Close { kind, key, how } => {
                let key = key.as_ref().map(|t| eyes.text(t)).transpose()?;
                let how = how.as_ref().map(|t| eyes.value(t)).transpose()?;
                let fault = Fault::execution(format!(
                    "the obligation `{}` `{}` is not open",
                    name(*kind),
                    key.as_deref().unwrap_or("")
                ));
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

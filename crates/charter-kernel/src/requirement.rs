//! What a transition requires of the ledger.

use crate::machine::Require;
use crate::refusal::Code;
use crate::scope::EvalContext;

impl Require {
    /// Whether a requirement of the ledger holds.
    pub(crate) fn holds<'a>(&'a self, ctx: &EvalContext<'a>) -> Result<(), Code> {
        if let Some(unknowns) = ctx.budget.unknowns() {
            // The ledger of an analysis is empty: a requirement holds or does not.
            return if unknowns.choose(2) == 0 { Ok(()) } else { Err(Code::PermitMissing) };
        }
        let ledger = ctx.snapshot.ledger.as_deref();
        match self {
            Require::Use { kind, key, when, .. } => {
                let key = ctx.text(key).map_err(|_| Code::PermitMissing)?;
                let entry = ledger.ok_or(Code::PermitMissing)?.usable(*kind, &key)?;
                match when {
                    Some(when) => match (EvalContext { entry: Some(entry), ..*ctx }).holds(when) {
                        Ok(true) => Ok(()),
                        Ok(false) | Err(_) => Err(Code::PermitScope),
                    },
                    None => Ok(()),
                }
            }
            Require::Open { kind, key, .. } => {
                let key = ctx.text(key).map_err(|_| Code::ObligationMissing)?;
                let open = ledger.and_then(|l| l.get(*kind, &key)).is_some_and(|e| e.is_open());
                if open { Ok(()) } else { Err(Code::ObligationMissing) }
            }
            Require::None { kind, .. } => {
                ctx.budget.scan(ledger.map_or(0, |l| l.len_of(*kind)));
                let open = ledger.is_some_and(|l| l.open_keys(*kind).next().is_some());
                if open { Err(Code::ObligationOpen) } else { Ok(()) }
            }
        }
    }

    /// Whether a requirement of the ledger can hold, whatever the event's data is: if the data
    /// decides about the key, whether there is an entry that any key might name.
    pub(crate) fn may_hold<'a>(&'a self, ctx: &EvalContext<'a>) -> Result<(), Code> {
        if !self.reads_event() {
            return self.holds(ctx);
        }
        let ledger = ctx.snapshot.ledger.as_deref();
        let count = |kind: u32| ctx.budget.scan(ledger.map_or(0, |l| l.len_of(kind)));
        match self {
            Require::Use { kind, key, .. } if key.reads_event() => {
                count(*kind);
                match ledger.is_some_and(|l| l.has_usable(*kind)) {
                    true => Ok(()),
                    false => Err(Code::PermitMissing),
                }
            }
            Require::Use { kind, key, .. } => {
                let key = ctx.text(key).map_err(|_| Code::PermitMissing)?;
                ledger.ok_or(Code::PermitMissing)?.usable(*kind, &key).map(|_| ())
            }
            Require::Open { kind, .. } | Require::None { kind, .. } => {
                count(*kind);
                match ledger.is_some_and(|l| l.open_keys(*kind).next().is_some()) {
                    true => Ok(()),
                    false => Err(Code::ObligationMissing),
                }
            }
        }
    }
}

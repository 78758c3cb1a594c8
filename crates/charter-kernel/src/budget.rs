//! The budget of one event: fuel and bytes for the event with everything that it sets off. Work is
//! charged before it is done, memory before it is allocated.
//!
//! A budget that is exceeded stays exceeded, and the event is refused, whatever the step does with
//! the failure of the part that exceeded it.

use std::cell::Cell;
use std::rc::Rc;

use charter_expr::{EvalDetail, EvalError, Fuel, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::definition::{Limits, MAX_LIMIT_BYTES};
use crate::explain::{Taken, TakenLog};
use crate::refusal::{Cause, Code, Refusal};
use crate::schema::{MisfitDetails, Schema, TooCostly};
use crate::unknown::Unknowns;

/// The bytes that cost one unit of fuel when they are built, copied or hashed.
const BYTES_PER_UNIT: u64 = 64;

/// What exceeded the budget of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Work {
    /// Reading the data of the event.
    Data,
    /// Comparing data with its schema.
    Schema,
    /// Evaluating expressions.
    Expressions,
    /// Examining transitions, and exiting and entering states.
    Transitions,
    /// Running actions, and the events that they raise and send.
    Actions,
    /// Building values: assigned variables, data of events, inputs and outputs.
    Values,
    /// Effects.
    Effects,
    /// Finding and changing actors, timers, permits and obligations.
    Run,
    /// The record of the event.
    Record,
    /// The snapshot after the event.
    Snapshot,
}

impl Work {
    /// What a message calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Data => "its data",
            Work::Schema => "the schema of its data",
            Work::Expressions => "expressions",
            Work::Transitions => "the transitions and states of the step",
            Work::Actions => "its actions",
            Work::Values => "the values that it builds",
            Work::Effects => "its effects",
            Work::Run => "the actors, timers and ledger entries of the run",
            Work::Record => "its record",
            Work::Snapshot => "the snapshot of the run",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Resource {
    Fuel,
    Bytes,
}

/// The budget of an event, with what is left of it.
pub(crate) struct Budget {
    fuel: Cell<u64>,
    bytes: Cell<u64>,
    limits: (u64, u64),
    over: Cell<Option<(Resource, Work)>>,
    /// Decides what is not known, in an analysis.
    unknowns: Option<Rc<dyn Unknowns>>,
    /// Whether an interlock may refuse the event.
    interlocks: bool,
    /// Keeps why transitions were taken, in an explanation.
    taken: Option<Box<TakenLog>>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Budget {
        Budget::with(limits.fuel, limits.bytes.min(MAX_LIMIT_BYTES))
    }

    /// Half of the budget of an event.
    pub(crate) fn half(limits: &Limits) -> Budget {
        Budget::new(&Limits { fuel: limits.fuel / 2, bytes: limits.bytes / 2, ..*limits })
    }

    /// The budget of a step whose values are not all known. What the real event costs is not known
    /// either, so that the limits of the charter do not matter; the analysis has its own.
    pub(crate) fn of_analysis(unknowns: &Rc<dyn Unknowns>, fuel: u64, limits: &Limits) -> Budget {
        let bytes = limits.bytes.min(MAX_LIMIT_BYTES).saturating_mul(4);
        Budget { unknowns: Some(unknowns.clone()), ..Budget::with(fuel, bytes) }
    }

    /// The budget of an event that no interlock refuses.
    pub(crate) fn without_interlocks(limits: &Limits) -> Budget {
        Budget { interlocks: false, ..Budget::new(limits) }
    }

    /// The budget of a step that is repeated to explain it.
    pub(crate) fn explaining(limits: &Limits) -> Budget {
        Budget { taken: Some(Box::default()), ..Budget::new(limits) }
    }

    /// Where to note why transitions are taken; `None` in a run.
    #[inline]
    pub(crate) fn taken_log(&self) -> Option<&TakenLog> {
        self.taken.as_deref()
    }

    /// Returns what was noted there.
    pub(crate) fn into_taken_log(self) -> Option<Vec<Taken>> {
        self.taken.map(|log| log.into_inner())
    }

    pub(crate) fn checks_interlocks(&self) -> bool {
        self.interlocks && self.unknowns().is_none_or(Unknowns::checks_interlocks)
    }

    fn with(fuel: u64, bytes: u64) -> Budget {
        let (fuel_left, bytes_left) = (Cell::new(fuel), Cell::new(bytes));
        Budget {
            fuel: fuel_left,
            bytes: bytes_left,
            limits: (fuel, bytes),
            over: Cell::new(None),
            unknowns: None,
            interlocks: true,
            taken: None,
        }
    }

    /// What decides the values that are not known; `None` in a run.
    #[inline]
    pub(crate) fn unknowns(&self) -> Option<&dyn Unknowns> {
        self.unknowns.as_deref()
    }

    /// The `error` of an event, of which an analysis knows only parts.
    pub(crate) fn error(&self, error: Json) -> Json {
        self.unknowns().map(|unknowns| unknowns.error(&error)).unwrap_or(error)
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// Returns the refusal of the event if the budget is exceeded.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self.over.get() {
            None => Ok(()),
            Some((Resource::Fuel, work)) => {
                Err(Refusal::because(Code::TooCostly, Cause::Fuel { limit: self.limits.0, work }))
            }
            Some((Resource::Bytes, work)) => {
                Err(Refusal::because(Code::TooLarge, Cause::Bytes { limit: self.limits.1, work }))
            }
        }
    }

    /// Returns what is left, for [`Budget::restore`].
    #[inline]
    pub(crate) fn mark(&self) -> (u64, u64) {
        (self.fuel.get(), self.bytes.get())
    }

    /// Takes back what was spent since a mark, for work that is done again.
    pub(crate) fn restore(&self, mark: (u64, u64)) {
        self.fuel.set(mark.0);
        self.bytes.set(mark.1);
        self.over.set(None);
    }

    /// Returns the refusal of a snapshot that is too large.
    pub(crate) fn check_snapshot(&self, length: u64) -> Result<(), Refusal> {
        let limit = self.snapshot_limit();
        if length <= limit {
            return Ok(());
        }
        Err(Refusal::because(Code::TooLarge, Cause::Bytes { limit, work: Work::Snapshot }))
    }

    /// The largest snapshot: half of the bytes of an event, because it is written and hashed with
    /// every record.
    pub(crate) fn snapshot_limit(&self) -> u64 {
        self.limits.1 / 2
    }

    /// The fuel that was used so far.
    pub(crate) fn fuel_used(&self) -> u64 {
        self.limits.0.saturating_sub(self.fuel.get())
    }

    /// The bytes that were built so far.
    pub(crate) fn bytes_used(&self) -> u64 {
        self.limits.1.saturating_sub(self.bytes.get())
    }

    #[cold]
    fn exceed(&self, resource: Resource, work: Work) {
        if self.over.get().is_none() {
            self.over.set(Some((resource, work)));
        }
        self.fuel.set(0);
        self.bytes.set(0);
    }

    /// Spends fuel.
    #[inline]
    pub(crate) fn spend(&self, units: u64, work: Work) {
        match self.fuel.get().checked_sub(units) {
            Some(left) => self.fuel.set(left),
            None => self.exceed(Resource::Fuel, work),
        }
    }

    /// Spends fuel for a number of things.
    #[inline]
    pub(crate) fn spend_count(&self, count: usize, work: Work) {
        self.spend(u64::try_from(count).unwrap_or(u64::MAX), work);
    }

    /// Spends the fuel for looking through a list of actors, timers or entries.
    #[inline]
    pub(crate) fn scan(&self, count: usize) {
        self.spend(u64::try_from(count).unwrap_or(u64::MAX) / 8, Work::Run);
    }

    /// Spends the fuel for looking through as many things as make a unit; returns the rest.
    #[inline]
    pub(crate) fn scan_some(&self, count: usize) -> usize {
        self.scan(count);
        count % 8
    }

    /// Spends the fuel for reading or hashing bytes.
    #[inline]
    pub(crate) fn read(&self, bytes: u64, work: Work) {
        self.spend(bytes / BYTES_PER_UNIT, work);
    }

    /// Spends fuel and bytes for memory that is about to be allocated. Returns whether there is
    /// enough of both.
    #[inline]
    pub(crate) fn build(&self, bytes: u64, work: Work) -> bool {
        match self.bytes.get().checked_sub(bytes) {
            Some(left) => {
                self.bytes.set(left);
                self.read(bytes, work);
            }
            None => self.exceed(Resource::Bytes, work),
        }
        !self.is_over()
    }

    /// Spends the bytes for a copy of a value. Returns whether there is enough.
    pub(crate) fn copy(&self, value: &Json, work: Work) -> bool {
        self.build(charter_expr::json::memory(value), work)
    }

    /// Returns fuel for an evaluation, which may use `limit` units at most; pass what is left of it
    /// to [`Budget::settle`].
    #[inline]
    pub(crate) fn lend(&self, limit: u64) -> Fuel {
        Fuel::new(limit.min(self.fuel.get()))
    }

    /// Spends what an evaluation has used of the fuel that was lent to it.
    #[inline]
    pub(crate) fn settle(&self, limit: u64, left: &Fuel, failed: bool) {
        let fuel = self.fuel.get();
        let lent = limit.min(fuel);
        if failed && left.left() == 0 && lent < limit {
            self.exceed(Resource::Fuel, Work::Expressions);
            return;
        }
        self.fuel.set(fuel.saturating_sub(lent.saturating_sub(left.left())));
        if let Some(unknowns) = self.unknowns() {
            self.spend(unknowns.cost(), Work::Expressions);
        }
    }

    /// Whether data matches its schema.
    pub(crate) fn fits(&self, schema: &Schema, data: &Json) -> Result<bool, TooCostly> {
        if let Some(unknowns) = self.unknowns()
            && unknowns.is_unknown(data)
        {
            return Ok(unknowns.choose(2) == 0);
        }
        let mut fuel = Fuel::new(self.fuel.get());
        let fits = schema.fits(data, &mut fuel);
        match fits {
            Ok(_) => self.fuel.set(fuel.left()),
            Err(TooCostly) => self.exceed(Resource::Fuel, Work::Schema),
        }
        fits
    }

    /// Where data does not match its schema, as far as the fuel suffices.
    pub(crate) fn misfits(&self, schema: &Schema, data: &Json) -> Vec<MisfitDetails> {
        let mut fuel = Fuel::new(self.fuel.get());
        let misfits = schema.misfit_details(data, &mut fuel);
        self.fuel.set(fuel.left());
        misfits
    }

    /// Spends the fuel for writing a value as canonical JSON and hashing it, and the bytes for the
    /// text. Returns whether there is enough.
    pub(crate) fn hash(&self, value: &Json) -> bool {
        self.build(crate::canonical::length(value), Work::Values)
    }

    /// Converts a value to JSON.
    pub(crate) fn json(&self, value: &Value<'_>) -> Result<Json, EvalError> {
        let before = self.bytes.get().min(self.fuel.get().saturating_mul(BYTES_PER_UNIT));
        let mut left = before;
        let result = value.to_json_within(&mut left);
        self.build(before.saturating_sub(left), Work::Values);
        if let Err(e) = &result
            && matches!(e.detail(), Some(EvalDetail::LargeJson { .. }))
            && before < charter_expr::MAX_JSON_SIZE as u64
        {
            let fuel = self.bytes.get() > self.fuel.get().saturating_mul(BYTES_PER_UNIT);
            self.exceed(if fuel { Resource::Fuel } else { Resource::Bytes }, Work::Values);
        }
        result
    }
}

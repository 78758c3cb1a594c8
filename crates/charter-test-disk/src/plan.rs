//! Which call of SQLite fails, and how.

use rusqlite::ffi;

use crate::random::Random;

/// What SQLite calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Opens or creates a file.
    Open,
    /// Deletes a file.
    Delete,
    /// Asks whether a file exists.
    Access,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Shortens a file.
    Truncate,
    /// Makes what was written durable.
    Sync,
    /// Asks for the size of a file.
    Size,
    /// Locks a file.
    Lock,
    /// Maps shared memory.
    Map,
    /// Locks a part of the shared memory.
    MapLock,
}

/// A call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// Its number, from 0.
    pub n: u64,
    /// What is called.
    pub op: Op,
    /// The name of the file, without the folder.
    pub file: &'c str,
    /// Number of bytes to read or write.
    pub len: usize,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done; the error is reported.
    Fails(i32),
    /// A write or read is done up to this byte; the error is reported.
    Torn(usize, i32),
    /// A sync reports an error, and what it should have made durable is not written by a later
    /// sync either, as on Linux.
    SyncFails,
    /// Nothing is done, and no error is reported. A sync that lies this way makes nothing durable;
    /// a file that is there is said to be absent.
    Lost,
    /// This bit is wrong in what is read or written.
    Flipped(usize),
    /// The bytes are written to, or read from, a place that is this many pages further on.
    Misplaced(i64),
    /// The process dies before the call. What it has written is there.
    Killed,
    /// The power fails before the call, or in the middle of it. What was not synced may be lost.
    PowerCut,
}

/// What kinds of faults there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Calls that fail say so.
    Honest,
    /// Syncs do nothing, but say that they did.
    Syncs,
    /// Any call can lie.
    Liar,
}

/// Decides about each call, from a seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) random: Random,
    kind: Kind,
    /// A fault at this call.
    at: Option<u64>,
    /// Faults at one call in this many; 0: at none.
    every: usize,
    /// Faults in this operation only.
    only: Option<Op>,
    /// How many faults there can be still.
    left: usize,
    /// The process dies, or the power fails, at this call.
    end: Option<(u64, Fault)>,
    /// A fault after this many calls of an operation.
    nth: Option<(Op, u64, Fault)>,
}

impl Plan {
    /// No faults. The seed decides what survives a power cut.
    #[must_use]
    pub fn faultless(seed: u64) -> Plan {
        Plan {
            random: Random::new(seed),
            kind: Kind::Honest,
            at: None,
            every: 0,
            only: None,
            left: 0,
            end: None,
            nth: None,
        }
    }

    /// Faults in a session of about this many calls.
    #[must_use]
    pub fn random(seed: u64, kind: Kind, calls: usize) -> Plan {
        let mut plan = Plan::faultless(seed);
        let random = &mut plan.random;
        let ops = [Op::Open, Op::Delete, Op::Access, Op::Read, Op::Write, Op::Truncate, Op::Sync, Op::Size];
        let ops = ops.into_iter().chain([Op::Lock, Op::Map, Op::MapLock, Op::Write, Op::Sync]).collect::<Vec<_>>();
        plan.kind = kind;
        match random.below(4) {
            // A single fault at any call.
            0 => {
                plan.at = Some(random.below(calls) as u64);
                plan.left = 1;
            }
            // A few of any kind.
            1 => {
                plan.every = random.pick(&[20, 100, 400]);
                plan.left = 1 + random.below(6);
            }
            // Some in one operation, up to every one.
            2 => {
                plan.only = Some(random.pick(&ops));
                plan.every = random.pick(&[1, 2, 7, 30]);
                plan.left = random.pick(&[1, 2, 5, usize::MAX]);
            }
            _ => {}
        }
        if kind == Kind::Syncs {
            plan.only = Some(Op::Sync);
            plan.at = None;
            plan.every = random.pick(&[1, 1, 2, 5]);
            plan.left = usize::MAX;
        }
        if !random.one_in(3) {
            let fault = if random.one_in(3) { Fault::Killed } else { Fault::PowerCut };
            plan.end = Some((random.below(calls) as u64, fault));
        }
        plan
    }

    /// This fault at this call.
    #[must_use]
    pub fn at(seed: u64, n: u64, fault: Fault) -> Plan {
        Plan { end: Some((n, fault)), ..Plan::faultless(seed) }
    }

    /// This fault at the n-th call of an operation, from 0.
    #[must_use]
    pub fn nth(seed: u64, op: Op, n: u64, fault: Fault) -> Plan {
        Plan { nth: Some((op, n, fault)), ..Plan::faultless(seed) }
    }

    /// Syncs that lie, always.
    #[must_use]
    pub fn lying_syncs(seed: u64) -> Plan {
        Plan { kind: Kind::Syncs, only: Some(Op::Sync), every: 1, left: usize::MAX, ..Plan::faultless(seed) }
    }

    pub(crate) fn decide(&mut self, call: &Call<'_>) -> Option<Fault> {
        if let Some((n, fault)) = self.end
            && call.n == n
        {
            return Some(fault);
        }
        match &mut self.nth {
            Some((op, 0, fault)) if *op == call.op => {
                let fault = *fault;
                self.nth = None;
                return Some(fault);
            }
            Some((op, n, _)) if *op == call.op => *n -= 1,
            _ => {}
        }
        let due = self.at == Some(call.n) || self.every > 0 && self.random.one_in(self.every);
        if !due || self.left == 0 || self.only.is_some_and(|op| op != call.op) {
            return None;
        }
        self.left -= 1;
        Some(self.fault(call))
    }

    fn fault(&mut self, call: &Call<'_>) -> Fault {
        let random = &mut self.random;
        let lies = match self.kind {
            Kind::Honest => false,
            Kind::Syncs => true,
            Kind::Liar => !random.one_in(3),
        };
        let bits = call.len * 8;
        match call.op {
            Op::Read if lies && random.one_in(3) => Fault::Misplaced(random.pick(&[-1, 1, 2])),
            Op::Write if lies && random.one_in(3) => Fault::Misplaced(random.pick(&[-1, 1, 2])),
            Op::Read | Op::Write if lies && random.one_in(2) => Fault::Flipped(random.below(bits)),
            Op::Write | Op::Truncate | Op::Sync | Op::Delete | Op::Access if lies => Fault::Lost,
            Op::Read if lies => Fault::Torn(random.below(call.len), ffi::SQLITE_OK),
            Op::Open => Fault::Fails(random.pick(&[ffi::SQLITE_CANTOPEN, ffi::SQLITE_IOERR, ffi::SQLITE_FULL])),
            Op::Delete => Fault::Fails(ffi::SQLITE_IOERR_DELETE),
            Op::Access => Fault::Fails(ffi::SQLITE_IOERR_ACCESS),
            Op::Read if random.one_in(3) => Fault::Torn(random.below(call.len), ffi::SQLITE_IOERR_READ),
            Op::Read => Fault::Fails(random.pick(&[ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_NOMEM])),
            Op::Write => {
                let code = random.pick(&[ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_FULL]);
                if random.one_in(3) { Fault::Fails(code) } else { Fault::Torn(random.below(call.len), code) }
            }
            Op::Truncate => Fault::Fails(ffi::SQLITE_IOERR_TRUNCATE),
            Op::Sync => Fault::SyncFails,
            Op::Size => Fault::Fails(ffi::SQLITE_IOERR_FSTAT),
            Op::Lock => Fault::Fails(random.pick(&[ffi::SQLITE_BUSY, ffi::SQLITE_IOERR_LOCK])),
            Op::Map => Fault::Fails(random.pick(&[
                ffi::SQLITE_IOERR_SHMMAP,
                ffi::SQLITE_IOERR_SHMOPEN,
                ffi::SQLITE_IOERR_NOMEM,
                ffi::SQLITE_IOERR_SHMSIZE,
            ])),
            Op::MapLock => Fault::Fails(random.pick(&[ffi::SQLITE_BUSY, ffi::SQLITE_IOERR_SHMLOCK])),
        }
    }
}

//! The measure of work: what the kernel charges for an event (examined transitions, actions,
//! evaluated expressions, built values), and in the same unit what the analyses do besides. It
//! depends on the charter only, so that the same limit gives the same results on every machine.

use std::cell::Cell;

/// The fuel of the kernel that counts as a step of the effort.
pub(crate) const FUEL_PER_STEP: u64 = 2_500;

/// The fuel that is a number of steps.
pub(crate) fn fuel(steps: usize) -> u64 {
    units(steps).saturating_mul(FUEL_PER_STEP)
}

/// A number of things, of which each costs a unit.
pub(crate) fn units(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// What is left of the work that may be done.
#[derive(Debug)]
pub(crate) struct Effort {
    left: Cell<u64>,
}

impl Effort {
    pub(crate) fn new(fuel: u64) -> Effort {
        Effort { left: Cell::new(fuel) }
    }

    pub(crate) fn spend(&self, fuel: u64) {
        self.left.set(self.left.get().saturating_sub(fuel));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left.get() == 0
    }
}

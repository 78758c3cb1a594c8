//! The budget of one evaluation: it bounds time and memory on hostile input.

use crate::EvalError;

/// The number of steps an evaluation may still take. Each evaluated node and each iteration of a
/// macro costs one, and so do every 16 bytes and every element that are copied, produced or
/// compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuel {
    left: u64,
}

impl Fuel {
    /// The default budget, if a charter does not set `limits.expression`.
    pub const DEFAULT: u64 = 10_000;

    /// A budget of `steps`.
    pub const fn new(steps: u64) -> Fuel {
        Fuel { left: steps }
    }

    /// Spends `n` steps; if fewer are left, none remain and the error is `OutOfFuel`.
    #[inline]
    pub fn spend(&mut self, n: u64) -> Result<(), EvalError> {
        match self.left.checked_sub(n) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvalError::out_of_fuel())
            }
        }
    }

    /// Spends the cost of copying or reading `n` bytes: one step for every 16.
    #[inline]
    pub fn spend_bytes(&mut self, n: usize) -> Result<(), EvalError> {
        self.spend((n as u64) / 16)
    }

    /// Spends the cost of `n` elements: one step each.
    #[inline]
    pub fn spend_elements(&mut self, n: usize) -> Result<(), EvalError> {
        self.spend(n as u64)
    }

    /// Steps left.
    pub const fn left(&self) -> u64 {
        self.left
    }
}

impl Default for Fuel {
    fn default() -> Fuel {
        Fuel::new(Fuel::DEFAULT)
    }
}

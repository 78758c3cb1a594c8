//! The budget of an evaluation, which limits time and memory for hostile input.

use crate::EvalError;

/// The number of steps that an evaluation may still take. Each evaluated node and each iteration of
/// a macro costs one step, as do every element and every 16 bytes that are copied, produced or
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

    /// Spends `n` steps. If fewer are left, spends all of them and returns the error `OutOfFuel`.
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

    /// The number of steps left.
    pub const fn left(&self) -> u64 {
        self.left
    }
}

impl Default for Fuel {
    fn default() -> Fuel {
        Fuel::new(Fuel::DEFAULT)
    }
}

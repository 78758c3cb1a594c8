//! The budget of one evaluation: what bounds time and memory on hostile input.

use crate::EvalError;

/// Steps an evaluation may still take. One is spent for each node evaluated and each iteration of a macro,
/// and one for every 16 bytes, or every element, that is copied, produced or compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuel {
    left: u64,
}

impl Fuel {
    /// The budget where a charter sets none (`limits.expression`).
    pub const DEFAULT: u64 = 10_000;

    /// A budget of `steps`.
    pub const fn new(steps: u64) -> Fuel {
        Fuel { left: steps }
    }

    /// Takes `n` steps away; when there are fewer, none are left and the error is `OutOfFuel`.
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

    /// Spends what copying or reading `n` bytes costs: one step for every 16.
    #[inline]
    pub fn spend_bytes(&mut self, n: usize) -> Result<(), EvalError> {
        self.spend((n as u64) / 16)
    }

    /// Spends what `n` elements cost: one step each.
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

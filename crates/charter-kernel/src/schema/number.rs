//! Numbers as the validator compares them: exactly, whatever their type.

use std::cmp::Ordering;

/// A number of data or of a schema, without rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExactNumber {
    /// A number without fraction and exponent that fits 64 bits.
    Int(i128),
    /// Any other number; finite.
    Double(f64),
}

/// Doubles from this on do not represent every integer.
const UNSAFE: f64 = 9_007_199_254_740_992.0;

impl From<&serde_json::Number> for ExactNumber {
    fn from(n: &serde_json::Number) -> ExactNumber {
        match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => ExactNumber::Int(i.into()),
            (None, Some(u)) => ExactNumber::Int(u.into()),
            (None, None) => ExactNumber::Double(n.as_f64().unwrap_or_default()),
        }
    }
}

impl ExactNumber {
    /// Whether the number is an integer: also `2.0`, but no double of 2^53 or more, which may stand
    /// for several integers.
    pub(super) fn is_integer(self) -> bool {
        match self {
            ExactNumber::Int(_) => true,
            ExactNumber::Double(d) => d.fract() == 0.0 && d.abs() < UNSAFE,
        }
    }

    /// Compares two numbers by their exact values.
    pub(super) fn order(self, other: ExactNumber) -> Ordering {
        match (self, other) {
            (ExactNumber::Int(a), ExactNumber::Int(b)) => a.cmp(&b),
            (ExactNumber::Double(a), ExactNumber::Double(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (ExactNumber::Int(a), ExactNumber::Double(b)) => order(a, b),
            (ExactNumber::Double(a), ExactNumber::Int(b)) => order(b, a).reverse(),
        }
    }

    /// The integer with the same value, if there is one that fits.
    pub(super) fn whole(self) -> Option<i128> {
        match self {
            ExactNumber::Int(i) => Some(i),
            // 2^120 is far from the bounds of the type.
            ExactNumber::Double(d) if d.fract() == 0.0 && d.abs() < 1.329e36 => Some(d as i128),
            ExactNumber::Double(_) => None,
        }
    }
}

/// Compares an integer of at most 65 bits with a double.
fn order(int: i128, double: f64) -> Ordering {
    if double.abs() > 1e30 {
        return if double > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let whole = double.trunc() as i128;
    int.cmp(&whole).then_with(|| 0.0.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal))
}

/// A positive decimal number: `digits` times ten to the power of `exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// The absolute value of a number as it is written: `0.1` is one tenth, not the double next to
    /// it.
    pub(super) fn of(number: ExactNumber) -> Decimal {
        let double = match number {
            ExactNumber::Int(i) => return Decimal { digits: i.unsigned_abs(), exponent: 0 },
            ExactNumber::Double(d) => d,
        };
        let mut buffer = ryu_js::Buffer::new();
        let (mut digits, mut exponent, mut fraction) = (0u128, 0i32, false);
        let mut rest = buffer.format_finite(double.abs()).bytes();
        for byte in rest.by_ref() {
            match byte {
                b'0'..=b'9' => {
                    digits = digits.saturating_mul(10).saturating_add(byte.wrapping_sub(b'0').into());
                    exponent = exponent.saturating_sub(fraction.into());
                }
                b'.' => fraction = true,
                _ => break,
            }
        }
        let (mut power, mut negative) = (0i32, false);
        for byte in rest {
            match byte {
                b'-' => negative = true,
                b'0'..=b'9' => power = power.saturating_mul(10).saturating_add(byte.wrapping_sub(b'0').into()),
                _ => {}
            }
        }
        let power = if negative { power.saturating_neg() } else { power };
        Decimal { digits, exponent: exponent.saturating_add(power) }.reduced()
    }

    /// Without zeros at the end of its digits, so that they have at most 67 bits.
    fn reduced(mut self) -> Decimal {
        while self.digits != 0 && self.digits.is_multiple_of(10) {
            self.digits = self.digits.wrapping_div(10);
            self.exponent = self.exponent.saturating_add(1);
        }
        self
    }

    /// Whether `self` is a whole multiple of `of`, computed in decimal and exactly.
    pub(super) fn is_multiple_of(self, of: Decimal) -> bool {
        let (value, of) = (self.reduced(), of.reduced());
        if value.digits == 0 {
            return true;
        }
        let power = value.exponent.saturating_sub(of.exponent);
        match u32::try_from(power) {
            // `value * 10^power` modulo `of`: all factors are smaller than 2^64.
            Ok(power) if of.digits != 0 => {
                let mut rest = value.digits.checked_rem(of.digits).unwrap_or(0);
                let mut base = 10u128.checked_rem(of.digits).unwrap_or(0);
                let mut left = power;
                while left > 0 {
                    if left & 1 == 1 {
                        rest = rest.saturating_mul(base).checked_rem(of.digits).unwrap_or(0);
                    }
                    base = base.saturating_mul(base).checked_rem(of.digits).unwrap_or(0);
                    left >>= 1;
                }
                rest == 0
            }
            Ok(_) => false,
            // The digits of the value do not end with zero, so it has more decimals than `of`; only
            // factors of two and five in `of` can make up for them.
            Err(_) => 10u128
                .checked_pow(power.unsigned_abs())
                .and_then(|factor| of.digits.checked_mul(factor))
                .and_then(|of| value.digits.checked_rem(of))
                .is_some_and(|rest| rest == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{Decimal, ExactNumber};

    #[test]
    fn comparisons_are_exact() {
        let big = ExactNumber::Int((1 << 53) + 1);
        let double = ExactNumber::Double(9_007_199_254_740_992.0);
        assert_eq!(big.order(double), Ordering::Greater);
        assert_eq!(double.order(big), Ordering::Less);
        assert_eq!(ExactNumber::Int(-1).order(ExactNumber::Double(-1.5)), Ordering::Greater);
        assert_eq!(ExactNumber::Int(-2).order(ExactNumber::Double(-1.5)), Ordering::Less);
        assert_eq!(ExactNumber::Int(2).order(ExactNumber::Double(2.0)), Ordering::Equal);
        assert_eq!(ExactNumber::Int(i64::MAX.into()).order(ExactNumber::Double(1e300)), Ordering::Less);
        assert_eq!(ExactNumber::Int(0).order(ExactNumber::Double(-1e300)), Ordering::Greater);
    }

    #[test]
    fn multiples_are_decimal() {
        let multiple =
            |a: f64, b: f64| Decimal::of(ExactNumber::Double(a)).is_multiple_of(Decimal::of(ExactNumber::Double(b)));
        assert!(multiple(0.3, 0.1) && multiple(1.1, 0.1) && multiple(19.99, 0.01) && multiple(4.5, 1.5));
        assert!(multiple(1e300, 0.1) && multiple(1e300, 3e-5 * 0.0 + 2e-300) && multiple(0.0, 7.0));
        assert!(!multiple(0.35, 0.1) && !multiple(1e300, 3.0) && !multiple(1e-300, 1.0) && !multiple(0.5, 5.0));
        assert!(multiple(5e-324, 5e-324) && !multiple(f64::MAX, 7.0));
        let int = |i: i128| Decimal::of(ExactNumber::Int(i));
        assert!(int(u64::MAX.into()).is_multiple_of(int(5)) && !int(u64::MAX.into()).is_multiple_of(int(2)));
        assert!(int(-6).is_multiple_of(int(3)) && int(10).is_multiple_of(int(10)) && !int(10).is_multiple_of(int(100)));
    }
}

//! Prices of models, and amounts of money.

use charter_actors::PICODOLLARS;

use crate::exchange::Usage;

/// Number of tokens to which a price refers.
const MILLION: u64 = 1_000_000;

/// What a model costs, in picodollars per token (10^-12 US dollars): the price in dollars per
/// million tokens, times a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// A token that the model reads.
    pub input: u64,
    /// A token that it writes, its thoughts included.
    pub output: u64,
    /// A token that it reads from its provider's cache.
    pub cached: u64,
    /// A token that it reads, and that is written to the cache.
    pub cache_write: u64,
}

impl Price {
    /// What a number of tokens costs, in picodollars.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input.saturating_sub(cached));
        let parts = [
            usage.input.saturating_sub(cached).saturating_sub(written).saturating_mul(self.input),
            written.saturating_mul(self.cache_write),
            cached.saturating_mul(self.cached),
            usage.output.saturating_mul(self.output),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Parses a price in dollars per million tokens, with up to six decimal places (`1.25`), to
/// picodollars per token.
#[must_use]
pub fn per_million(text: &str) -> Option<u64> {
    decimal(text, 6).filter(|price| *price <= MILLION.saturating_mul(MILLION))
}

/// Parses an amount in dollars with up to six decimal places (`0.50`), to picodollars.
#[must_use]
pub fn dollars(text: &str) -> Option<u64> {
    decimal(text, 6)?.checked_mul(PICODOLLARS.checked_div(MILLION)?)
}

/// Renders an amount in picodollars: `$1.25`, rounded to a cent; below a dollar with up to four
/// decimal places, and below a cent with up to six. What cost something is never shown as nothing.
#[must_use]
pub fn show(cost: u64) -> String {
    let places = match cost {
        0 | PICODOLLARS.. => 2,
        10_000_000_000.. => 4,
        _ => 6,
    };
    let per_dollar = 10u64.saturating_pow(places);
    let unit = PICODOLLARS.checked_div(per_dollar).unwrap_or(1).max(1);
    let nearest = cost.saturating_add(unit / 2).checked_div(unit).unwrap_or(0);
    let count = if cost > 0 { nearest.max(1) } else { nearest };
    let (whole, part) = (count.checked_div(per_dollar).unwrap_or(0), count.checked_rem(per_dollar).unwrap_or(0));
    let mut text = format!("${whole}.{part:0width$}", width = places as usize);
    for _ in 2..places {
        if text.ends_with('0') {
            text.pop();
        }
    }
    text
}

/// Parses a decimal number without sign and exponent to a multiple of `10^-places`.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > places {
        return None;
    }
    format!("{whole}{part:0<places$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Price, Usage, dollars, per_million, show};

    #[test]
    fn amounts() {
        for (text, price) in [("0.25", 250_000), ("15", 15_000_000), ("0.000001", 1), ("0", 0)] {
            assert_eq!(per_million(text), Some(price), "{text}");
        }
        for wrong in ["", ".5", "5.", "-1", "1e3", "1,5", "0.0000001", "1000001", "99999999999999999999"] {
            assert_eq!(per_million(wrong), None, "{wrong}");
        }
        assert_eq!(dollars("2.50"), Some(2_500_000_000_000));
        assert_eq!(dollars("99999999"), None);
        for (cost, text) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (999_999_999, "$0.001"),
            (1_010_000_000, "$0.00101"),
            (1_230_000_000, "$0.00123"),
            (20_402_501_000, "$0.0204"),
            (100_001_000_000, "$0.10"),
            (123_400_000_000, "$0.1234"),
            (999_999_000_000, "$1.00"),
            (2_500_000_000_000, "$2.50"),
            (2_504_000_000_000, "$2.50"),
            (u64::MAX, "$18446744.07"),
        ] {
            assert_eq!(show(cost), text);
        }
    }

    #[test]
    fn a_cost_counts_cached_tokens_once() {
        let price = Price { input: 250_000, output: 2_000_000, cached: 25_000, cache_write: 312_500 };
        let usage = Usage { input: 1_000, output: 100, cached: 400, ..Usage::default() };
        assert_eq!(price.cost(usage), 600 * 250_000 + 400 * 25_000 + 100 * 2_000_000);
        let writes = Usage { cache_written: 50, ..usage };
        assert_eq!(price.cost(writes), 550 * 250_000 + 50 * 312_500 + 400 * 25_000 + 100 * 2_000_000);
        assert_eq!(price.cost(Usage { cached: 5_000, ..usage }), 1_000 * 25_000 + 100 * 2_000_000);
        let most = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        assert_eq!(price.cost(most), u64::MAX);
    }
}

//! Limits how often a principal may send events, with one token bucket per principal.

use charter_kernel::Timestamp;
use rustc_hash::FxHashMap;

use crate::error::RuntimeError;

/// Above this number of principals, full buckets are removed.
const MAX_PRINCIPALS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// For each principal: the tokens left, in thousandths of an event, and when they were
    /// computed.
    buckets: FxHashMap<String, (i64, Timestamp)>,
}

impl Rates {
    /// Takes the token for one event.
    pub(crate) fn take(&mut self, by: &str, now: Timestamp, per_second: u32) -> Result<(), RuntimeError> {
        if per_second == 0 {
            return Ok(());
        }
        let rate = i64::from(per_second);
        let full = rate.saturating_mul(2_000);
        if self.buckets.len() >= MAX_PRINCIPALS && !self.buckets.contains_key(by) {
            self.buckets.retain(|_, (left, at)| left.saturating_add(now.since(*at).0.saturating_mul(rate)) < full);
        }
        let (left, at) = self.buckets.entry(by.to_owned()).or_insert((full, now));
        // `rate` events per second are `rate` thousandths per millisecond.
        *left = left.saturating_add(now.since(*at).0.max(0).saturating_mul(rate)).min(full);
        *at = now;
        if *left < 1_000 {
            return Err(RuntimeError::Limit {
                limit: "events_per_second",
                value: per_second.into(),
                what: format!(
                    "`{by}` sends too many events; the next one is accepted in {} ms",
                    1_000i64.saturating_sub(*left).checked_div(rate).unwrap_or(0).saturating_add(1)
                ),
            });
        }
        *left = left.saturating_sub(1_000);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let mut rates = Rates::default();
        let mut took = 0;
        while rates.take("ana", Timestamp(0), 10).is_ok() {
            took += 1;
        }
        assert_eq!(took, 20, "twice the rate at once");
        assert!(rates.take("bob", Timestamp(0), 10).is_ok(), "each principal has its own bucket");
        assert!(rates.take("ana", Timestamp(99), 10).is_err());
        assert!(rates.take("ana", Timestamp(100), 10).is_ok());
        assert!(rates.take("ana", Timestamp(100), 10).is_err());
        assert!(rates.take("ana", Timestamp(100), 0).is_ok(), "0 is no limit");
    }
}

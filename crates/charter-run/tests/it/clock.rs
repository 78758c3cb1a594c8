//! The clock of a host beside the newest record of its journal.

use charter_kernel::Timestamp;
use charter_run::{WrongClock, check_clock};

const DAY: i64 = 86_400_000;

#[test]
fn a_clock_may_be_a_day_behind_and_two_years_ahead() {
    let newest = Timestamp(1_795_255_200_000);
    let at = |ms: i64| Timestamp(newest.0 + ms);
    for ok in [0, 1, -1, -DAY, 730 * DAY] {
        assert_eq!(check_clock(at(ok), newest), Ok(()));
    }
    let behind = check_clock(at(-DAY - 1), newest).unwrap_err();
    assert_eq!(
        behind.to_string(),
        "the clock says 2026-11-20T09:59:59.999Z, but the newest record of this journal is from 2026-11-21T10:00:00Z: at most 24 hours before it are accepted"
    );
    assert!(
        check_clock(at(730 * DAY + 1), newest)
            .unwrap_err()
            .to_string()
            .ends_with("at most 2 years after it are accepted")
    );
    for (now, newest) in [(Timestamp::MIN, Timestamp::MAX), (Timestamp::MAX, Timestamp::MIN)] {
        assert_eq!(check_clock(now, newest), Err(WrongClock { now, newest }));
    }
}

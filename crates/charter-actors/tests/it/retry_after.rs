//! The pause that a server requests.

use std::time::{Duration, SystemTime};

use charter_actors::retry_after;

#[test]
fn seconds_and_dates() {
    assert_eq!(retry_after(Some("2"), None), Some(Duration::from_secs(2)));
    assert_eq!(retry_after(Some("0.25"), None), Some(Duration::from_millis(250)));
    let (later, now) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT");
    assert_eq!(retry_after(Some(later), Some(now)), Some(Duration::from_secs(30)));
    assert_eq!(retry_after(Some("1e300"), None), Some(Duration::from_secs(3_155_760_000)));
    for form in ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(retry_after(Some(form), Some(now)), Some(Duration::from_secs(30)), "{form}");
    }
    for (after, date) in [
        (Some(now), Some(later)),
        (Some(later), None),
        (Some("soon"), None),
        (Some("-1"), None),
        (Some("NaN"), None),
        (None, None),
    ] {
        assert_eq!(retry_after(after, date), None, "{after:?}");
    }
}

#[test]
fn a_date_without_the_date_of_the_server_is_compared_with_the_clock() {
    let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
    for date in [None, Some("yesterday")] {
        let wait = retry_after(Some(&later), date).unwrap();
        assert!((90..=100).contains(&wait.as_secs()), "{wait:?}");
    }
}

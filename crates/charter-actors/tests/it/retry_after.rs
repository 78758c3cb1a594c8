//! The pause that a server requests.

use std::time::Duration;

use charter_actors::retry_after;

#[test]
fn seconds_and_dates() {
    assert_eq!(retry_after(Some("2"), None), Some(Duration::from_secs(2)));
    assert_eq!(retry_after(Some("0.25"), None), Some(Duration::from_millis(250)));
    let (later, now) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT");
    assert_eq!(retry_after(Some(later), Some(now)), Some(Duration::from_secs(30)));
    assert_eq!(retry_after(Some("1e300"), None), Some(Duration::from_secs(3_155_760_000)));
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

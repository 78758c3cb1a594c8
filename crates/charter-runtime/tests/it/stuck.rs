//! What a view says about a run that cannot continue.

use charter_kernel::Millis;
use serde_json::json;

use crate::common::{block_on, host};

#[test]
fn a_run_whose_only_timer_was_refused_for_good_is_stuck() {
    block_on(async {
        let list: Vec<u8> = vec![1; 100];
        let host = host(&format!(
            "{{charter: 1, id: costly, limits: {{fuel: 1000}}, context: {{list: {list:?}}}, states: {{s: {{after: {{1h: \
             {{actions: {{each: {{in: '= context.list', as: i, do: {{log: '= i + 1'}}}}}}}}}}}}}}}}"
        ))
        .await;
        host.start("r", json!(null)).await;
        let view = host.runtime.view("r").await.unwrap();
        assert_eq!((view.is_stuck(), view.next_due.is_some()), (false, true));
        host.clock.advance(Millis(3_600_001)).await;
        host.runtime.idle().await;
        assert_eq!(host.story("r").last().unwrap(), "3600000 after.1h.s refused too-costly s");
        let view = host.runtime.view("r").await.unwrap();
        assert_eq!((view.is_stuck(), view.next_due), (true, None));
        // Also when the run is read from the journal again.
        let charter = (*view.charter).clone();
        let host = host.crash(charter, |o| o).await;
        assert!(host.runtime.view("r").await.unwrap().is_stuck());
    });
}

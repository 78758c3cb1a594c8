//! What a host keeps beside the records.

use charter_journal::{MAX_STATE_BYTES, StateChange, StoreError, verify};

use crate::common::*;
use crate::stores::on_each_store;

#[test]
fn a_host_keeps_what_it_needs_beside_the_records() {
    let change = |area: &str, name: &str, value: Option<&str>| StateChange {
        area: area.into(),
        name: name.into(),
        value: value.map(Into::into),
    };
    on_each_store(|store| {
        fill(store, &some_acts(4), "r");
        let before = (store.head().unwrap(), store.last_position().unwrap());
        assert_eq!(store.host_state("a").unwrap(), []);
        store.put_host_state(vec![change("a", "y", Some("2")), change("a", "x", Some("1"))]).unwrap();
        store.put_host_state(vec![change("b", "x", Some("3")), change("a", "y", Some("4"))]).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(store.host_state("a").unwrap(), [pair("x", "1"), pair("y", "4")]);
        store.put_host_state(vec![change("a", "x", None), change("a", "z", None)]).unwrap();
        assert_eq!(store.host_state("a").unwrap(), [pair("y", "4")]);
        let large = "x".repeat(MAX_STATE_BYTES + 1);
        let refused = store.put_host_state(vec![change("a", "y", None), change("a", "x", Some(&large))]);
        assert!(matches!(refused, Err(StoreError::NotWritten { .. })), "{refused:?}");
        assert_eq!(store.host_state("a").unwrap(), [pair("y", "4")]);
        assert_eq!((store.head().unwrap(), store.last_position().unwrap()), before);
        assert_eq!(verify(store, None).unwrap().findings, []);
    });
}

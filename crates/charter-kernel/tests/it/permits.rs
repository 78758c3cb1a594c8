//! Permits and obligations that an event needs, as far as its data does not decide.

use charter_kernel::Principal;

use crate::common::Run;

#[test]
fn a_permit_that_was_never_granted_is_missing_whatever_the_data_is() {
    const TOOLS: &str = "
ledger: {token: {}, order: {}}
context: {}
events:
  GRANT: {}
  ORDER: {}
  WRITE: {}
  READ: {}
  REPLY: {}
states:
  s:
    on:
      GRANT: {actions: {grant: {kind: token, key: t1, data: {max: 3}}}}
      ORDER: {actions: {open: {kind: order, key: o1}}}
      WRITE: {requires: {use: {kind: token, key: t1, when: event.n <= entry.data.max}}}
      READ: {requires: {use: {kind: token, key: '= event.token'}}}
      REPLY: {requires: {open: {kind: order, key: '= event.order'}}}
";
    let (ana, mut run) = (Principal::new("ana", &[]), Run::start(TOOLS));
    let legal = |run: &Run| -> Vec<String> {
        run.machine.legal(&run.snapshot, &ana, 0).into_iter().map(|event| event.r#type).collect()
    };
    let reasons = |run: &Run| -> Vec<String> {
        let all = run.machine.not_legal(&run.snapshot, &ana, 0).into_iter();
        all.map(|not| format!("{} {}: {}", not.r#type, not.reason.code, not.reason.message)).collect()
    };
    assert_eq!(legal(&run), ["GRANT", "ORDER"]);
    let all = reasons(&run);
    assert!(all[0].starts_with("WRITE permit.missing: ") && all[0].contains("there is no `token` `t1`"), "{all:?}");
    assert!(all[1].starts_with("READ permit.missing: ") && all[1].contains("no `token` that can be used"), "{all:?}");
    assert!(all[2].starts_with("REPLY obligation.missing: ") && all[2].contains("no `order` is open"), "{all:?}");
    run.send("GRANT");
    run.send("ORDER");
    assert_eq!(legal(&run), ["WRITE", "READ", "REPLY"], "the keys are used up");
    for (kind, condition) in [
        ("WRITE", "event.n <= entry.data.max"),
        ("READ", "ledger.token[event.token].status == 'granted'"),
        ("REPLY", "ledger.order[event.order].status in ['open', 'overdue']"),
    ] {
        assert_eq!(run.machine.demands(&run.snapshot, "root", kind, &ana, 0).unwrap().conditions, [condition]);
    }
}

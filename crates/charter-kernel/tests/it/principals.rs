//! What a principal is and how it was authenticated: in expressions, and as a condition of
//! transitions.

use charter_kernel::{Auth, Principal, PrincipalKind};
use serde_json::json;

use crate::common::Run;

#[test]
fn expressions_read_kind_and_authentication_even_if_the_host_gave_none() {
    let chart = "
context: {kind: null, auth: null, all: null}
events: {E: {}}
states:
  s:
    on:
      E: {actions: {assign: {kind: '= by.kind', auth: '= by.auth', all: '= by'}}}
";
    let mut run = Run::start(chart);
    run.send("E");
    assert_eq!((run.var("kind"), run.var("auth")), (json!("person"), json!("local")));
    assert_eq!(run.var("all"), json!({"id": "", "roles": []}), "as in a record: only what was given");
    run.by = Principal::new("bot", &[]).of_kind(PrincipalKind::Agent).authenticated(Auth::Key);
    run.send("E");
    assert_eq!((run.var("kind"), run.var("auth")), (json!("agent"), json!("key")));
    assert_eq!(run.var("all"), json!({"id": "bot", "roles": [], "kind": "agent", "auth": "key"}));
}

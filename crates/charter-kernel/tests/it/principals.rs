//! What a principal is and how it was authenticated: in expressions, and as a condition of
//! transitions.

use charter_kernel::{Auth, Code, Digest, MAX_PRINCIPAL_ID_BYTES, Principal, PrincipalKind};
use serde_json::{Value as Json, json};

use crate::common::{Run, problems};

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

const PAYMENT: &str = "
roles: {clerk: {}, controller: {}}
context: {payment: {amount: 5}, proposer: null}
events: {PROPOSE: {by: clerk}, APPROVE: {by: [clerk, controller]}, WAIVE: {by: controller}}
states:
  open:
    on:
      PROPOSE: {actions: {assign: {proposer: '= by.id'}}}
      APPROVE: {target: paid, by: controller, approves: {value: context.payment, not_by: context.proposer}}
      WAIVE: {target: paid, approves: {value: context.payment, not_by: context.proposer}, agents: true}
  paid: {}
";

fn digest() -> Json {
    json!({"digest": Digest::of_json(&json!({"amount": 5})).to_string()})
}

/// A run of [`PAYMENT`] in which `ana` has proposed the payment.
fn proposed() -> Run {
    let mut run = Run::start(PAYMENT);
    run.by("ana", &["clerk"]).send("PROPOSE");
    run
}

fn agent(id: &str, roles: &[&str]) -> Principal {
    Principal::new(id, roles).of_kind(PrincipalKind::Agent)
}

/// Sends an event that must be refused; returns code, rule, message and the values read.
fn why(run: &mut Run, by: Principal, kind: &str, data: Json) -> (String, Option<String>, String, Json) {
    run.by = by;
    let story = run.try_send(kind, data).map(|_| ()).unwrap_err();
    let read = story.candidates.first().map(|c| c.read.clone()).unwrap_or_default();
    (story.code.to_string(), story.rule, story.message, Json::Object(read))
}

#[test]
fn only_persons_approve() {
    let mut run = proposed();
    for kind in [PrincipalKind::Agent, PrincipalKind::Service] {
        let by = Principal::new("bot", &["controller"]).of_kind(kind);
        let (code, rule, message, read) = why(&mut run, by, "APPROVE", digest());
        assert_eq!((code.as_str(), rule.as_deref()), ("authority", Some("persons-only")));
        let article = if kind == PrincipalKind::Agent { "an" } else { "a" };
        assert_eq!(message, format!("only a person may take this transition; `bot` is {article} {kind}"));
        assert_eq!(read, json!({"by.kind": kind.word()}));
    }
    // Roles are looked at first.
    let (_, rule, message, _) = why(&mut run, agent("bot", &["clerk"]), "APPROVE", digest());
    assert_eq!(rule, None);
    assert_eq!(message, "only `controller` may take this transition; `bot` has the role `clerk`");
    run.by = Principal::new("bea", &["controller"]).of_kind(PrincipalKind::Person);
    run.send_data("APPROVE", digest());
    assert_eq!(run.state(), "paid");
}

#[test]
fn a_transition_can_admit_agents() {
    let mut run = proposed();
    run.by = agent("bot", &["controller"]);
    run.send_data("WAIVE", digest());
    assert_eq!(run.state(), "paid");
}

#[test]
fn whoever_not_by_names_does_not_approve() {
    let mut run = proposed();
    let ana = || Principal::new("ana", &["controller"]);
    let (code, rule, message, read) = why(&mut run, ana(), "APPROVE", digest());
    assert_eq!((code.as_str(), rule.as_deref()), ("authority", Some("not-by")));
    assert_eq!(
        message,
        "`ana` may not take this transition, because `not_by` (`context.proposer`) names them; somebody else has to"
    );
    assert_eq!(read, json!({"by.id": "ana", "context.proposer": "ana"}));
    // The same for an agent where agents may approve.
    assert_eq!(why(&mut run, agent("ana", &["controller"]), "WAIVE", digest()).1.as_deref(), Some("not-by"));
    run.by("bea", &["controller"]).send_data("APPROVE", digest());
    assert_eq!(run.state(), "paid");
    // Null excludes nobody.
    let mut run = Run::start(PAYMENT);
    run.by = ana();
    run.send_data("APPROVE", digest());
    assert_eq!(run.state(), "paid");
}

#[test]
fn four_eyes_need_an_authenticated_principal() {
    for kind in ["APPROVE", "WAIVE"] {
        let mut run = proposed();
        let by = Principal::new("eve", &["controller"]).authenticated(Auth::None);
        let (code, rule, message, read) = why(&mut run, by, kind, digest());
        assert_eq!((code.as_str(), rule.as_deref()), ("authority", Some("authenticated-only")));
        assert_eq!(message, "only an authenticated principal may take this transition; `eve` is not authenticated");
        assert_eq!(read, json!({"by.auth": "none"}));
    }
    // Without `not_by`, an approval is a statement about a value, not about who makes it.
    let mut run = Run::start(
        "
context: {x: 1}
events: {OK: {}}
states: {a: {on: {OK: {target: b, approves: context.x}}}, b: {}}
",
    );
    run.by = Principal::new("eve", &[]).authenticated(Auth::None);
    run.send_data("OK", json!({"digest": Digest::of_json(&json!(1)).to_string()}));
    assert_eq!(run.state(), "b");
}

#[test]
fn a_quorum_counts_authenticated_persons_whom_not_by_does_not_name() {
    let mut run = Run::start(
        "
roles: {r: {}}
input: {type: object}
events: {OK: {}}
states: {s: {on: {OK: {target: t, quorum: {count: 2, of: r, not_by: input.team}}}}, t: {}}
",
    );
    run.snapshot = {
        let machine = run.machine.clone();
        let with = Run::on(machine, json!({"team": ["ana", null, "ben"]})).unwrap();
        with.snapshot
    };
    for excluded in ["ana", "ben"] {
        let (code, rule, _, read) = why(&mut run, Principal::new(excluded, &["r"]), "OK", json!({}));
        assert_eq!((code.as_str(), rule.as_deref()), ("authority", Some("not-by")));
        assert_eq!(read, json!({"by.id": excluded, "input.team": ["ana", null, "ben"]}));
    }
    assert_eq!(why(&mut run, agent("bot", &["r"]), "OK", json!({})).1.as_deref(), Some("persons-only"));
    let anonymous = Principal::new("eve", &["r"]).authenticated(Auth::None);
    assert_eq!(why(&mut run, anonymous, "OK", json!({})).1.as_deref(), Some("authenticated-only"));
    // A sender without the role is refused for lack of the role.
    let (_, rule, message, _) = why(&mut run, agent("bot", &[]), "OK", json!({}));
    assert_eq!((rule, message.as_str()), (None, "only `r` may vote; `bot` has no role"));
    run.by("cleo", &["r"]).send("OK");
    assert_eq!((run.state().as_str(), run.verdict()), ("s", "vote"));
    run.by("dan", &["r"]).send("OK");
    assert_eq!(run.state(), "t");
}

#[test]
fn a_not_by_that_names_no_ids_excludes_everybody() {
    for (value, expected) in [
        ("context.n", "`not_by` needs an id, a list of ids or null, but this is an int"),
        ("[context.n]", "`not_by` needs an id, a list of ids or null, but this is an int"),
        ("['x', context.n]", "`not_by` needs an id, a list of ids or null, but this is an int"),
        ("{'a': 'x'}", "`not_by` needs an id, a list of ids or null, but this is a map"),
        ("context.o.missing", "no such field `missing`"),
    ] {
        let mut run = Run::start(&format!(
            "
context: {{n: 1, o: {{}}, x: 1}}
events: {{OK: {{}}}}
states: {{a: {{on: {{OK: {{target: b, approves: {{value: context.x, not_by: \"{value}\"}}}}}}}}, b: {{}}}}
"
        ));
        let digest = json!({"digest": Digest::of_json(&json!(1)).to_string()});
        // Even for a principal whom the first entry names.
        for id in ["ana", "x"] {
            let (code, rule, message, _) = why(&mut run, Principal::new(id, &[]), "OK", digest.clone());
            assert_eq!((code.as_str(), rule.as_deref()), ("authority", Some("not-by")), "{value}");
            let start =
                format!("nobody may take this transition, because `not_by` (`{value}`) could not be evaluated: ");
            assert!(message.starts_with(&start), "{message}");
            assert!(message.contains(expected), "{message}");
        }
        assert!(run.machine.legal(&run.snapshot, &Principal::new("ana", &[]), 0).is_empty());
    }
}

#[test]
fn legal_tells_the_truth_about_the_sender() {
    let mut run = proposed();
    let legal = |run: &Run, by: &Principal| -> Vec<String> {
        run.machine.legal(&run.snapshot, by, run.at).into_iter().map(|l| l.r#type).collect()
    };
    assert_eq!(legal(&run, &Principal::new("bea", &["controller"])), ["APPROVE", "WAIVE"]);
    assert_eq!(legal(&run, &Principal::new("ana", &["controller"])), Vec::<String>::new());
    assert_eq!(legal(&run, &agent("bot", &["controller"])), ["WAIVE"]);
    let anonymous = Principal::new("bea", &["controller"]).authenticated(Auth::None);
    assert_eq!(legal(&run, &anonymous), Vec::<String>::new());
    // A refusal says the same.
    run.by = agent("bot", &["controller"]);
    assert_eq!(run.try_send("APPROVE", digest()).map(|_| ()).unwrap_err().legal, ["WAIVE"]);
}

#[test]
fn a_not_by_that_reads_the_event_is_judged_with_the_event() {
    let mut run = Run::start(
        "
events: {OK: {data: {type: object, properties: {author: {type: string}}}}}
states: {a: {on: {OK: {target: b, quorum: {count: 1, not_by: event.author}}}}, b: {}}
",
    );
    run.by("ana", &[]);
    let legal = run.machine.legal(&run.snapshot, &run.by, run.at);
    assert_eq!(legal.iter().map(|l| (l.r#type.as_str(), l.depends_on_data)).collect::<Vec<_>>(), [("OK", true)]);
    assert_eq!(run.refused("OK", json!({"author": "ana"})), "authority");
    run.send_data("OK", json!({"author": "ben"}));
    assert_eq!(run.state(), "b");
}

#[test]
fn an_event_that_a_run_raises_approves_only_for_a_person() {
    let chart = "
context: {x: 1}
events: {GO: {}}
states:
  a:
    on:
      GO: {actions: {raise: {type: OK, data: {digest: '= digest(context.x)'}}}}
      OK: {target: b, approves: context.x}
    after: {10s: {actions: {raise: {type: OK, data: {digest: '= digest(context.x)'}}}}}
  b: {}
";
    let mut run = Run::start(chart);
    run.by = agent("bot", &[]);
    run.send("GO").wait(20_000);
    assert_eq!(run.state(), "a", "neither an agent nor a timer approves");
    run.by("ana", &[]).send("GO");
    assert_eq!(run.state(), "b");
}

#[test]
fn not_by_and_agents_belong_to_approvals_and_quorums() {
    let chart = "
events: {A: {}, B: {}}
states: {a: {on: {A: {target: a, agents: true}, B: {target: a, quorum: 2, agents: true}}}}
";
    assert_eq!(
        problems(chart),
        [(
            "conflicting-keys".to_owned(),
            "/root/state/states/a/on/0/transitions/0/agents: `agents` is only allowed with `approves` or `quorum`"
                .to_owned()
        )]
    );
}

#[test]
fn the_id_of_a_sender_has_256_bytes_at_most() {
    let mut run = Run::start("events: {E: {}}\nstates: {s: {on: {E: {}}}}");
    let longest = MAX_PRINCIPAL_ID_BYTES;
    run.by = Principal::new(&"x".repeat(longest), &[]);
    run.send("E");
    run.by = Principal::new(&"x".repeat(longest + 1), &[]);
    let refused = run.try_send("E", json!({})).map(drop).unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (Code::TooLarge, "the id of the sender is longer than 256 bytes; use a shorter name, or its digest")
    );
}

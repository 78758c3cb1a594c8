//! Approvals, rollback, rounds and insights.

use crate::common::Run;
use charter_kernel::{Digest, EffectKind};
use serde_json::{Value as Json, json};

use super::{EVENTS, act, changeset, error, hash, must, output, reach};

#[test]
fn the_approvals_are_of_what_was_shown() {
    let mut run = reach("AWAITING_PROPOSAL_APPROVAL");
    let approve = |run: &mut Run, id: &str, data: Json| act(run, id, "approver", "APPROVE_PROPOSAL", data);
    let whole = run.var("proposal");
    let part = |paths: &[usize]| json!({"summary": "s", "changes": paths.iter().map(|i| whole["changes"][*i].clone()).collect::<Vec<_>>()});
    let digest = |value: &Json| Digest::of_json(value).hex();
    let refused = [
        (json!({"digest": digest(&changeset("y"))}), "stale"),
        (json!({"digest": digest(&part(&[0]))}), "stale"),
        (json!({"digest": digest(&whole), "accepted": ["a"]}), "stale"),
        (json!({"digest": digest(&part(&[0])), "accepted": ["b"]}), "stale"),
        (json!({"digest": digest(&whole), "accepted": ["a", "b", "c"]}), "guard"),
        (json!({"digest": digest(&whole), "accepted": []}), "schema"),
        (json!({"digest": digest(&whole), "accepted": ["a", "a"]}), "schema"),
        (json!({}), "schema"),
    ];
    for (data, code) in refused {
        assert_eq!(approve(&mut run, "ana", data.clone()), Err(code.into()), "{data}");
    }
    // The proposer cannot approve, regardless of role.
    assert_eq!(approve(&mut run, "agent", json!({"digest": digest(&whole)})), Err("authority".into()));
    approve(&mut run, "ana", json!({"digest": digest(&part(&[1])), "accepted": ["b"]})).unwrap();
    assert_eq!(run.var("changeset"), part(&[1]));
    assert_eq!(run.var("approval")["by"], "ana");

    // The same rules apply to the approval of the context.
    let mut run = reach("AWAITING_CONTEXT_APPROVAL");
    let approve = |run: &mut Run, id: &str, digest: String| {
        act(run, id, "approver", "APPROVE_CONTEXT", json!({"digest": digest}))
    };
    assert_eq!(approve(&mut run, "ana", hash("other")), Err("stale".into()));
    let right = digest(&run.var("bundle"));
    assert_eq!(approve(&mut run, "agent", right.clone()), Err("authority".into()));
    // The approval of the first bundle is not valid for another bundle.
    must(&mut run, "approver", "REVISE_CONTEXT");
    run.done("curate", json!({"files": []}));
    assert_eq!(approve(&mut run, "ana", right), Err("stale".into()));
}

#[test]
fn what_was_changed_is_put_back_before_error_opens() {
    let failed = || {
        let mut run = reach("APPLYING_CHANGESET");
        run.failed("apply", error());
        run
    };
    let reset = |run: &mut Run, role: &str| act(run, role, role, "RESET", json!({}));
    let mut run = failed();
    assert_eq!(reset(&mut run, "operator"), Err("guard".into()));
    run.done("rollback", json!({}));
    reset(&mut run, "operator").unwrap();
    assert_eq!(run.state(), "IDLE");
    // The rollback fails: a person has to confirm, and the next cycle records who did.
    let mut run = failed();
    run.failed("rollback", json!({"code": "dirty", "message": "`a` cannot be put back"}));
    assert_eq!(run.var("dirty"), "`a` cannot be put back");
    reset(&mut run, "operator").unwrap();
    assert_eq!((run.var("dirty"), &run.var("cleared")["by"]), (Json::Null, &json!("operator")));
    // Nothing was changed, so `RESET` is accepted at once.
    let mut run = reach("ERROR");
    reset(&mut run, "operator").unwrap();
}

#[test]
fn rounds_are_bounded_and_cycles_counted() {
    let mut run = reach("REFLECTING");
    let again = json!({"outcome": "failed", "insights": [], "refinedGoal": "again"});
    for round in 1..=10 {
        run.done("reflect", again.clone());
        assert_eq!(run.state(), "CURATING_CONTEXT", "round {round}");
        for how in ["curate", "APPROVE_CONTEXT", "plan", "propose", "APPROVE_PROPOSAL", "apply"] {
            if EVENTS.contains(&how) {
                must(&mut run, "approver", how);
            } else {
                run.done(how, output(how));
            }
        }
    }
    run.done("reflect", again);
    assert_eq!((run.state().as_str(), run.var("cycle")), ("IDLE", json!(11)));
    must(&mut run, "operator", "START");
    assert_eq!((run.var("cycle"), run.var("round")), (json!(12), json!(0)));
}

#[test]
fn insights_reach_the_next_planning() {
    let mut run = reach("APPLYING_CHANGESET");
    run.failed("apply", json!({"code": "verify", "message": "the tests fail"}));
    let insight = run.var("insights")[0].clone();
    assert_eq!((&insight["outcome"], &insight["category"]), (&json!("failed"), &json!("verify")));
    run.done("rollback", json!({}));
    must(&mut run, "operator", "RESET");
    must(&mut run, "operator", "START");
    run.done("curate", output("curate"));
    must(&mut run, "approver", "APPROVE_CONTEXT");
    let effects = &run.last.as_ref().unwrap().effects;
    let plan = effects.iter().find_map(|e| match &e.kind {
        EffectKind::Invoke { src, input, .. } if &**src == "plan" => Some(input.clone()),
        _ => None,
    });
    assert_eq!(plan.unwrap()["insights"][0], insight);
}

#[test]
fn people_say_how_long_a_question_waits() {
    let input = json!({"workspace": "w", "goal": "g", "contextReview": "30m", "proposalReview": "2d"});
    let mut run = Run::on(super::machine(), input).unwrap();
    run.done("curate", output("curate"));
    run.wait(30 * 60_000 - 1);
    assert_eq!(run.state(), "AWAITING_CONTEXT_APPROVAL");
    must(&mut run, "approver", "APPROVE_CONTEXT");
    run.done("plan", output("plan"));
    run.done("propose", output("propose"));
    run.wait(2 * 86_400_000 - 1);
    assert_eq!(run.state(), "AWAITING_PROPOSAL_APPROVAL");
    run.wait(1);
    assert_eq!((run.state().as_str(), run.var("reason")), ("IDLE", json!("proposal-expired")));
    assert!(Run::on(super::machine(), json!({"workspace": "w", "contextReview": "0s"})).is_err());
}

//! What reports say of a run: what it accepts, why an event was accepted, what differs.

use serde_json::Value as Json;

use crate::support::{Ran, Scratch, charter};

/// A charter and a journal in a folder of their own.
struct Site {
    scratch: Scratch,
    charter: String,
    db: String,
}

impl Site {
    fn new(name: &str, file: &str, text: &str) -> Site {
        let scratch = Scratch::new(name);
        let (charter, db) = (scratch.file(file, text), scratch.0.join("charter.db").display().to_string());
        Site { scratch, charter, db }
    }

    fn run(&self, args: &[&str]) -> Ran {
        let all: Vec<&str> = args.iter().copied().chain(["--db", self.db.as_str()]).collect();
        charter(&all)
    }

    fn start(&self) -> Ran {
        self.run(&["run", &self.charter, "--run", "r"])
    }
}

const WILD: &str = r#"<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="null">
  <state id="a"><transition event="go" target="b"/></state>
  <state id="b"><transition event="*" target="a"/></state>
</scxml>"#;

#[test]
fn events_that_wildcards_accept_are_legal() {
    let site = Site::new("wildcards", "wild.scxml", WILD);
    let ran = site.start();
    assert!(!ran.out.contains("stuck"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("send r go"), "{}", ran.out);
    let legal = site.run(&["legal", "r"]);
    assert_eq!(legal.code, 0, "{}", legal.out);
    assert!(legal.out.contains("go") && legal.out.contains("and any type that begins with `go.`"), "{}", legal.out);
    assert_eq!(site.run(&["send", "r", "go.on"]).code, 0);
    for command in [["legal", "r"], ["show", "r"]] {
        let shown = site.run(&command);
        assert!(shown.out.contains('*') && !shown.out.contains("no events accepted"), "{}", shown.out);
    }
    let sent = site.run(&["send", "r", "whatever"]);
    assert!(sent.out.contains("accepted") && !sent.out.contains("stuck"), "{}{}", sent.out, sent.err);
    assert!(site.run(&["legal", "r"]).out.starts_with("go "), "only what the state takes");
}

const DESK: &str = "
charter: 1
id: desk
roles: {clerk: {}, boss: {}}
ledger: {stamp: {}}
context: {total: 3, clerk: null}
events:
  STAMP: {by: clerk, data: {type: object, maxProperties: 0}}
  PAY: {by: clerk, data: {type: object, required: [n], properties: {n: {type: integer}}}}
  AGREE: {by: boss, data: {type: object, maxProperties: 0}}
actors: {ask: {kind: human, title: Look}}
states:
  open:
    on:
      STAMP: {actions: {grant: {kind: stamp, key: s1, uses: 2, data: {most: 5}}}}
      PAY: {target: paid, when: context.total + event.n < 9, requires: {use: {kind: stamp, key: s1, when: event.n <= entry.data.most}},
        actions: {assign: {clerk: '= by.id'}}}
  paid:
    invoke: {src: ask, onDone: paid, onError: paid}
    on: {AGREE: {target: closed, quorum: {count: 2, of: boss, not_by: context.clerk}}}
  closed: {type: final}
";

#[test]
fn an_accepted_event_is_explained_with_its_condition_values_and_demands() {
    let site = Site::new("accepted", "desk.yaml", DESK);
    site.start();
    site.run(&["send", "r", "STAMP", "--as", "ana", "--role", "clerk"]);
    let legal = site.run(&["legal", "r", "--as", "ana", "--role", "clerk"]);
    assert!(legal.out.contains("PAY"), "{}", legal.out);
    site.run(&["send", "r", "PAY", "{\"n\": 2}", "--as", "ana", "--role", "clerk"]);
    let story = site.run(&["explain", "r", "2"]).out;
    for line in [
        "transition open/on/PAY/0",
        "because `context.total + event.n < 9` is true",
        "ana has the role clerk",
        "uses the permit stamp s1, which had 2 uses left, whose condition `event.n <= entry.data.most` is true",
        "context.total was 3",
        "event.n was 2",
        "entry.data.most was 5",
    ] {
        assert!(story.contains(line), "{line}\n{story}");
    }
    let vote = |who| site.run(&["send", "r", "AGREE", "--as", who, "--role", "boss"]);
    vote("bea");
    let barred = site.run(&["legal", "r", "--as", "bea", "--role", "boss"]).out;
    assert!(barred.contains("bea has voted") && !barred.contains("other data"), "{barred}");
    vote("cal");
    let story = site.run(&["explain", "r", "4"]).out;
    for line in [
        "the quorum of 2 is reached: bea, cal",
        "cal is somebody else than ana",
        "cal has the role boss",
        "effect: cancel ask",
    ] {
        assert!(story.contains(line), "{line}\n{story}");
    }
    let json: Json = serde_json::from_str(&site.run(&["explain", "r", "2", "--json"]).out).unwrap();
    assert_eq!(json["taken"][0]["read"]["event.n"], 2, "{json}");
    // An answer and a timer have conditions, too.
    assert!(site.run(&["verify"]).out.contains("verified"));
}

#[test]
fn what_follows_inside_a_step_is_explained_with_the_values_of_that_moment() {
    let text = "charter: 1\nid: chain\nversion: 1.0.0\ncontext: {n: 0}\nevents: {GO: {}}\ninitial: a\nstates:\n  \
        a: {always: {when: context.n == 0, target: b}}\n  \
        b: {on: {GO: {target: c, actions: [{assign: {n: 2}}, {raise: inner}]}}}\n  \
        c: {on: {inner: {when: context.n == 2, target: d, actions: {assign: {n: 3}}}}}\n  \
        d: {always: {when: context.n > 2, target: e}}\n  e: {type: final}\n";
    let site = Site::new("followed", "chain.yaml", text);
    site.start();
    let story = site.run(&["explain", "r", "0"]).out;
    assert!(
        story.contains("  transition a/always/0\n    because `context.n == 0` is true\n    context.n was 0"),
        "{story}"
    );
    site.run(&["send", "r", "GO"]);
    let story = site.run(&["explain", "r", "1"]).out;
    let followed = "  transition b/on/GO/0\n  transition c/on/inner/0\n    for `inner`, which followed inside the step\n    \
        because `context.n == 2` is true\n    context.n was 2\n  transition d/always/0\n    \
        because `context.n > 2` is true\n    context.n was 3";
    assert!(story.contains(followed), "{story}");
}

#[test]
fn a_permit_that_was_never_granted_is_not_offered() {
    let site = Site::new("never-granted", "desk.yaml", DESK);
    site.start();
    let legal = site.run(&["legal", "r", "--as", "ana", "--role", "clerk"]).out;
    assert!(legal.contains("not PAY: ") && legal.contains("there is no `stamp` `s1`"), "{legal}");
    assert!(!site.run(&["show", "r"]).out.contains("PAY"));
}

#[test]
fn a_start_that_is_not_the_first_one_says_what_differs() {
    let site = Site::new("differs", "desk.yaml", DESK);
    site.run(&["run", &site.charter, "--run", "r", "--as", "ana"]);
    let again = |more: &[&str]| {
        let args: Vec<&str> = ["run", site.charter.as_str(), "--run", "r"].iter().chain(more).copied().collect();
        site.run(&args).err
    };
    let by = again(&["--as", "bea"]);
    assert!(by.contains("run `r` already exists and was started by ana, not by bea\n"), "{by}");
    let input = again(&["--as", "ana", "--input", "{\"x\": 1}"]);
    assert!(input.contains("already exists and was started with another input\n"), "{input}");
    let other = site.scratch.file("other.yaml", DESK.replace("id: desk", "id: other"));
    let ran = site.run(&["run", &other, "--run", "r", "--as", "ana"]);
    assert!(ran.err.contains("was started with another charter\n"), "{}", ran.err);
}

#[test]
fn remarks_are_counted() {
    let text = "charter: 1\nid: t\nevents: {GO: {}}\nstates: {a: {on: {GO: b}}, b: {type: final}}\n";
    let scratch = Scratch::new("remarks");
    let ran = charter(&["check", &scratch.file("t.yaml", text)]);
    assert!(ran.out.contains("info[event-without-schema]"), "{}", ran.out);
    assert!(ran.out.contains(": no errors or warnings, 1 remark; explored "), "{}", ran.out);
}

#[test]
#[cfg(unix)]
fn after_waiting_for_an_actor_the_state_is_the_new_one() {
    const SLOW: &str = "
charter: 1
id: slow
events: {GO: {data: {type: object, maxProperties: 0}}}
actors:
  look: {kind: human, title: Look}
  one: {kind: exec, command: [sh, -c, 'sleep 0.3; echo 1'], timeout: 9s}
  two: {kind: exec, command: [sh, -c, 'sleep 0.3; echo 2'], timeout: 9s}
states:
  idle: {on: {GO: asking}}
  asking: {invoke: {src: look, onDone: first, onError: idle}}
  first: {invoke: {src: one, onDone: second, onError: idle}}
  second: {invoke: {src: two, onDone: idle, onError: idle}}
";
    let site = crate::support::processes::Site::new("slow", &[("slow.yaml", SLOW.to_owned())]);
    site.run("run slow.yaml --run r");
    site.run("send r GO");
    let answered = site.run("answer r {}");
    assert!(answered.contains("r: active in idle, 5 records"), "{answered}");
}

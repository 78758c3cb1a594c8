//! The changes of the charter `coder` that its README shows: each can be applied, passes
//! `charter check`, and does what its title says.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::support::processes::Site;

const README: &str = include_str!("../../../../charters/coder/README.md");

/// Title and text of each change.
fn recipes() -> Vec<(&'static str, &'static str)> {
    let parts = README.split("```diff\n").collect::<Vec<_>>();
    let diffs = parts.iter().skip(1).map(|part| part.split_once("```\n").unwrap().0);
    let title = |before: &&'static str| before.rsplit_once("\n### ").unwrap().1.split_once('\n').unwrap().0;
    parts.iter().map(title).zip(diffs).collect()
}

/// A call that does these things, as its data.
fn call(id: &str, does: &[&str], asks: &[(&str, &str)]) -> Json {
    let all = "read readOutside search write writeOutside delete deleteOutside protected secret environment guard \
               command network contact commit commitTree push test run ask other opaque";
    let does: serde_json::Map<String, Json> =
        all.split_whitespace().map(|fact| (fact.to_owned(), json!(does.contains(&fact)))).collect();
    let asks: Vec<Json> = asks.iter().map(|(kind, scope)| json!({"kind": kind, "scope": scope})).collect();
    let hosts = if does["network"] == true { json!(["docs.rs"]) } else { json!([]) };
    let contacts = if does["contact"] == true { hosts.clone() } else { json!([]) };
    json!({
        "tool": "Bash", "client": "claude", "session": "s", "call": id, "digest": "ab", "does": does, "paths": [],
        "commands": [], "hosts": hosts, "contacts": contacts, "asks": asks, "tree": "t1",
    })
}

fn send(who: &str, event: &str, data: &Json) -> String {
    format!("      - send: {{type: {event}, data: {data}, as: {who}}}\n")
}

fn legal(data: &Json) -> String {
    send("bot", "tool.call", data)
}

fn refused(data: &Json, rule: &str) -> String {
    format!("      - refused: {{type: tool.call, data: {data}, as: bot, code: rule, rule: {rule}}}\n")
}

fn approved(who: &str, event: &str, value: &str) -> String {
    format!("      - send: {{type: {event}, data: {{digest: \"= digest({value})\"}}, as: {who}}}\n")
}

/// The tests run, and pass.
fn tested() -> String {
    let mut result = call("t", &["command", "test"], &[]);
    let asked = legal(&result);
    result["ok"] = json!(true);
    asked + &send("bot", "tool.result", &result)
}

/// What a changed charter does.
fn steps(title: &str) -> String {
    let write = call("w", &["write"], &[]);
    let commit = call("c", &["command", "commit", "commitTree"], &[]);
    let mut other = commit.clone();
    other["tree"] = json!("t2");
    let push = call("p", &["command", "push", "network"], &[("push", "git push")]);
    let fetch = call("f", &["network", "contact"], &[("network", "docs.rs")]);
    let planned = |by: &str| {
        send("bot", "plan.propose", &json!({"plan": "Greet"})) + &approved(by, "plan.approve", "context.plan")
    };
    let asked = send("bot", "permit.ask", &json!({"kind": "push", "scope": "git push", "reason": "x"}));
    match title {
        "No plan" => [
            legal(&write),
            refused(&commit, "tests"),
            tested(),
            refused(&commit, "review"),
            approved("ana", "review.approve", "context.change"),
            refused(&push, "permit"),
            legal(&commit),
        ]
        .concat(),
        "No review" => [
            refused(&write, "plan"),
            planned("ana"),
            legal(&write),
            refused(&commit, "tests"),
            tested(),
            refused(&other, "reviewed"),
            legal(&commit),
            legal(&commit),
            legal(&write),
            refused(&commit, "tests"),
            tested(),
            "      - tick: 61m\n".into(),
            refused(&commit, "tests"),
        ]
        .concat(),
        "Two reviewers" => {
            let vote = approved("ben", "review.approve", "context.change").replace("}\n", ", verdict: vote}\n");
            let one = approved("ana", "review.approve", "context.change");
            [planned("ana"), legal(&write), tested(), vote, refused(&commit, "review"), one, legal(&commit)].concat()
        }
        "Only the permits" => [
            legal(&write),
            legal(&commit),
            tested(),
            refused(&push, "permit"),
            asked,
            approved("ana", "permit.approve", "context.request"),
            legal(&push),
            "      - refused: {type: plan.propose, data: {plan: x}, as: bot, code: rule, rule: free}\n".into(),
            refused(&call("g", &["write", "guard"], &[]), "control"),
        ]
        .concat(),
        "A free network" => {
            let secret = call("s", &["network", "contact", "secret", "environment"], &[("secret", "environment")]);
            [legal(&fetch), refused(&push, "permit"), refused(&secret, "permit")].concat()
        }
        "People of several kinds" => {
            let other = |event: &str, value: &str| {
                approved("ana", event, value)
                    .replace("- send:", "- refused:")
                    .replace("as: ana}", "as: ana, code: authority}")
            };
            [
                send("bot", "plan.propose", &json!({"plan": "Greet"})),
                other("plan.approve", "context.plan"),
                approved("lea", "plan.approve", "context.plan"),
                asked,
                other("permit.approve", "context.request"),
                approved("sam", "permit.approve", "context.request"),
                legal(&push),
                legal(&write),
                tested(),
                approved("ana", "review.approve", "context.change"),
                legal(&commit),
            ]
            .concat()
        }
        title => panic!("no test of the change `{title}`"),
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn each_change_that_the_readme_shows_does_what_it_says() {
    let coder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters/coder");
    let recipes = recipes();
    assert_eq!(recipes.len(), 6, "{recipes:?}");
    for (title, diff) in recipes {
        let site = Site::new(&format!("recipe-{}", title.replace(' ', "-")), &[]);
        let folder = site.path("charters/coder");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(coder.join("charter.yaml"), folder.join("charter.yaml")).unwrap();
        fs::write(site.path("change.diff"), diff).unwrap();
        for args in [&["init", "-q"][..], &["apply", "change.diff"]] {
            let output = Command::new("git").args(args).current_dir(site.path("")).output().unwrap();
            assert!(output.status.success(), "{title}: {}", String::from_utf8_lossy(&output.stderr));
        }
        site.run("check charters/coder/charter.yaml --deny-warnings --max-states 60 --effort 60");
        let scenario = format!(
            "name: {title}\nprincipals:\n  bot: {{roles: agent, kind: agent}}\n  ana: {{roles: approver, kind: person}}\n  \
             ben: {{roles: approver, kind: person}}\n{}\
             input: {{workspace: /srv/project, test: cargo test}}\nscenarios:\n  - name: it does what it says\n    steps:\n{}",
            match title {
                "People of several kinds" =>
                    "  lea: {roles: lead, kind: person}\n  sam: {roles: security, kind: person}\n",
                _ => "",
            },
            steps(title),
        );
        fs::create_dir_all(folder.join("scenarios")).unwrap();
        fs::write(folder.join("scenarios/own.yaml"), scenario).unwrap();
        let (code, out, err) = site.any("test charters/coder");
        assert_eq!(code, 0, "{title}: {out}{err}");
        if title == "Two reviewers" {
            two_reviewers(&site, &coder);
        }
    }
}

/// The other scenarios, changed as the README says.
fn two_reviewers(site: &Site, coder: &Path) {
    let scenarios = site.path("charters/coder/scenarios");
    fs::remove_file(scenarios.join("own.yaml")).unwrap();
    copy(&coder.join("scenarios"), &scenarios);
    let mut changed = 0;
    for entry in fs::read_dir(&scenarios).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let step = "- send: {type: review.approve, data: {digest: \"= digest(context.change)\"}, as: ana}";
        changed += text.matches(step).count();
        let vote = step.replace("as: ana}", "as: ben, verdict: vote}");
        let doubled = |line: &str| match line.strip_suffix(step) {
            Some(before) => format!("{before}{vote}\n{line}\n"),
            None => format!("{line}\n"),
        };
        let text: String = text.lines().map(doubled).collect();
        let text = text.replace("principals:\n", "principals:\n  ben: {roles: approver, kind: person}\n");
        fs::write(&path, text).unwrap();
    }
    let (code, out, err) = site.any("test charters/coder");
    assert_eq!(code, 0, "{out}{err}");
    assert!(README.contains(&format!("({changed} of them)")), "{changed}");
}

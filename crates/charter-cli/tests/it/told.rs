//! What a person is told at a prompt and by commands: overdue timers, pauses, refused answers, and
//! the way back from a prompt.

use std::time::Duration;

use crate::support::processes::{Site, on_terminal, said, until};
use crate::support::{Scratch, charter, charter_typed};

const DESK: &str = "
charter: 1
id: desk
roles: {clerk: {}, chief: {}}
events: {NOTE: {by: clerk, data: {type: object, required: [text, grade], properties: {text: {type: string, minLength: 1}, grade: {enum: [good, bad]}}}}}
actors:
  look: {kind: human, title: Look at the books, by: clerk, output: {type: object, required: [verdict], properties: {verdict: {enum: [good, bad]}}}}
context: {notes: []}
initial: looking
states:
  looking:
    on: {NOTE: {actions: {assign: {notes: '= context.notes + [event.text, event.grade]'}}}}
    invoke: {src: look, onDone: done, onError: declined}
  done: {type: final}
  declined: {type: final}
";

const LATE: &str = "
charter: 1
id: late
roles: {clerk: {}}
events: {GO: {by: clerk}}
initial: open
states:
  open: {on: {GO: gone}, after: {100ms: expired}}
  gone: {type: final}
  expired: {type: final}
";

fn desk(name: &str) -> Site {
    let site = Site::new(name, &[("desk.yaml", DESK.to_owned())]);
    site.run("run desk.yaml --run w");
    site
}

#[test]
fn legal_and_show_say_that_an_overdue_timer_fires_first() {
    let site = Site::new("told-overdue", &[("late.yaml", LATE.replace("100ms", "1h"))]);
    site.run("run late.yaml --run early");
    assert!(!site.run("legal early").contains("overdue") && !site.run("show early").contains("overdue"));
    site.0.file("late.yaml", LATE.replace("100ms", "1500ms"));
    // The command waits for the timer, so it is stopped.
    let mut process = site.start("run late.yaml --run r");
    until("a run", || site.any("show r").0 == 0);
    process.kill();
    site.wait_for_no_holder();
    std::thread::sleep(Duration::from_millis(1_600));
    let legal = site.run("legal r");
    let (warning, rest) = legal.split_once('\n').unwrap();
    assert!(warning.starts_with("overdue since 20") && warning.contains("fires before the next event"), "{legal}");
    assert!(rest.starts_with("GO by clerk"), "{legal}");
    let shown = site.run("show r");
    assert!(shown.contains(&format!("\nlegal    {warning}\n         GO by clerk")), "{shown}");
    let line: serde_json::Value = serde_json::from_str(site.run("legal r --json").trim()).unwrap();
    assert!(line["overdue"].as_str().unwrap().starts_with("20"), "{line}");
    // It is so.
    let (code, _, err) = site.any("send r GO --role clerk");
    assert!(code == 1 && err.contains("refused (finished)"), "{err}");
}

#[test]
fn an_answer_in_a_paused_run_is_refused_whatever_names_the_task() {
    let site = desk("told-paused");
    let paused = site.any("send w charter.pause --role operator");
    assert!(paused.0 == 0 && !paused.2.contains("look"), "nothing was started: {paused:?}");
    let shown = site.run("show w");
    assert!(
        shown.contains("\ntask     Look at the books by clerk, look since record 0; it can be answered once"),
        "{shown}"
    );
    for task in ["w", "w/0/0"] {
        let (code, _, err) = site.any(&format!("answer {task} {{\"verdict\":\"good\"}} --as ana --role clerk"));
        let why = "refused (paused): task `w/0/0` cannot be answered now: run `w` is paused; `charter send w charter.resume --as ana --role operator` ends the pause\n";
        assert_eq!((code, err.as_str()), (1, why));
    }
    let resumed = site.any("send w charter.resume --role operator");
    assert!(resumed.0 == 0 && !resumed.2.contains("look"), "it was open before: {resumed:?}");
    site.run("answer w {\"verdict\":\"good\"} --as ana --role clerk");
}

#[test]
fn an_answer_by_somebody_who_may_not_is_a_refusal() {
    let site = desk("told-refused");
    let check = || {
        let (code, _, err) = site.any("answer w {\"verdict\":\"good\"} --as cl --role chief");
        assert!(code == 1 && err.starts_with("refused (authority): ") && err.contains("roles clerk"), "{err}");
        let (code, _, err) = site.any("answer w {\"verdict\":\"good\"} --as bot --role clerk --kind agent");
        assert!(code == 1 && err.starts_with("refused (authority, rule persons-only): "), "{err}");
        let (code, out, _) = site.any("answer w {\"verdict\":\"good\"} --as bot --role clerk --kind agent --json");
        let said: serde_json::Value = serde_json::from_str(&out).unwrap();
        let refusal = &said["refusal"];
        assert_eq!((code, &refusal["code"], &refusal["rule"]), (1, &"authority".into(), &"persons-only".into()));
    };
    check();
    // The same from the process that has the journal open.
    let _holder = on_terminal(&site, "run --resume w");
    site.holder();
    check();
    assert_eq!(site.records("w").len(), 1);
}

#[test]
fn legal_suggests_commands_for_the_given_person() {
    let site = desk("told-legal");
    site.0.file(
        "only.yaml",
        DESK.replace(
            "on: {NOTE: {actions: {assign: {notes: '= context.notes + [event.text, event.grade]'}}}}",
            "on: {}",
        ),
    );
    site.run("run only.yaml --run o");
    let (code, out, _) = site.any("legal o --as cl --role clerk");
    assert!(code == 1 && out.contains(" --as cl --role clerk`"), "{out}");
    let (_, out, _) = site.any("legal o --as ed --role chief");
    assert!(out.contains(" --as ed --role clerk`"), "{out}");
}

#[test]
fn ctrl_d_goes_back_to_the_choices_and_no_word_does() {
    let scratch = Scratch::new("told-back");
    let file = scratch.file("desk.yaml", DESK);
    let db = scratch.0.join("charter.db").display().to_string();
    // A line without an end is what Ctrl-D leaves.
    let ran = charter_typed(&["run", &file, "--run", "a", "--db", &db], "3\nq", None);
    assert_eq!(ran.err.matches("What next?").count(), 2, "{}", ran.err);
    assert!(ran.err.contains("Ctrl-D goes back to the choices\n  reason (text): "), "{}", ran.err);
    assert!(ran.out.starts_with("a: active in looking, 1 record\n"), "{}", ran.out);
    let ran = charter_typed(&["run", "--resume", "a", "--db", &db], "3\nq\n", None);
    assert!(ran.out.starts_with("a: done in declined, 2 records\n"), "{}", ran.out);
}

#[test]
fn a_value_of_an_enum_is_typed_or_chosen_by_number() {
    let scratch = Scratch::new("told-enum");
    let file = scratch.file("desk.yaml", DESK);
    let db = scratch.0.join("charter.db").display().to_string();
    let typed = "NOTE\none\n2\nNOTE\ntwo\ngood\nNOTE\nthree\n3\nfair\nbad\nq\n";
    let ran = charter_typed(&["run", &file, "--run", "a", "--db", &db], typed, None);
    assert!(ran.err.contains("grade (1 good, 2 bad; type a value or its number): "), "{}", ran.err);
    let shown = crate::support::charter(&["show", "a", "--db", &db]).out;
    assert!(shown.contains(r#"["one","bad","two","good","three","bad"]"#), "{shown}");
}

#[test]
fn a_paused_run_ends_the_prompt_and_says_how_to_go_on() {
    let site = desk("told-prompt");
    let mut prompt = on_terminal(&site, "run --resume w");
    site.holder();
    std::thread::sleep(Duration::from_millis(500));
    site.run("send w charter.pause --role operator");
    until("end of the prompt", || !prompt.is_running());
    let (_, out, _) = prompt.end();
    assert!(out.contains("the run has moved on; it is paused"), "{out}");
    let resumed = on_terminal(&site, "run --resume w");
    let (code, again, _) = resumed.end();
    assert!(code == 0 && again.starts_with("w is paused: desk"), "{again}");
    for out in [out, again] {
        assert!(out.contains("paused since 20") && out.contains("to continue: charter send w charter.resume"), "{out}");
    }
}

#[test]
fn legal_lists_what_a_condition_allows_to_one_person() {
    let scratch = Scratch::new("legal-one");
    let file = scratch.file(
        "own.yaml",
        "
charter: 1
id: own
context: {owner: ana}
events: {A: {}, B: {}, C: {}, Z: {}}
states:
  s: {on: {A: {when: by.id == context.owner}, B: {when: \"by.id.startsWith('a')\"}, C: {when: \"by.id != 'ana'\"}}}
",
    );
    let db = scratch.0.join("charter.db").display().to_string();
    let ran = charter(&["run", &file, "--run", "r", "--as", "ana", "--db", &db]);
    assert!(ran.out.contains("charter send r A ") && ran.out.contains("charter send r B "), "{}", ran.out);
    let legal = |who: &str| charter(&["legal", "r", "--as", who, "--db", &db]).out;
    assert_eq!(legal("ana"), "A by ana\nB by ana\nnot C: `by.id != 'ana'` does not hold\n");
    let others =
        "C by anyone\nnot A: `by.id == context.owner` does not hold\nnot B: `by.id.startsWith('a')` does not hold\n";
    assert_eq!(legal("bo"), others);
    // Nobody in particular.
    assert_eq!(charter(&["legal", "r", "--db", &db]).out, others);
    let sent = charter(&["send", "r", "A", "--as", "ana", "--db", &db]);
    assert_eq!(sent.code, 0, "{}{}", sent.out, sent.err);
}

const STRICT: &str = "
charter: 1
id: strict
strict: true
context: {share: 0}
actors: {work: {kind: exec, command: ['false']}}
states:
  working:
    invoke:
      src: work
      onDone: done
      onError: {target: done, actions: {assign: {share: '= 1 / context.share'}}}
  done: {type: final}
";

#[test]
fn a_run_whose_answer_and_failure_were_refused_is_not_waited_for() {
    let site = Site::new("told-refused-twice", &[("strict.yaml", STRICT.to_owned())]);
    // Ends by itself, instead of waiting for an answer that nobody will give.
    let (exit, out, err) = site.any("run strict.yaml --run r");
    assert_eq!(exit, 0, "{out}{err}");
    assert!(err.contains("the run refuses both the answer of `work` and its failure"), "{err}");
    assert!(out.contains("no attempt of work is under way; resuming the run starts one"), "{out}");
    assert!(out.contains("to resume: charter run --resume r"), "{out}");
}

const BOARD: &str = "
charter: 1
id: board
roles: {director: {}}
events: {VOTE: {by: director, data: {type: object, required: [verdict], properties: {verdict: {enum: [go, stop]}, limit: {type: integer}}}}}
initial: voting
states:
  voting:
    on: {VOTE: [{when: event.verdict == 'go', target: paying, quorum: {count: 2, of: director}}, {target: rejected}]}
  paying: {type: final}
  rejected: {type: final}
";

#[test]
fn after_a_vote_the_printed_command_is_the_vote_of_somebody_else_for_the_same_data() {
    let site = Site::new("told-votes", &[("board.yaml", BOARD.to_owned())]);
    site.run("run board.yaml --run b");
    let (code, out, err) = said(
        site.command("send b VOTE")
            .arg(r#"{"verdict":"go","limit":500}"#)
            .args(["--as", "dan"])
            .args(["--role", "director"])
            .output()
            .unwrap(),
    );
    assert_eq!(code, 0, "{err}");
    let printed = r#"charter send b VOTE '{"limit":500,"verdict":"go"}' --as somebody-else --role director"#;
    assert!(out.contains(printed), "{out}");
    assert!(out.contains(r#"votes are for {"limit":500,"verdict":"go"}"#), "{out}");
    assert!(site.run("show b").contains(r#"votes are for {"limit":500"#));
    let own = site.run("legal b --as dan --role director");
    assert!(own.starts_with("VOTE (1 of 2 votes (dan)"), "{own}");
    assert!(own.contains("; you have voted; other data is another vote)"), "{own}");
    assert!(site.run("legal b --as eve --role director").starts_with("VOTE (1 of 2 votes (dan)"));
}

const ASKED: &str = "
charter: 1
id: asked
events:
  NAME: {data: {type: object, required: [name], properties: {a: {type: integer}, name: {type: string}}}}
actors: {who: {kind: human, title: A word, output: {type: string}}}
context: {name: null}
initial: open
states:
  open: {on: {NAME: {target: asking, actions: {assign: {name: '= event.name'}}}}}
  asking: {invoke: {src: who, onDone: {target: done, actions: {assign: {name: '= [context.name, event.output]'}}}}}
  done: {type: final, output: '= context.name'}
";

#[test]
fn enter_alone_is_no_answer_and_text_is_typed_as_it_is() {
    let scratch = Scratch::new("told-enter");
    let file = scratch.file("asked.yaml", ASKED);
    let db = scratch.0.join("charter.db").display().to_string();
    let run = |id: &str, typed: &str| charter_typed(&["run", &file, "--run", id, "--db", &db], typed, None);
    // Enter at the name, and at the answer; the optional number comes last.
    let ran = run("a", "1\n\n\"q\"\n\n1\n\n42\n");
    assert_eq!(
        ran.err.matches("must not be empty; `\"\"` is an empty text; Ctrl-D goes back").count(),
        2,
        "{}",
        ran.err
    );
    assert!(ran.err.contains("  name (text): ") && ran.err.contains("  answer (text): "), "{}", ran.err);
    assert!(ran.err.contains("  a (integer, optional: Enter leaves it out): "), "{}", ran.err);
    assert!(ran.err.find("  name (").unwrap() < ran.err.find("  a (").unwrap(), "what is required comes first");
    assert!(ran.out.starts_with("a: done in done, 3 records\n"), "{}{}", ran.out, ran.err);
    let shown = crate::support::charter(&["show", "a", "--db", &db]).out;
    assert!(shown.contains(r#"["\"q\"","42"]"#), "{shown}");
    let ran = run("b", "1\n\"\"\n\n1\nnull\n");
    let shown = crate::support::charter(&["show", "b", "--db", &db]).out;
    assert!(shown.contains(r#"["","null"]"#), "{shown}{}", ran.err);
}

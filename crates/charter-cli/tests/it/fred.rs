//! `charter run fred` without a terminal: the first session, a review, memory across sessions, and
//! the queries of docs/fred.md.

use std::path::Path;

use crate::support::{Ran, Scratch, charter};

const QUESTION: &str = r#"{"userId":"u1","message":"Should we raise prices by 20 % for new customers?"}"#;
const SURE: &str = r#"{"userId":"u1","message":"Should we run a small experiment with two customers?"}"#;

fn at(db: &Path, args: &[&str]) -> Ran {
    let db = db.to_str().unwrap();
    charter(&[args, &["--db", db]].concat())
}

fn begin(db: &Path, run: &str, input: &str, more: &[&str]) -> Ran {
    let args = ["run", "fred", "--run", run, "--model", "offline", "--input", input];
    at(db, &[&args, more].concat())
}

/// Removes the path of the test and all times.
fn plain(text: &str, db: &Path) -> String {
    let text = text.replace(&format!(" --db {}", db.display()), "");
    let text = text.replace(&format!(" {}", db.display()), "");
    let line = |line: &str| match line.split_once(", due ") {
        Some((before, _)) => format!("{before}, due [..]"),
        None => {
            let (command, what) = line.split_once("  # ").unwrap_or((line, ""));
            match what {
                "" => line.to_owned(),
                what => format!("{}  # {what}", command.trim_end()),
            }
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

fn digest(out: &str) -> String {
    let (_, rest) = out.split_once(r#"{"digest":""#).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

const WAITING: &str = r#"r1: active in human_review, 6 records
  Question   Should we raise prices by 20 % for new customers?
  Seen as    - first_principles: offline: not analyzed; ask yourself: Which of your reasons would
               hold if nobody else did it this way?
             - swot: offline: not analyzed; ask yourself: What would the strongest competitor do on
               the day after?
             - jobs_to_be_done: offline: not analyzed; ask yourself: What do customers stop paying
               for when they pay for this?
             - pre_mortem: offline: not analyzed; ask yourself: If it went wrong, what was the first
               sign, and who saw it?
  Decision   Try it on a small part first, with a date on which you look at the result.
  Verdict    recommend, confidence 0.6, a person has to approve it
  Reasoning  Offline rules, not intelligence: no model was asked. Factors are 0.5 but for keywords
             (price, customer); there are no earlier decisions.
  Factors    composite           ████████████░░░░░░░░  0.60
             leverage            ██████████████░░░░░░  0.70
             relationships       ████████░░░░░░░░░░░░  0.40
             revenue             ████████████████░░░░  0.80
             risk                ██████████░░░░░░░░░░  0.50
             speed               ████████████████░░░░  0.80
             strategicAlignment  ██████████░░░░░░░░░░  0.50
             time                ██████████░░░░░░░░░░  0.50
  Instead    - option: Leave everything as it is; whyNot: Offline rules do not weigh alternatives.
Waiting
  for HUMAN_APPROVED by reviewer  charter send r1 HUMAN_APPROVED '{"digest":"sha256:0d40b8bd235183b3eddd26e09cd55a61481b3994cd72cf4fbc393e2a20354549"}' --as me --role reviewer --model offline
  for HUMAN_REJECTED by reviewer  charter send r1 HUMAN_REJECTED '{"feedback":"..."}' --as me --role reviewer --model offline
  for the timer human_review/after/reviewDeadline, due [..]
  to resume: charter run --resume r1 --model offline
charter log r1  # list the records of the run
charter explain r1 5  # explain the last record
charter verify  # check that no record was altered"#;

#[test]
fn the_first_session() {
    let scratch = Scratch::new("fred");
    let db = scratch.0.join("charter.db");
    let ran = begin(&db, "r1", QUESTION, &[]);
    assert_eq!((ran.code, plain(&ran.out, &db).as_str()), (0, WAITING));
    let states: Vec<&str> = ran.err.lines().filter(|l| l.contains('→')).collect();
    assert_eq!(
        states,
        [
            "  idle → intake  recall done",
            "  intake → mental_models  validateInput done",
            "  mental_models → synthesis  applyMentalModels done",
            "  synthesis → decide  synthesize done",
            "  decide → human_review  decide done",
        ]
    );
    assert!(ran.err.contains("offline: no model is called"), "{}", ran.err);

    // Run the commands that the report suggests.
    let first = digest(&ran.out);
    let rejected = at(
        &db,
        &["send", "r1", "HUMAN_REJECTED", r#"{"feedback":"name the segment"}"#, "--as", "ana", "--role", "reviewer"],
    );
    assert_eq!(rejected.code, 0, "{}", rejected.err);
    assert!(rejected.out.contains("Overruled  - ana: name the segment"), "{}", rejected.out);
    let second = digest(&rejected.out);
    assert_ne!(first, second);
    let approve = |digest: &str| {
        let data = format!(r#"{{"digest":"{digest}"}}"#);
        at(&db, &["send", "r1", "HUMAN_APPROVED", &data, "--as", "ana", "--role", "reviewer"])
    };
    // An approval covers the current decision, not an earlier one.
    let stale = approve(&first);
    assert_eq!(stale.code, 1);
    assert!(stale.err.contains("refused (stale)"), "{}", stale.err);
    let approved = approve(&second);
    assert_eq!(approved.code, 0, "{}", approved.err);
    assert!(approved.out.contains("r1: done in complete"), "{}", approved.out);
    assert!(approved.out.contains(&format!("Approved   by ana, exactly {second}")), "{}", approved.out);
    for args in [&["log", "r1"][..], &["explain", "r1", "5"], &["show", "r1"]] {
        assert_eq!(at(&db, args).code, 0, "{args:?}");
    }
    assert_eq!(charter(&["verify", db.to_str().unwrap()]).code, 0);
}

#[test]
fn memory_and_the_queries_of_the_page() {
    let scratch = Scratch::new("fred");
    let db = scratch.0.join("charter.db");
    // A confident decision without an earlier overruling needs no review.
    let ran = begin(&db, "r1", SURE, &[]);
    assert!(ran.out.contains("r1: done in complete"), "{}", ran.out);
    assert!(!ran.out.contains("Remembers"), "{}", ran.out);
    // A run that is overruled five times in a row fails; a run that is overruled once and then
    // approved is remembered.
    let ran = begin(&db, "r2", QUESTION, &["--no"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("rejection-limit"), "{}", ran.out);
    begin(&db, "r3", QUESTION, &[]);
    let no = ["send", "r3", "HUMAN_REJECTED", r#"{"feedback":"when?"}"#, "--as", "bo", "--role", "reviewer"];
    at(&db, &no);
    at(&db, &["run", "--resume", "r3", "--yes"]);
    // The decision is as confident as in `r1`, but the rejection remembered from `r3` now requires
    // a review by a person.
    let ran = begin(&db, "r4", SURE, &[]);
    assert!(ran.out.contains("r4: active in human_review"), "{}", ran.out);
    assert!(ran.out.contains("(overruled: 1)"), "{}", ran.out);
    // Memory is separate for each user.
    let other = begin(&db, "r5", &SURE.replace("u1", "u2"), &[]);
    assert!(other.out.contains("r5: done in complete"), "{}", other.out);

    let page = include_str!("../../../../docs/fred.md");
    let asked = page.split("```sql\n").skip(1).map(|block| {
        // A leading SQL comment is not an option.
        let sql = format!("-- asked\n{}", block.split("```").next().unwrap());
        let ran = charter(&["sql", db.to_str().unwrap(), &sql]);
        assert_eq!(ran.code, 0, "{sql}{}", ran.err);
        let lines = ran.out.lines();
        lines.map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    });
    let asked: Vec<Vec<String>> = asked.collect();
    assert_eq!(asked[0][1], "8 7 0");
    assert_eq!(asked[1][1..], ["0.6 8 0.13 -0.47"]);
    assert_eq!(asked[2][1], "2 1");
    assert_eq!(asked[3].len(), 3, "{:?}", asked[3]);
    assert!(asked[3][2].ends_with("recommend me 1"), "{:?}", asked[3]);
    assert_eq!(asked[4][7], "r3 bo when?");
    assert_eq!(asked[5][1..], ["bo 1 0.0", "me 7 0.0"]);
}

#[test]
fn missing_information_is_requested() {
    let scratch = Scratch::new("fred");
    let db = scratch.0.join("charter.db");
    let ran = begin(&db, "r1", r#"{"userId":"u1","message":"price?"}"#, &[]);
    assert!(ran.out.contains("Missing   - That is short"), "{}", ran.out);
    let how = r#"send r1 START '{"input":{"message":"..."}}' --as me --role founder"#;
    assert!(ran.out.contains(how), "{}", ran.out);
    // On a terminal, the user types the number of the choice, then the required properties.
    let args = ["run", "--resume", "r1", "--model", "offline", "--db", db.to_str().unwrap()];
    let ran = crate::support::charter_typed(&args, "1\nShould the small plan cost 20 % more?\nq\n", None);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("  input.message (text): "), "{}", ran.err);
    assert!(ran.err.contains("decide → human_review"), "{}", ran.err);
}

#[test]
fn invalid_input_is_rejected_before_the_start() {
    let scratch = Scratch::new("fred");
    let db = scratch.0.join("charter.db");
    for (input, said) in [
        (r#"{"userId":7}"#, "at `/userId`: 7 is not of type \"string\""),
        ("{}", "\"userId\" is a required property"),
        (r#"{"userId":"u1","message":" "}"#, "does not match"),
        ("[1]", "is not of type \"object\""),
        ("{", "`--input` is not valid JSON"),
    ] {
        let ran = begin(&db, "r1", input, &[]);
        let mut err = ran.err.into_bytes();
        // Print errors as the binary does.
        assert_eq!(ran.code, 2, "{input}");
        err.extend(ran.out.into_bytes());
        let all = String::from_utf8(err).unwrap();
        assert!(all.contains(said), "{input}: {all}");
    }
    assert!(!db.exists());
}

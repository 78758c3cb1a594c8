//! What helps somebody who meets Charter for the first time: printed commands that work, and
//! messages that say what to do.

use crate::support::{Ran, Scratch, charter, charter_typed};

const SHOP: &str = r#"
charter: 1
id: shop
roles: {director: {}, clerk: {}}
events:
  APPROVE: {by: director, data: {type: object}}
  ORDER:
    by: clerk
    unique: {key: "event.data.number"}
    data: {type: object, required: [number, code], properties: {number: {type: string}, code: {type: string}}}
  MIX:
    by: clerk
    data:
      type: object
      required: [tags, kind, way]
      properties:
        tags: {type: array, minItems: 3, uniqueItems: true, items: {enum: [a, b, c]}}
        kind: {const: x}
        way: {oneOf: [{type: object, required: [a], properties: {a: {type: integer}}}, {const: 2}]}
  HARD:
    by: clerk
    data: {type: object, required: [n], properties: {n: {type: string, pattern: '^(?:ab){7}c[0-9]{3}$', not: {pattern: 'abc'}}}}
initial: a
context: {n: 0}
states:
  a: {on: {APPROVE: {target: a, when: "context.n > 5"}, ORDER: b, MIX: c, HARD: d}}
  b: {}
  c: {type: final}
  d: {type: final}
"#;

fn suggested(printed: &str, event: &str) -> Vec<String> {
    let line = printed.lines().find(|l| l.contains(&format!("for {event} "))).unwrap_or_else(|| panic!("{printed}"));
    let (_, command) = line.split_once("  charter ").unwrap_or_else(|| panic!("{line}"));
    let mut words = Vec::new();
    for (i, part) in command.split('\'').enumerate() {
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn run(words: &[String]) -> Ran {
    charter(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn printed_data_fits_and_differs_per_run_where_a_key_is_unique() {
    let scratch = Scratch::new("steps-data");
    let (file, db) = (scratch.file("shop.yaml", SHOP), scratch.0.join("x.db").display().to_string());
    for name in ["one", "two"] {
        let started = charter(&["run", &file, "--db", &db, "--run", name]);
        let ran = run(&suggested(&started.out, "ORDER"));
        assert_eq!(ran.code, 0, "{}{}\n{}", ran.out, ran.err, started.out);
    }
    let started = charter(&["run", &file, "--db", &db, "--run", "three"]);
    let again = charter(&["run", "--resume", "three", "--db", &db]);
    let order = |printed: &str| suggested(printed, "ORDER");
    assert_eq!(order(&started.out)[3], order(&again.out)[3]);
    assert_eq!(order(&started.out)[3], r#"{"code":"...","number":"three"}"#);
    let ran = run(&suggested(&started.out, "MIX"));
    assert_eq!(ran.code, 0, "{}{}\n{}", ran.out, ran.err, started.out);
}

/// Orders that one run takes again and again.
const MARKET: &str = r#"
charter: 1
id: market
events:
  TEXT: {data: {type: object, required: [n], properties: {n: {type: string}}}, unique: {key: event.n}}
  CODE: {data: {type: object, required: [n], properties: {n: {type: string, pattern: '^A-[0-9]{4}$'}}}, unique: {key: event.n}}
  DIGIT: {data: {type: object, required: [n], properties: {n: {type: integer, minimum: 0, maximum: 9}}}, unique: {key: event.n}}
  ONE_OF: {data: {type: object, required: [n], properties: {n: {enum: [x, y, z]}}}, unique: {key: event.n}}
  EITHER: {data: {type: object, required: [n], properties: {n: {type: boolean}}}, unique: {key: event.n}}
states: {open: {on: {TEXT: {}, CODE: {}, DIGIT: {}, ONE_OF: {}, EITHER: {}}}}
"#;

#[test]
fn each_printed_example_of_a_run_has_a_key_that_is_free() {
    let scratch = Scratch::new("steps-keys");
    let (file, db) = (scratch.file("market.yaml", MARKET), scratch.0.join("x.db").display().to_string());
    let mut printed = charter(&["run", &file, "--db", &db, "--run", "one"]).out;
    for (event, times) in [("TEXT", 5), ("CODE", 5), ("DIGIT", 10), ("ONE_OF", 3), ("EITHER", 2)] {
        for n in 0..times {
            let ran = run(&suggested(&printed, event));
            assert_eq!(ran.code, 0, "{event} {n}: {}{}\n{printed}", ran.out, ran.err);
            printed = ran.out;
        }
    }
    // Nothing is left that would be accepted.
    assert!(printed.contains("(no example was found: send `EITHER`"), "{printed}");
    // Another run does not take what the first one has.
    let other = charter(&["run", &file, "--db", &db, "--run", "two"]);
    assert!(other.out.contains("(no example was found: send `ONE_OF`"), "{}", other.out);
    assert_eq!(run(&suggested(&other.out, "CODE")).code, 0, "{}", other.out);
}

#[test]
fn check_explores_what_has_an_example_and_says_what_has_none() {
    let scratch = Scratch::new("steps-check");
    let checked = charter(&["check", &scratch.file("shop.yaml", SHOP)]);
    assert!(!checked.out.contains("for `MIX`") && !checked.out.contains("a/on/MIX"), "{}", checked.out);
    let message = "`a/on/HARD/0` was not taken: no data could be generated for `HARD`";
    assert!(checked.out.contains(message), "{}", checked.out);
}

#[test]
fn messages_say_what_to_do_next() {
    let scratch = Scratch::new("steps-next");
    let (file, db) = (scratch.file("shop.yaml", SHOP), scratch.0.join("x.db").display().to_string());
    charter(&["run", &file, "--db", &db, "--run", "one"]);
    let ran = charter(&["send", "one", "ORDER", r#"{"number":"1","code":"x"}"#, "--as", "dora", "--db", &db]);
    assert!(ran.code == 1 && ran.err.contains("help: add `--role clerk`"), "{}{}", ran.out, ran.err);
    let ran = charter(&["explain", "one", "--db", &db]);
    assert!(ran.code == 2 && ran.err.contains("`charter explain one SEQ`"), "{}", ran.err);
    let ran = charter(&["verify", "--server", "http://127.0.0.1:1", "--db", &db]);
    assert!(ran.code == 2 && ran.err.contains("`charter verify` works on a journal file"), "{}", ran.err);
    let prices = scratch.file("models.toml", "[prices.\"a:b\"]\ninput = 0.25\noutput = \"1\"\n");
    let ran = charter(&["run", &file, "--models", &prices, "--db", &db, "--run", "two"]);
    assert!(ran.code == 2 && ran.err.contains("write `\"0.25\"`"), "{}{}", ran.out, ran.err);
    charter(&["send", "one", "charter.cancel", "--as", "me", "--role", "operator", "--db", &db]);
    let ran = charter_typed(&["delete", "one", "--reason", "x", "--db", &db], "nope\n", None);
    assert!(ran.code == 1 && ran.err.contains("nothing was deleted"), "{}{}", ran.out, ran.err);
}

/// The data that was voted for has a key that another run takes meanwhile.
#[test]
fn a_printed_vote_has_a_key_that_is_free() {
    let scratch = Scratch::new("steps-vote");
    let text = "charter: 1
id: votes
roles: {boss: {}}
events: {PAY: {by: boss, data: {type: object, required: [n], properties: {n: {enum: [x, y, z]}}}, unique: {key: event.n}}}
initial: open
states: {open: {on: {PAY: {target: paid, quorum: {count: 2, of: boss}}}}, paid: {type: final}}
";
    let (file, db) = (scratch.file("votes.yaml", text), scratch.0.join("x.db").display().to_string());
    let vote = |run: &str, who: &str| {
        let ran = charter(&["send", run, "PAY", r#"{"n":"x"}"#, "--as", who, "--role", "boss", "--db", &db]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        ran.out
    };
    for name in ["one", "two", "three"] {
        charter(&["run", &file, "--db", &db, "--run", name]);
    }
    let voted = vote("two", "bea");
    assert_eq!(suggested(&voted, "PAY")[3], r#"{"n":"x"}"#, "{voted}");
    vote("one", "bea");
    vote("one", "cal");
    let again = charter(&["run", "--resume", "two", "--db", &db]).out;
    assert!(again.contains("  # another vote: the unique key of the data voted for so far is taken"), "{again}");
    let first = charter(&["run", "--resume", "three", "--db", &db]).out;
    for printed in [again, first] {
        let mut words = suggested(&printed, "PAY");
        words.truncate(words.iter().position(|word| word == "#").unwrap_or(words.len()));
        assert_eq!(words[3], r#"{"n":"y"}"#, "{printed}");
        let ran = run(&words);
        assert_eq!(ran.code, 0, "{words:?} {}{}", ran.out, ran.err);
    }
}

//! Every command that is printed works when it is pasted into a shell.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::Scratch;
use crate::support::processes::{Site, on_terminal, said, until};

const PAYMENT: &str = "
charter: 1
id: payment
roles: {clerk: {}, controller: {}}
events:
  REQUEST: {by: clerk, data: {type: object, required: [amount], properties: {amount: {type: number, minimum: 0}}}}
  APPROVE: {by: controller}
  REJECT: {by: controller, data: {$ref: '#/types/Reason'}}
types: {Reason: {type: object, required: [reason], properties: {reason: {type: string, minLength: 5}}}}
context: {payment: null, clerk: null, reason: null}
initial: open
states:
  open:
    on:
      REQUEST: {target: review, actions: {assign: {payment: '= event.data', clerk: '= by.id'}}}
  review:
    on:
      APPROVE: {target: paid, approves: {value: context.payment, not_by: context.clerk}}
      REJECT: {target: open, actions: {assign: {reason: '= event.reason'}}}
    after: {20m: expired}
  paid: {type: final}
  expired: {type: final}
";

const BOARD: &str = "
charter: 1
id: board
roles: {director: {}, clerk: {}}
events:
  PLAN: {by: director, data: {type: object, required: [digest], properties: {digest: {type: string}, note: {type: string}}}}
  STOP: {by: [director, clerk], data: {type: object, maxProperties: 0}}
  BOTH: {by: clerk}
context: {plan: {budget: 12}, owner: me}
initial: open
states:
  open:
    on:
      PLAN: {target: agreed, approves: {value: context.plan, not_by: context.owner}, quorum: {count: 2, of: director}}
      STOP: stopped
      BOTH: {by: director, actions: []}
  agreed: {type: final}
  stopped: {type: final}
";

const DESK: &str = "
charter: 1
id: desk
roles: {clerk: {}}
actors:
  look:
    kind: human
    title: Look at the books
    by: clerk
    output:
      type: object
      required: [verdict, amount]
      properties: {verdict: {enum: [good, bad]}, amount: {type: integer, minimum: 3}}
  fails: {kind: exec, command: ['false']}
context: {answer: null, error: null}
initial: looking
states:
  looking:
    invoke:
      src: look
      onDone: {target: done, actions: {assign: {answer: '= event.output'}}}
      onError: {target: failing, actions: {assign: {error: '= event.error'}}}
  failing:
    invoke: {src: fails, onDone: done}
  done: {type: final}
";

pub(crate) struct Shell {
    pub(crate) site: Site,
    copies: Scratch,
}

impl Shell {
    pub(crate) fn new(name: &str) -> Shell {
        let charters = [("payment.yaml", PAYMENT), ("board.yaml", BOARD), ("desk.yaml", DESK)];
        let charters = charters.map(|(name, text)| (name, text.to_owned()));
        Shell { site: Site::new(name, &charters), copies: Scratch::new(name) }
    }

    /// Runs a command in a shell, in a folder.
    fn sh(&self, folder: &Path, command: &str) -> (i32, String, String) {
        let mut sh = self.site.command("");
        let bin = Path::new(env!("CARGO_BIN_EXE_charter")).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.env("PATH", format!("{bin}:{path}")).args(["-c", command]).current_dir(folder);
        for (name, value) in sh.stdin(std::process::Stdio::null()).get_envs() {
            if value.is_none() {
                shell.env_remove(name);
            }
        }
        said(shell.stdin(std::process::Stdio::null()).output().unwrap())
    }

    pub(crate) fn here(&self, command: &str) -> (i32, String, String) {
        self.sh(&self.site.0.0, command)
    }

    /// Pastes each printed command into a copy of the folder; returns the commands and what they
    /// printed.
    pub(crate) fn paste(&self, printed: &[(i32, String, String)]) -> Vec<(String, i32, String)> {
        let mut commands: Vec<String> = printed
            .iter()
            .flat_map(|(_, out, err)| format!("{out}{err}").lines().flat_map(commands).collect::<Vec<_>>())
            .collect();
        commands.sort();
        commands.dedup();
        let pasted = commands.into_iter().enumerate().map(|(number, command)| {
            let copy = self.copies.0.join(format!("{number}-{}", self.copies.0.read_dir().unwrap().count()));
            fs::create_dir(&copy).unwrap();
            for file in fs::read_dir(&self.site.0.0).unwrap().map(|file| file.unwrap().path()) {
                if file.is_file() {
                    fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
                }
            }
            let (code, out, err) = self.sh(&copy, &command);
            assert_ne!(code, 2, "{command}\n{out}{err}");
            (command, code, out + &err)
        });
        pasted.collect()
    }
}

/// Finds the commands in a line: until the backtick, or to the end or the comment of the line.
fn commands(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("charter ") {
        let (before, rest) = line.split_at(at);
        let word = rest.split_whitespace().nth(1).unwrap_or_default();
        if !["send", "answer", "run", "show", "log", "explain", "verify", "legal", "runs"].contains(&word) {
            continue;
        }
        let end = match before.ends_with('`') {
            true => rest.find('`'),
            false => rest.find("  #"),
        };
        let command = rest[..end.unwrap_or(rest.len())].trim().to_owned();
        // `charter run CHARTER` is a pattern, not a command.
        if !command.contains(" CHARTER") {
            found.push(command);
        }
    }
    found
}

/// The results of the pasted commands that contain a text; there must be some.
fn of<'p>(pasted: &'p [(String, i32, String)], text: &str) -> Vec<&'p (String, i32, String)> {
    let found: Vec<_> = pasted.iter().filter(|(command, ..)| command.contains(text)).collect();
    assert!(!found.is_empty(), "no `{text}` in {pasted:#?}");
    found
}

fn all_do(pasted: &[(String, i32, String)], text: &str, does: &str) {
    for (command, code, said) in of(pasted, text) {
        assert_eq!(*code, 0, "{command}\n{said}");
        assert!(said.contains(does), "{command}\n{said}");
    }
}

#[test]
fn an_approval_that_this_person_may_not_give_names_somebody_who_may() {
    let shell = Shell::new("paste-approval");
    let started = shell.here("charter run payment.yaml --run p");
    let pasted = shell.paste(std::slice::from_ref(&started));
    all_do(&pasted, "REQUEST", "open → review");
    let sent = shell.here("charter send p REQUEST '{\"amount\": 1200}' --as ana --role clerk");
    assert!(sent.1.contains("APPROVE by controller (not by ana)"), "{}", sent.1);
    let shown = [sent, shell.here("charter show p"), shell.here("charter legal p"), shell.here("charter runs")];
    assert!(shown[1].1.contains("(not by ana)") && shown[2].1.contains("needs the digest sha256:"), "{shown:#?}");
    let pasted = shell.paste(&shown);
    all_do(&pasted, "APPROVE", "review → paid");
    all_do(&pasted, "REJECT", "review → open");
    // The one who requested it is told how to go on.
    let refused = shell.here("charter send p APPROVE '{\"digest\": \"\"}' --as ana --role controller");
    assert_eq!(refused.0, 1);
    all_do(&shell.paste(&[refused, shell.here("charter run --resume p --as ana --yes")]), "APPROVE", "review → paid");
}

#[test]
fn a_timer_that_nobody_fires_is_overdue() {
    let shell = Shell::new("paste-overdue");
    shell.site.0.file("payment.yaml", PAYMENT.replace("20m", "3s"));
    shell.here("charter run payment.yaml --run p");
    shell.here("charter send p REQUEST '{\"amount\": 1200}' --as ana --role clerk");
    // Longer than the commands above take on a slow machine.
    std::thread::sleep(Duration::from_millis(3_100));
    let late = [shell.here("charter show p"), shell.here("charter runs")];
    assert!(late[0].1.contains("overdue since") && late[1].1.contains("overdue since"), "{late:#?}");
    all_do(&shell.paste(&late), "run --resume", "p: done in expired");
}

#[test]
fn votes_are_counted_and_the_next_one_is_by_somebody_else() {
    let shell = Shell::new("paste-quorum");
    let started = shell.here("charter run board.yaml --run b");
    assert!(started.1.contains("PLAN by director (needs 2 votes; not by me)"), "{}", started.1);
    assert!(["clerk and director", "director and clerk"].iter().any(|both| started.1.contains(both)), "{}", started.1);
    let pasted = shell.paste(std::slice::from_ref(&started));
    all_do(&pasted, " PLAN ", "vote");
    all_do(&pasted, " STOP ", "open → stopped");
    all_do(&pasted, " BOTH ", "accepted");
    let (vote, ..) = of(&pasted, " PLAN ")[0];
    assert_eq!(shell.here(vote).0, 0, "{vote}");
    let shown = [shell.here("charter run --resume b"), shell.here("charter legal b"), shell.here("charter show b")];
    for (_, out, _) in &shown {
        assert!(out.contains("1 of 2 votes (somebody-else); needs another director"), "{out}");
    }
    let pasted = shell.paste(&shown);
    all_do(&pasted, " PLAN ", "open → agreed");
    assert!(of(&pasted, " PLAN ")[0].0.contains("--as somebody-else-2 "));
    let legal = |who: &str| shell.here(&format!("charter legal b --as {who} --role director")).1;
    assert!(legal("bea").starts_with("PLAN"), "{}", legal("bea"));
    for (who, why) in [("somebody-else", "somebody-else has voted"), ("me", "not by me")] {
        assert!(legal(who).contains(&format!("not PLAN: {why}")), "{}", legal(who));
    }
    let of_clerk = shell.here("charter legal b --as carl --role clerk").1;
    assert!(of_clerk.contains("not PLAN: needs the role director"), "{of_clerk}");
    assert!(of_clerk.contains("not BOTH: needs the roles "), "{of_clerk}");
}

#[test]
fn names_that_begin_with_a_hyphen_can_be_pasted() {
    let shell = Shell::new("paste-hyphen");
    let states = "{a: {on: {-go: b}}, b: {type: final}}";
    let odd = format!("{{charter: 1, id: odd, roles: {{-r: {{}}}}, events: {{-go: {{by: -r}}}}, states: {states}}}");
    shell.site.0.file("odd.yaml", odd);
    all_do(&shell.paste(&[shell.here("charter run odd.yaml --run o")]), " -- -go", "a → b");
}

#[test]
fn tasks_are_answered_and_declined_from_scripts() {
    let shell = Shell::new("paste-task");
    let started = shell.here("charter run desk.yaml --run d");
    let shown = [started, shell.here("charter show d"), shell.here("charter legal d"), shell.here("charter answer d")];
    assert_eq!(shown[3].0, 2);
    let pasted = shell.paste(&shown);
    all_do(&pasted, "answer d/0/0 '{", "looking → done");
    all_do(&pasted, "--decline", "looking → failing");
    // `--yes` never invents data.
    let yes = shell.here("charter run --resume d --yes");
    assert!(yes.0 == 0 && yes.2.contains("`--yes` gives no answer that needs data"), "{yes:?}");
    all_do(&shell.paste(std::slice::from_ref(&yes)), "answer d/0/0 '{", "looking → done");
    let wrong = shell.here("charter answer d '{\"verdict\": \"fine\", \"amount\": 3}' --as ana --role clerk");
    assert!(wrong.0 == 1 && wrong.2.contains("refused (schema)"), "{wrong:?}");
    assert_eq!(shell.here("charter answer d --as ana --decline no").0, 1);
    let right = shell.here("charter answer d/0/0 '{\"verdict\": \"good\", \"amount\": 3}' --as ana --role clerk");
    assert!(right.0 == 0 && right.1.contains("d: done in done"), "{right:?}");
    let late = shell.here("charter answer d/0/0 --decline 'too late' --as rob --role clerk");
    assert_eq!(late.0, 2);
    assert!(late.2.contains("is no longer waited for: `done.invoke.look` by ana ended it in record 2, "), "{}", late.2);
    shell.paste(&[late]);
    assert!(shell.here("charter answer d/9/9 --decline no").2.contains("has no task `d/9/9`"));
}

#[test]
fn a_paused_run_says_how_to_go_on_and_keeps_its_timers() {
    let shell = Shell::new("paste-paused");
    shell.here("charter run payment.yaml --run p");
    shell.here("charter send p REQUEST '{\"amount\": 1}' --as ana --role clerk");
    let paused = shell.here("charter send p charter.pause --role operator");
    let shown = [paused, shell.here("charter show p"), shell.here("charter legal p"), shell.here("charter runs")];
    assert!(
        shown[1].1.contains("timers   review/after/20m: 19 min 5") && shown[1].1.contains(" s left"),
        "{}",
        shown[1].1
    );
    assert!(!shown[3].1.contains("overdue"), "{}", shown[3].1);
    all_do(&shell.paste(&shown), "charter.resume", "accepted");
    let refused = shell.here("charter send p APPROVE --as bea --role controller");
    assert!(refused.0 == 1 && refused.2.contains("refused (paused)"), "{}", refused.2);
    shell.paste(&[refused]);
}

#[test]
fn open_work_that_no_process_does_is_not_called_running() {
    let shell = Shell::new("paste-open");
    shell.here("charter run desk.yaml --run d");
    let failed = shell.here("charter answer d --decline no --role clerk");
    shell.paste(&[failed, shell.here("charter show d"), shell.here("charter runs")]);
}

#[test]
fn the_file_of_the_journal_is_kept_in_printed_commands() {
    let shell = Shell::new("paste-db");
    let started = shell.here("charter run payment.yaml --run p --db \"it's a journal.db\"");
    let pasted = shell.paste(std::slice::from_ref(&started));
    all_do(&pasted, "REQUEST", "open → review");
    assert!(of(&pasted, "charter log")[0].0.ends_with("--db 'it'\\''s a journal.db'"), "{pasted:#?}");
    assert!(of(&pasted, "charter verify").iter().all(|(_, code, _)| *code == 0));
}

#[test]
fn the_variable_names_the_journal_and_the_option_wins() {
    let shell = Shell::new("paste-variable");
    assert_eq!(shell.here("CHARTER_DB=v.db charter run payment.yaml --run v").0, 0);
    let started = shell.here("CHARTER_DB=v.db charter run payment.yaml --run w --db o.db");
    assert!(started.1.contains("REQUEST '{\"amount\":0}' --as me --role clerk --db o.db"), "{}", started.1);
    assert!(shell.here("CHARTER_DB=v.db charter runs").1.contains("v "));
    assert!(shell.here("CHARTER_DB=v.db charter runs --db o.db").1.contains("w "));
    assert!(shell.here("CHARTER_DB=v.db charter verify").1.contains("verified"));
    assert_eq!(shell.here("CHARTER_DB=v.db charter rebuild").0, 0);
    assert_eq!(shell.here("CHARTER_DB= charter runs").0, 2);
    assert!(!shell.site.path("charter.db").exists());
}

const RULES: &str = "
charter: 1
id: rules
rules: {R7: \"= 'the limit is ' + string(context.limit)\"}
context: {limit: 5}
events: {SPEND: {data: {type: object, required: [n], properties: {n: {type: integer}}}}}
actors: {nap: {kind: human, timeout: 50ms}}
initial: s
states:
  s:
    on:
      SPEND:
        - {when: event.n > context.limit, refuse: R7}
        - {when: event.n > 0, target: t}
  t: {invoke: {src: nap, onError: u}}
  u: {type: final}
";

#[test]
fn refusals_by_a_rule_have_condition_and_values_and_time_limits_a_reason() {
    let shell = Shell::new("rules");
    shell.site.0.file("rules.yaml", RULES);
    shell.here("charter run rules.yaml --run r");
    let refused = shell.here("charter send r SPEND '{\"n\": 9}'").2;
    for line in ["refused (rule R7): the limit is 5\n", "  because `event.n > context.limit`\n", "    event.n is 9\n"] {
        assert!(refused.contains(line), "{refused}");
    }
    shell.here("charter send r SPEND '{\"n\": 5}'");
    std::thread::sleep(Duration::from_millis(60));
    shell.here("charter run --resume r");
    // The condition is that of the state before the event, not of the present one.
    let story = shell.here("charter explain r 1").1;
    for line in ["because `event.n > context.limit` is true", "    context.limit was 5\n", "    event.n was 9\n"] {
        assert!(story.contains(line), "{story}");
    }
    let why = "timeout: no answer within the time limit (timer root/timeout/nap)";
    assert!(shell.here("charter log r").1.contains(why), "{}", shell.here("charter log r").1);
    assert!(shell.here("charter explain r 3").1.contains(why));
}

#[test]
fn ids_and_files_of_wrong_names_are_errors_that_say_so() {
    let shell = Shell::new("names");
    let taken = shell.here("charter run payment.yaml --run host");
    assert!(taken.0 == 2 && taken.2.contains("holds the keys"), "{taken:?}");
    shell.here("charter run payment.yaml --run p");
    for id in [String::new(), "x".repeat(257)] {
        let sent = shell.here(&format!("charter send p REQUEST '{{\"amount\": 1}}' --role clerk --id '{id}'"));
        assert!(sent.0 == 2 && sent.2.contains("an event id has 1 to 256 bytes"), "{sent:?}");
    }
    assert_eq!(shell.here("charter fork p --at 0 --run f").1, "f\n");
    for command in ["charter fork p --at 0 --run host", "charter guard init claude --run host"] {
        let taken = shell.here(command);
        assert!(taken.0 == 2 && taken.2.contains("holds the keys"), "{taken:?}");
    }
    fs::create_dir(shell.site.path("charter.db-lock")).unwrap();
    let sent = shell.here("charter send p REQUEST '{\"amount\": 1}' --role clerk");
    assert!(sent.0 == 2 && sent.2.contains("charter.db-lock` is a folder"), "{sent:?}");
    assert!(sent.2.contains("move the folder away"), "{sent:?}");
}

#[test]
fn a_prompt_notices_what_others_do_to_the_run() {
    let shell = Shell::new("prompt");
    let mut prompt = on_terminal(&shell.site, "run payment.yaml --run p --as ana");
    shell.site.holder();
    until("a run", || shell.here("charter show p").0 == 0);
    let sent = shell.here("charter send p REQUEST '{\"amount\": 1200}' --as rob --role clerk");
    assert_eq!(sent.0, 0, "{sent:?}");
    // The prompt is for REQUEST, which is no longer legal; then it asks anew, and APPROVE is.
    std::thread::sleep(Duration::from_secs(4));
    let mut typed = prompt.0.as_mut().unwrap().stdin.take().unwrap();
    std::io::Write::write_all(&mut typed, b"APPROVE\n").unwrap();
    let (code, out, err) = prompt.end();
    assert!(code == 0 && out.contains("the run has moved on") && out.contains("p: done in paid"), "{out}{err}");
    drop(typed);
}

//! The error messages for mistakes in a charter.

use charter_format::{Diagnostic, Diagnostics, ReadOptions, Severity, read};

fn errors(source: &str) -> Diagnostics {
    match read(source, "t.yaml", &ReadOptions::default()) {
        Ok(document) => panic!("read as {:?}", document.definition),
        Err(errors) => errors,
    }
}

fn line(item: &Diagnostic) -> String {
    let help = item.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{}:{} {} [{}] {}{help}", item.line, item.column, item.path, item.code, item.message)
}

/// Returns the errors of a charter whose first two lines are `charter: 1` and `id: t`.
fn told(body: &str) -> String {
    let errors = errors(&format!("charter: 1\nid: t\n{body}"));
    errors.list.iter().map(line).collect::<Vec<_>>().join("\n")
}

macro_rules! tells {
    ($($name:ident: $body:expr => $($expected:expr),+;)*) => {
        $(#[test] fn $name() { assert_eq!(told($body), [$($expected),+].join("\n")); })*
    };
}

tells! {
    a_misspelled_key: "sates: {}" => "3:1 sates [unknown-key] a charter has no key `sates` (did you mean `states`?)";
    an_unknown_key: "quorum_object: 1\nroles: {a: {color: red}}" =>
        "3:1 quorum_object [unknown-key] a charter has no key `quorum_object` (known keys: `charter`, `id`, `version`, `title`, `description`, `strict`, `roles`, `types`, `events`, `guards`, `actions`, `delays`, `actors`, `ledger`, `rules`, `machines`, `interlocks`, `limits`, `properties`, `stream`, `statechart`, `projections`, `meta`, `input`, `context`, `output`, `type`, `initial`, `states`, `on`, `always`, `after`, `entry`, `exit`, `invoke`, `onDone`, `data`, `tags`)",
        "4:13 roles.a.color [unknown-key] a role has no key `color` (known keys: `description`)";
    a_number_for_a_transition: "on: {GO: 7}" =>
        "3:10 on.GO [wrong-type] expected a transition (a target, an object, or a list of them), found a number";
    null_for_a_transition: "on:\n  GO:\n" =>
        "4:3 on.GO [wrong-type] expected a transition (a target, an object, or a list of them), found null (write `{}` for an empty object)";
    a_list_of_the_wrong_things: "on: {GO: [a, 3]}" => "3:14 on.GO[1] [wrong-type] expected a transition, found a number";
    an_object_for_a_list: "properties: {id: x}" => "3:13 properties [wrong-type] expected a list of properties, found an object";
    a_version_with_two_parts: "version: 1.2" =>
        "3:10 version [wrong-type] expected a semantic version such as `1.2.0`, found a number (three numbers, such as `1.2.0`, `0.3.1` or `2.0.0-beta.1`)";
    a_bad_version: "version: v1.2.0" =>
        "3:10 version [bad-value] expected a semantic version such as `1.2.0`, found `v1.2.0` (three numbers, such as `1.2.0`, `0.3.1` or `2.0.0-beta.1`)";
    a_number_for_text: "title: 7" => "3:8 title [wrong-type] expected a string, found a number (quote it)";
    an_expression_in_braces: "on: {GO: {when: {a: b}}}" =>
        "3:17 on.GO.when [wrong-type] expected an expression, found an object (an expression is a string; quote it if it starts with `{` or `[`)";
    a_comma_in_an_unquoted_expression: "on: {GO: {when: f(a, b)}}" =>
        "3:22 on.GO.\"b)\" [unknown-key] a transition has no key `b)` (quote text with a comma or a brace inside `{...}`)";
    yes_is_not_a_boolean: "strict: yes" => "3:9 strict [wrong-type] expected `true` or `false`, found a string";
    a_misspelled_word: "states: {a: {type: finl}}" =>
        "3:20 states.a.type [bad-value] expected one of `atomic`, `compound`, `parallel`, `final`, `history`, found `finl` (did you mean `final`?)";
    a_missing_key: "actors: {a: {}}" =>
        "3:13 actors.a [missing-key] an actor needs the key `kind` (The executor of the host that runs it: `model`, `tool`, `exec`, `http`, `human`, ...)";
    two_actions_in_one: "entry: {raise: A, log: b}" =>
        "3:19 entry.log [conflicting-keys] `raise` and `log` cannot both be set in an action (an action has a single key; write a list to run several in order)";
    an_action_that_does_nothing: "entry: {label: x}" =>
        "3:8 entry [conflicting-keys] an action needs one of `assign`, `raise`, `send`, `cancel`, `emit`, `log`, `spawn`, `stop`, `if`, `each`, `grant`, `revoke`, `open`, `close`";
    a_misspelled_action: "entry: {asign: {x: 1}}" => "3:9 entry.asign [unknown-key] an action has no key `asign` (did you mean `assign`?)";
    neither_key_nor_all: "ledger: {t: }\nentry: {revoke: {kind: t}}" => "4:17 entry.revoke [conflicting-keys] a permit needs one of `key`, `all`";
    both_key_and_all: "ledger: {t: }\nentry: {close: {kind: t, key: 1, all: true}}" =>
        "4:34 entry.close.all [conflicting-keys] `key` and `all` cannot both be set in an obligation";
    all_that_is_not_all: "ledger: {t: }\nentry: {revoke: {kind: t, all: false}}" =>
        "4:32 entry.revoke.all [bad-value] `all: false` is not allowed (write `key: ...`, or `all: true`)";
    an_invalid_duration: "after: {5 s: a}\ndelays: {x: 1.5ms, y: -5}" =>
        "3:9 after.\"5 s\" [bad-delay] invalid duration `5 s` (write a duration such as `500ms`, `1h30m` or `2d`, milliseconds, a name from `delays`, or `= CEL`)",
        "4:13 delays.x [bad-delay] invalid duration `1.5ms`: it is not a whole number of milliseconds (write a duration such as `500ms`, `1h30m` or `2d`, milliseconds, a name from `delays`, or `= CEL`)",
        "4:23 delays.y [bad-delay] invalid duration `-5`: it cannot be negative (write a duration such as `500ms`, `1h30m` or `2d`, milliseconds, a name from `delays`, or `= CEL`)";
    a_time_as_a_name: "delays: {5s: 1h}" =>
        "3:10 delays.5s [bad-value] invalid delay name `5s` (a name cannot start with a digit or `=`, or contain spaces)";
    history_keys_elsewhere: "states: {a: {target: b}, h: {type: history, initial: a}}" =>
        "3:14 states.a.target [conflicting-keys] `target` is only allowed with `type: history` (add `type: history`, or remove the key)",
        "3:45 states.h.initial [conflicting-keys] a history state cannot have `initial` (write its default as `target`)";
    children_that_do_not_fit: "states: {a: {type: final, states: {b: }}, c: {type: parallel}}" =>
        "3:20 states.a.type [conflicting-keys] `type: final` cannot have `states`",
        "3:53 states.c.type [conflicting-keys] `type: parallel` requires `states`";
    an_approval_of_nothing: "on: {GO: {approves: {not_by: context.x}}}" =>
        "3:21 on.GO.approves [missing-key] an approval needs the key `value` (CEL expression for the value to approve; the sender sends its digest as `event.digest`.)";
    a_misspelled_exclusion: "on: {GO: {quorum: {count: 2, notby: context.x}, agent: true}}" =>
        "3:30 on.GO.quorum.notby [unknown-key] a quorum has no key `notby` (did you mean `not_by`?)",
        "3:49 on.GO.agent [unknown-key] a transition has no key `agent` (did you mean `agents`?)";
    an_exclusion_of_the_wrong_type: "on: {GO: {approves: {value: context.x, not_by: [ana]}, agents: 1}}" =>
        "3:48 on.GO.approves.not_by [wrong-type] expected an expression, found a list (an expression is a string; quote it if it starts with `{` or `[`)",
        "3:64 on.GO.agents [wrong-type] expected `true` or `false`, found a number";
    two_exclusions: "on: {GO: {approves: {value: context.x, not_by: context.a}, quorum: {count: 2, not_by: context.b}}}" =>
        "3:79 on.GO.quorum.not_by [conflicting-keys] `not_by` is given in both `approves` and `quorum` (write it once; for several principals, a list: `[context.a, context.b]`)";
    undeclared_names: "roles: {reviewer: }\nguards: {ready: 'true'}\non: {GO: {by: reviwer, guard: {and: [raedy, foo]}, actions: note}}\nafter: {soon: {}}" =>
        "5:15 on.GO.by [undefined-name] undefined role `reviwer` (did you mean `reviewer`?)",
        "5:38 on.GO.guard.and[0] [undefined-name] undefined guard `raedy` (did you mean `ready`?)",
        "5:45 on.GO.guard.and[1] [undefined-name] undefined guard `foo` (declared under `guards`: `ready`)",
        "5:61 on.GO.actions [undefined-name] undefined action `note` (declare it under `actions`)",
        "6:9 after.soon [undefined-name] undefined delay `soon` (write a duration such as `500ms`, `1h30m` or `2d`, milliseconds, a name from `delays`, or `= CEL`)";
    more_names: "actors: {model: {kind: m}}\ninvoke: {src: modle}\nentry: [{spawn: {machine: pln, id: a}}, {grant: {kind: tok, key: 1}}]\ninterlocks: [{id: i, given: root, machine: plan, allow: {}}]" =>
        "4:15 invoke.src [undefined-name] undefined actor or machine `modle` (did you mean `model`?)",
        "5:27 entry[0].spawn.machine [undefined-name] undefined actor or machine `pln` (declared under `actors`: `model`)",
        "5:56 entry[1].grant.kind [undefined-name] undefined kind of permit or obligation `tok` (declare it under `ledger`)",
        "6:44 interlocks[0].machine [undefined-name] undefined machine `plan` (declare it under `machines`)";
    an_undeclared_role_of_a_task: "roles: {reviewer: }\nactors: {ask: {by: reviwer, kind: human}, files: {kind: workspace, by: anybody}}" =>
        "4:20 actors.ask.by [undefined-name] undefined role `reviwer` (did you mean `reviewer`?)";
    an_undeclared_role_of_a_quorum: "roles: {reviewer: }\non: {GO: {quorum: {count: 2, of: chair}}}" =>
        "4:34 on.GO.quorum.of [undefined-name] undefined role `chair` (declared under `roles`: `reviewer`, `system`, `operator`)";
    roles_that_no_sender_can_have: "roles: {jose\u{301}: , \"a\u{200b}b\": , \" c\": , operator: , José: }\non: {GO: {by: jose\u{301}}}" =>
        "3:9 roles.\"jose\u{301}\" [bad-role-name] no sender can have this role: `jose\u{301}` is written with other characters than the same name usually is (it is not in Unicode's form NFC), so it looks like another id or role; write it as `jos\u{e9}` (U+006A U+006F U+0073 U+00E9)",
        "3:18 roles.\"a\u{200b}b\" [bad-role-name] no sender can have this role: `a\\u{200b}b` has the character U+200B, which is not seen, so it looks like another id or role; remove the character",
        "3:27 roles.\" c\" [bad-role-name] no sender can have this role: ` c` begins or ends with a space, so it looks like another id or role; remove the space";
    an_undeclared_role_that_looks_like_a_declared_one: "roles: {jos\u{e9}: }\non: {GO: {by: jose\u{301}}}" =>
        "4:15 on.GO.by [undefined-name] undefined role `jose\u{301}` (no sender can have this role: `jose\u{301}` is written with other characters than the same name usually is (it is not in Unicode's form NFC), so it looks like another id or role; write it as `jos\u{e9}` (U+006A U+006F U+0073 U+00E9))";
    undeclared_variables: "context: {payment: null}\non: {GO: {actions: {assign: {paymnt: 1, payment.by: 2, 'x[1].y': 3}}}}" =>
        "4:30 on.GO.actions.assign.paymnt [undefined-name] undefined variable `paymnt` (did you mean `payment`?)",
        "4:56 on.GO.actions.assign.\"x[1].y\" [undefined-name] undefined variable `x` (declare it under `context` with its initial value; declared there: `payment`)";
    a_variable_without_a_context: "entry: {assign: {n: 1}}" =>
        "3:18 entry.assign.n [undefined-name] undefined variable `n` (declare it under `context`: `n: null`)";
    a_variable_of_another_machine: "context: {n: 0}\nmachines: {plan: {context: {m: 0}, entry: {assign: {n: 1}}}}\nentry: {spawn: {machine: plan, id: p}}" =>
        "4:53 machines.plan.entry.assign.n [undefined-name] undefined variable `n` in the context of machine `plan` (did you mean `m`?)";
    a_named_action_of_two_charts: "context: {n: 0}\nactions: {inner: {assign: {n: 1}}, outer: [inner], unused: {assign: {k: 1}}}\nmachines: {plan: {entry: outer}}\nentry: [inner, {spawn: {machine: plan, id: p}}]" =>
        "4:28 actions.inner.assign.n [undefined-name] undefined variable `n` in the context of machine `plan` (declare it under `context`: `n: null`)";
    a_variable_that_a_schema_forbids: "types: {context: {type: object, properties: {last: {}}}}\nentry: {assign: {last: 1, lst: 2}}" =>
        "4:27 entry.assign.lst [undefined-name] undefined variable `lst` (did you mean `last`?)";
    an_expression_as_guard: "on: {GO: {guard: context.x > 1}}" =>
        "3:18 on.GO.guard [undefined-name] undefined guard `context.x > 1` (`guard` takes a name from `guards`; write an inline expression as `when`)";
    an_undeclared_type: "types: {line: {type: string}}\nevents: {A: {data: {items: {$ref: '#/types/lin'}}}}" =>
        "4:35 events.A.data.items.$ref [undefined-name] undefined type `lin` (did you mean `#/types/line`?)";
    an_ambiguous_name: "actors: {x: {kind: m}}\nmachines: {x: {}}" =>
        "4:12 machines.x [ambiguous-name] `x` is declared under both `actors` and `machines`; `invoke` could mean either (rename one of them)";
    a_literal_in_a_stream: "stream: {run: item.run}" => "3:15 stream.run [bad-value] expected an expression that starts with `= ` (write `\"= item.run\"`)";
    a_quoted_literal_in_a_stream: "stream: {run: '\"r\"'}" => "3:15 stream.run [bad-value] expected an expression that starts with `= ` (write `\"= \\\"r\\\"\"`)";
    half_an_interlock: "interlocks: [{id: a}, {id: b, allow: {}}, {id: c, assert: x, final: always}]" =>
        "3:14 interlocks[0] [conflicting-keys] an interlock needs one of `allow`, `assert`",
        "3:23 interlocks[1] [missing-key] an interlock with `allow` needs the key `given`",
        "3:23 interlocks[1] [missing-key] an interlock with `allow` needs the key `machine`",
        "3:62 interlocks[2].final [conflicting-keys] `final` cannot be used with `assert`";
    a_property_without_never: "properties: [{id: a, always: x, unless-before: E}]" =>
        "3:33 properties[0].unless-before [conflicting-keys] `unless-before` is only allowed with `never`";
    blocks_and_actions_mixed: "entry: [[{log: 1}], {log: 2}]" =>
        "3:21 entry[1] [wrong-type] a list cannot mix actions and lists of actions (wrap the single actions in a list)";
    an_import_without_files: "statechart: {import: fred.json, format: xstate}" =>
        "3:22 statechart.import [file] cannot read `fred.json`: this document may not name other files";
    a_limit_of_nothing: "limits: {microsteps: 0}" => "3:22 limits.microsteps [bad-value] expected a number of at least 1, found 0";
    a_number_beyond_json: "context: {n: 9007199254740993}" =>
        "3:14  [bad-number] number `9007199254740993` is out of range: JSON readers disagree beyond 2^53-1 (quote it, as text)";
    not_a_number_in_json: "context: {n: .nan}" => "3:14  [bad-number] `.nan` is not a JSON number (quote it if it is text)";
    a_tag: "guards:\n  g: !context.x\n" => "4:6  [tag] unexpected YAML tag `!context.x` (charters have no tags; quote text that starts with `!`)";
    an_unknown_alias: "title: *x" => "3:8  [bad-alias] unknown alias: no anchor with this name comes before it (quote text that starts with `*`)";
    a_merge_key: "meta: &m {a: 1}\nstates: {<<: *m}" => "4:10  [merge-key] merge keys (`<<`) are not supported (write the keys out, or use an alias for a whole value)";
    a_key_that_is_a_list: "meta: {[a]: 1}" => "3:8  [bad-key] a key must be a string, not a list or an object";
    two_documents: "---\nid: u" => "3:1  [several-documents] a second YAML document starts here; a file holds one";
    a_tab: "states:\n\ta: {}" => "4:2  [syntax] tab used for indentation (indent YAML with spaces)";
    a_ternary_without_quotes: "guards:\n  g: a ? b : c" =>
        "4:12  [syntax] unexpected `:` (check the indentation; quote text that contains `: ` or ` #`, or that starts with one of `! & * @ % [ { ` \" '`)";
    half_a_quoted_expression: "guards:\n  g: \"a\" == b" =>
        "4:10  [syntax] unexpected text after the closing quote (quote text that contains `: ` or ` #`, or that starts with one of `! & * @ % [ { ` \" '`)";
}

#[test]
fn the_head_of_a_charter() {
    let told = |source: &str| errors(source).list.iter().map(line).collect::<Vec<_>>().join("\n");
    assert_eq!(told(""), "1:1  [syntax] the document is empty");
    assert_eq!(told("# nothing\n"), "1:1  [syntax] the document is empty");
    assert_eq!(told("- a"), "1:1  [wrong-type] expected a charter (an object with `charter`, `id`), found a list");
    assert_eq!(
        told("title: x"),
        "1:1 title [missing-key] a charter needs the key `charter` (Version of the charter language: 1.)\n\
         1:1 title [missing-key] a charter needs the key `id` (Name of the charter: lowercase letters, digits and `-`.)"
    );
    assert_eq!(
        told("charter: 2\nid: t"),
        "1:10 charter [language-version] unsupported charter language version 2 (supported: `1`)"
    );
    assert_eq!(told("charter: '1'\nid: t"), "1:10 charter [wrong-type] expected an integer, found a string");
    assert_eq!(
        told("charter: 1\nid: My_Charter"),
        "2:5 id [bad-value] expected a name such as `my-charter`, found `My_Charter` (lowercase letters, digits and `-`, starting with a letter)"
    );
}

#[test]
fn errors_in_json_are_about_json() {
    let told = |source: &str| line(&read(source, "t.json", &ReadOptions::default()).unwrap_err().list[0]);
    assert_eq!(told("{\"a\": 1,}"), "1:9  [syntax] invalid JSON: expected a key in double quotes");
    assert_eq!(told("{\"a\" 1}"), "1:6  [syntax] invalid JSON: expected `:` after the key");
    assert_eq!(told("{\"a\": 01}"), "1:7  [syntax] invalid JSON: expected a value");
    assert_eq!(told("{\"a\": [1}"), "1:9  [syntax] invalid JSON: mismatched closing bracket");
    assert_eq!(told("{\"a\": \"x"), "1:7  [syntax] invalid JSON: unterminated string");
    assert_eq!(
        told("{\"a\": \"\\ud800\"}"),
        "1:8  [syntax] invalid JSON: `\\u` needs four hex digits that encode a character, or a surrogate pair"
    );
    assert_eq!(told("{} {}"), "1:4  [syntax] invalid JSON: unexpected text after the end of the document");
    assert_eq!(told("{\"a\": 1, \"a\": 2}"), "1:10  [duplicate-key] duplicate key `a` (remove or rename one of them)");
}

#[test]
fn a_diagnostic_with_two_places() {
    let errors = errors("charter: 1\nid: t\nstates:\n  a: {}\n  b: {}\n  a: {}\n");
    insta::assert_snapshot!(errors.render(false), @r"
    error[duplicate-key]: duplicate key `a`
     --> t.yaml:6:3
      |
    4 |   a: {}
      |   - first here
    5 |   b: {}
    6 |   a: {}
      |   ^
      |
      = help: remove or rename one of them
    ");
}

#[test]
fn diagnostics_as_json() {
    let errors = errors("charter: 1\nid: t\nsates: {}\n");
    assert_eq!(
        serde_json::to_string(&errors).unwrap(),
        r#"[{"severity":"error","code":"unknown-key","path":"sates","line":3,"column":1,"message":"a charter has no key `sates`","help":"did you mean `states`?"}]"#
    );
}

#[test]
fn color_only_if_requested() {
    let errors = errors("charter: 1\nid: t\nsates: {}\n");
    assert!(errors.render(true).contains("\u{1b}["));
    assert!(!errors.render(false).contains("\u{1b}["));
}

#[test]
fn warnings_are_not_errors() {
    let source = "charter: 1\nid: t\ncontext: {m: 010, k: '=context.x', ok: '== x'}\nactors: {a: {kind: m, timeuot: 5s, other: 1}}\n";
    let document = read(source, "t.yaml", &ReadOptions::default()).unwrap();
    let warnings: Vec<String> = document.warnings.iter().map(line).collect();
    assert!(document.warnings.iter().all(|warning| warning.severity == Severity::Warning));
    assert_eq!(
        warnings,
        [
            "3:14 context.m [bad-number] `010` is read as a decimal number; some YAML readers treat it as octal (remove the leading zeros, or quote it if it is text)",
            "3:22 context.k [maybe-expression] this string starts with `=` but is not an expression: the space after `=` is missing (write `\"= context.x\"`, or `{literal: ...}` to keep it as text)",
            "4:23 actors.a.timeuot [unknown-key] `timeuot` is passed to the host, but looks like `timeout` (did you mean `timeout`?)",
        ]
    );
}

#[test]
fn a_context_is_open_where_its_schema_says_so() {
    let charter = |head: &str| format!("charter: 1\nid: t\n{head}\nentry: {{assign: {{anything: 1}}}}");
    for open in [
        "types: {context: {type: object, additionalProperties: true}}",
        "types: {more: {additionalProperties: {type: integer}}, context: {$ref: '#/types/more'}}",
        "types: {context: {allOf: [{properties: {a: {}}}, {patternProperties: {'^any': {}}}]}}",
        "types: {context: {anyOf: [{properties: {a: {}}}, {required: [anything]}]}}",
        "strict: false",
    ] {
        assert!(read(&charter(open), "t.yaml", &ReadOptions::default()).is_ok(), "{open}");
    }
    for closed in [
        "types: {context: {type: object}}",
        "types: {context: true}",
        "types: {context: {additionalProperties: false}}",
        "types: {loop: {$ref: '#/types/loop'}, context: {$ref: '#/types/loop'}}",
    ] {
        assert!(errors(&charter(closed)).to_string().contains("undefined variable `anything`"), "{closed}");
    }
}

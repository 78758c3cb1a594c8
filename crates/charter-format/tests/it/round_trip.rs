//! A definition that is written as a charter reads back as the same definition, in the same order.

use charter_format::{ReadOptions, json, read};
use charter_kernel::Definition;
use charter_kernel::definition::*;
use charter_test_support::cases;
use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value as Json, json as value};

fn names() -> impl Strategy<Value = Vec<String>> {
    vec("[a-z]{1,3}", 0..3)
}

fn cel() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("context.x > 1 && event.y == 'a: b # c'".to_owned()),
        Just("\"q\\\"uo\\\\te\"".to_owned()),
        "[a-z é€😀.()'\"]{0,8}x"
    ]
}

fn literal() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Json::from),
        Just(value!(0.5)),
        Just(value!(1e300)),
        "(= )?[a-zé\n\"\\\\\t😀 :#]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Json::from),
            vec(("literal|[a-z]{1,2}", inner), 0..3).prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

/// Generates normalized templates: a value without expressions is one literal.
fn template() -> impl Strategy<Value = Template> {
    let leaf = prop_oneof![literal().prop_map(Template::Literal), cel().prop_map(Template::Cel)];
    let with_cel = prop_oneof![
        (vec(leaf.clone(), 0..2), cel()).prop_map(|(mut items, cel)| {
            items.push(Template::Cel(cel));
            Template::List(items)
        }),
        (vec(("[a-z]{1,2}", leaf.clone()), 0..2), cel()).prop_map(|(entries, cel)| {
            let mut fields: IndexMap<String, Template> = entries.into_iter().collect();
            fields.insert("computed".to_owned(), Template::Cel(cel));
            Template::Object(fields)
        }),
    ];
    prop_oneof![leaf, with_cel]
}

fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![
        Just(Delay::Name("soon".to_owned())),
        (0..=31_536_000_000_000_u64).prop_map(Delay::Ms),
        cel().prop_map(Delay::Cel)
    ]
}

fn guard() -> impl Strategy<Value = Guard> {
    let leaf = prop_oneof![Just(Guard::Name("ok".to_owned())), Just(Guard::Name("rich".to_owned()))];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Guard::And),
            vec(inner.clone(), 0..3).prop_map(Guard::Or),
            inner.prop_map(|guard| Guard::Not(Box::new(guard))),
        ]
    })
}

fn action() -> impl Strategy<Value = Action> {
    let kind = || Just("token".to_owned());
    let t = || template().boxed();
    let leaf = prop_oneof![
        Just(Action::Name("note".to_owned())),
        vec(("[a-z]{1,2}(\\[[0-9]\\])?", t()), 0..3).prop_map(|paths| Action::Assign(paths.into_iter().collect())),
        (t(), option::of(t())).prop_map(|(r#type, data)| Action::Raise { r#type, data }),
        (t(), option::of(t())).prop_map(|(r#type, data)| Action::Emit { r#type, data }),
        (
            option::of(t()),
            t(),
            option::of(t()),
            option::of(delay()),
            option::of(t()),
            option::of("[a-z]{1,3}"),
            option::of(t())
        )
            .prop_map(|(to, r#type, data, delay, id, id_location, processor)| {
                Action::Send(Send { to, r#type, data, delay, id, id_location, processor })
            }),
        t().prop_map(Action::Cancel),
        t().prop_map(Action::Stop),
        (t(), option::of("[a-z ]{0,4}")).prop_map(|(value, label)| Action::Log { value, label }),
        (t(), option::of(t())).prop_map(|(id, input)| Action::Spawn { machine: "plan".to_owned(), id, input }),
        (kind(), t(), option::of(t()), option::of(t()), option::of(t()))
            .prop_map(|(kind, key, uses, expires, data)| Action::Grant { kind, key, uses, expires, data }),
        (kind(), option::of(t())).prop_map(|(kind, key)| Action::Revoke { kind, key }),
        (kind(), t(), option::of(t()), option::of(t()))
            .prop_map(|(kind, key, due, data)| { Action::Open { kind, key, due, data } }),
        (kind(), option::of(t()), option::of(t())).prop_map(|(kind, key, r#as)| Action::Close { kind, key, r#as }),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            vec((option::of(cel()), vec(inner.clone(), 0..3)), 1..3).prop_map(|branches| {
                Action::If(branches.into_iter().map(|(when, r#do)| Branch { when, r#do }).collect())
            }),
            (cel(), option::of("[a-z]{1,3}"), vec(inner, 0..3))
                .prop_map(|(r#in, index, r#do)| { Action::Each { r#in, r#as: "item".to_owned(), index, r#do } }),
        ]
    })
}

fn block() -> impl Strategy<Value = Block> {
    vec(action(), 0..3)
}

fn rule() -> impl Strategy<Value = Option<String>> {
    option::of(Just("R1".to_owned()))
}

fn require() -> impl Strategy<Value = Require> {
    let kind = || Just("token".to_owned());
    prop_oneof![
        (kind(), template(), option::of(cel()), any::<bool>()).prop_map(|(kind, key, when, ruled)| Require::Use {
            kind,
            key,
            when,
            rules: ruled.then(|| ("expired".to_owned(), "R1".to_owned())).into_iter().collect(),
        }),
        (kind(), template(), rule()).prop_map(|(kind, key, rule)| Require::Open { kind, key, rule }),
        (kind(), rule()).prop_map(|(kind, rule)| Require::None { kind, rule }),
    ]
}

fn transition() -> impl Strategy<Value = Transition> {
    let first = (names(), option::of(guard()), option::of(cel()), option::of(cel()), vec(require(), 0..2), block());
    let second = (
        any::<bool>(),
        option::of("[a-z]{0,3}"),
        any::<bool>(),
        option::of((1..9_u32, option::of(Just("boss".to_owned())))),
        literal(),
        rule(),
        (option::of(cel()), any::<bool>()),
    );
    (first, second).prop_map(
        |(
            (target, guard, when, approves, requires, actions),
            (reenter, description, by, quorum, meta, refuse, (not_by, agents)),
        )| {
            let approval = approves.is_some() || quorum.is_some();
            Transition {
                target,
                guard,
                when,
                by: if by { vec!["boss".to_owned(), "system".to_owned()] } else { Vec::new() },
                approves,
                not_by: not_by.filter(|_| approval),
                requires,
                quorum: quorum.map(|(count, of)| Quorum { count, of }),
                agents,
                refuse,
                actions,
                reenter,
                // Only imports use this field: a charter cannot express it.
                parallel_domain: false,
                description,
                meta,
            }
        },
    )
}

fn transitions() -> impl Strategy<Value = Vec<Transition>> {
    vec(transition(), 0..3)
}

fn state(depth: u32) -> BoxedStrategy<State> {
    let children = if depth == 0 {
        Just(IndexMap::new()).boxed()
    } else {
        vec(("[a-z0-9 é~/]{1,3}", state(depth - 1)), 0..3).prop_map(|entries| entries.into_iter().collect()).boxed()
    };
    let timers = prop_oneof![
        Just(("1s", Delay::Ms(1_000))),
        Just(("70", Delay::Ms(70))),
        Just(("soon", Delay::Name("soon".to_owned()))),
        Just(("= 1", Delay::Cel("1".to_owned())))
    ];
    let first = (
        children,
        vec((vec("[A-Z*.]{1,3}", 1..3), transitions()), 0..3),
        transitions(),
        vec((timers, transitions()), 0..2),
        transitions(),
    );
    let second = (vec(block(), 0..3), vec(block(), 0..2), vec(invoke(), 0..2), 0..4_u8, option::of((names(), block())));
    let third = (option::of("[a-z]{1,2}"), option::of(template()), names(), literal(), option::of("[a-z]{0,3}"));
    (first, second, third)
        .prop_map(
            |(
                (states, on, always, after, on_done),
                (entry, exit, invoke, kind, initial),
                (id, output, tags, meta, description),
            )| {
                let kind: StateKind = match (states.is_empty(), kind) {
                    (true, 0) => StateKind::Final,
                    (true, 1) => StateKind::Shallow,
                    (true, 2) => StateKind::Deep,
                    (true, _) => StateKind::Atomic,
                    (false, 0) => StateKind::Parallel,
                    (false, _) => StateKind::Compound,
                };
                State {
                    id,
                    kind,
                    initial: initial
                        .filter(|(target, actions)| !(target.is_empty() && actions.is_empty()))
                        .map(|(target, actions)| Initial { target, actions }),
                    states,
                    on: on.into_iter().map(|(events, transitions)| On { events, transitions }).collect(),
                    always,
                    after: after
                        .into_iter()
                        .map(|((key, delay), transitions)| After { key: key.to_owned(), delay, transitions })
                        .collect(),
                    on_done,
                    entry,
                    exit,
                    invoke,
                    data: IndexMap::new(),
                    output,
                    tags,
                    description,
                    meta,
                }
            },
        )
        .boxed()
}

fn invoke() -> impl Strategy<Value = Invoke> {
    (
        option::of("[a-z]{1,2}"),
        option::of(template()),
        option::of(delay()),
        transitions(),
        transitions(),
        block(),
        any::<bool>(),
    )
        .prop_map(|(id, input, timeout, on_done, on_error, finalize, autoforward)| Invoke {
            src: "model".to_owned(),
            choose: None,
            id,
            id_location: None,
            input,
            timeout,
            on_done,
            on_error,
            finalize,
            autoforward,
        })
}

fn definition() -> impl Strategy<Value = Definition> {
    let charts = (state(2), state(0), vec(("[a-z]{1,2}", template()), 0..3), option::of(template()));
    (charts, block(), guard(), any::<bool>()).prop_map(|((mut root, plan, context, output), note, combined, strict)| {
        // In a charter these keys belong to the charter itself, so its root state cannot have them.
        (root.id, root.description, root.meta, root.output) = (None, None, Json::Null, None);
        if !matches!(root.kind, StateKind::Parallel | StateKind::Compound) {
            (root.kind, root.initial) = (StateKind::Atomic, None);
        }
        let combined = if matches!(combined, Guard::Name(_)) { Guard::Cel("true".to_owned()) } else { combined };
        // Open, because the actions assign random variables.
        let schema = value!({"type": "object", "additionalProperties": true});
        Definition {
            charter: 1,
            id: "t".to_owned(),
            version: "1.0.0".to_owned(),
            strict,
            roles: [("boss".to_owned(), Role::default())].into_iter().collect(),
            types: [("context".to_owned(), schema.clone())].into_iter().collect(),
            events: [(
                "GO".to_owned(),
                EventDecl { by: vec!["boss".to_owned()], while_paused: strict, ..EventDecl::default() },
            )]
            .into_iter()
            .collect(),
            rules: [
                ("R1".to_owned(), Template::Literal(value!("no"))),
                ("R2".to_owned(), Template::Cel("string(now)".to_owned())),
            ]
            .into_iter()
            .collect(),
            stream: strict.then(|| Stream {
                run: Some("item.run".to_owned()),
                clocks: [("c".to_owned(), "item.c".to_owned())].into_iter().collect(),
                duplicate: Some("R1".to_owned()),
                summary: [("s".to_owned(), "run.id".to_owned())].into_iter().collect(),
                ..Stream::default()
            }),
            projections: [(
                "turns".to_owned(),
                Projection {
                    description: None,
                    of: "done".to_owned(),
                    columns: [("n".to_owned(), "turn.n".to_owned())].into_iter().collect(),
                },
            )]
            .into_iter()
            .collect(),
            guards: [("rich".to_owned(), Guard::Cel("context.money > 1".to_owned())), ("ok".to_owned(), combined)]
                .into_iter()
                .collect(),
            actions: [("note".to_owned(), note)].into_iter().collect(),
            delays: [("soon".to_owned(), Delay::Ms(5))].into_iter().collect(),
            actors: [("model".to_owned(), ActorDecl { kind: "model".to_owned(), ..ActorDecl::default() })]
                .into_iter()
                .collect(),
            ledger: [("token".to_owned(), LedgerDecl::default())].into_iter().collect(),
            machines: [(
                "plan".to_owned(),
                Chart {
                    state: State { output: None, ..plan },
                    context_schema: Some(schema.clone()),
                    ..Chart::default()
                },
            )]
            .into_iter()
            .map(|(name, mut chart)| {
                if !matches!(chart.state.kind, StateKind::Atomic) {
                    (chart.state.kind, chart.state.initial) = (StateKind::Atomic, None);
                }
                (name, chart)
            })
            .collect(),
            root: Chart {
                state: root,
                context: context.into_iter().collect(),
                output,
                context_schema: Some(schema),
                input: None,
                settles: false,
            },
            ..Definition::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(30, 200), ..ProptestConfig::default() })]

    #[test]
    fn a_written_definition_reads_back(definition in definition()) {
        let text = json(&definition).unwrap();
        let again = read(&text, "t.json", &ReadOptions::default()).unwrap().definition;
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&definition).unwrap());
        // JSON is also YAML, except for keys longer than YAML allows.
        let yaml = read(&text, "t.yaml", &ReadOptions { syntax: charter_format::Syntax::Yaml, ..ReadOptions::default() }).unwrap().definition;
        prop_assert_eq!(again, yaml);
    }
}

#[test]
fn definitions_that_the_language_cannot_express_are_errors() {
    let mut definition = Definition { charter: 1, id: "t".to_owned(), strict: true, ..Definition::default() };
    assert!(json(&definition).is_ok());
    definition.root.state.description = Some("lost".to_owned());
    assert_eq!(json(&definition).unwrap_err().at, "/root/state/description");
    definition.root.state.description = None;
    definition
        .root
        .state
        .always
        .push(Transition { guard: Some(Guard::Name("nobody".to_owned())), ..Transition::default() });
    assert_eq!(json(&definition).unwrap_err().message, "undefined guard `nobody` (at `always.guard`)");
}

#[test]
fn templates_are_compared_after_normalization() {
    let mut definition = Definition { charter: 1, id: "t".to_owned(), strict: true, ..Definition::default() };
    let list = Template::List(vec![Template::Literal(value!(1)), Template::Object(IndexMap::new())]);
    definition.root.context.insert("x".to_owned(), list);
    let again = read(&json(&definition).unwrap(), "t.json", &ReadOptions::default()).unwrap().definition;
    assert_eq!(again.root.context["x"], Template::Literal(value!([1, {}])));
}

//! Tests the content of diagrams, escaping, and determinism.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use charter_diagram::{MAX_STATES, Marks, Overlay, dot, mermaid, svg};
use charter_test_support::definition;

const DOOR: &str = "
charter: 1
id: door
roles: {guest: , guard: }
guards: {paid: 'true'}
machines: {lamp: {states: {dark: {on: {SWITCH: lit}}, lit: }}}
ledger: {key: }
initial: closed
states:
  closed:
    on:
      OPEN: {target: open, by: guest, guard: paid, requires: {use: {kind: key, key: k}}}
      KNOCK: {}
    after: {1h: locked}
  open:
    initial: ajar
    states:
      ajar: {on: {PUSH: wide}}
      wide: {on: {PULL: ajar}}
      back: {type: history, target: wide}
    on: {CLOSE: closed}
  locked:
    type: parallel
    onDone: gone
    states:
      bolt: {initial: out, states: {out: {type: final}}}
      alarm: {}
  gone: {type: final}
";

fn marked() -> Overlay {
    let root = Marks { active: ["open.wide".to_owned()].into(), taken: ["closed/on/OPEN/0".to_owned()].into() };
    Overlay { root, ..Overlay::default() }
}

#[test]
fn in_mermaid() {
    insta::assert_snapshot!(mermaid(&definition(DOOR), &marked()), @r##"
    stateDiagram-v2
        state "door" as s0 {
            [*] --> s1
            state "closed" as s1
            s1 : KNOCK
            state "open" as s2 {
                [*] --> s3
                state "ajar" as s3
                state "wide" as s4
                state "back (H)" as s5
            }
            state "locked" as s6 {
                state "bolt" as s7 {
                    [*] --> s8
                    state "out" as s8
                    s8 --> [*]
                }
                --
                state "alarm" as s9
            }
            state "gone" as s10
            s10 --> [*]
        }
        s5 --> s4
        s1 --> s2 : ✓ OPEN [paid] / by guest, permit
        s1 --> s6 : after 1h
        s2 --> s1 : CLOSE
        s3 --> s4 : PUSH
        s4 --> s3 : PULL
        s6 --> s10 : done
        note right of s1
            OPEN by guest
            OPEN uses a key
        end note
        state "lamp" as m1_0 {
            [*] --> m1_1
            state "dark" as m1_1
            state "lit" as m1_2
        }
        m1_1 --> m1_2 : SWITCH
        classDef active fill:#d3f2dc,stroke:#1a7f37,stroke-width:3px
        class s2,s4 active
    "##);
}

#[test]
fn in_dot() {
    insta::assert_snapshot!(dot(&definition(DOOR), &marked()), @r##"
    digraph charter {
      compound=true;
      rankdir=TB;
      fontname="Helvetica";
      node [fontname="Helvetica", fontsize=11, shape=box, style="rounded,filled", fillcolor=white];
      edge [fontname="Helvetica", fontsize=10];
      subgraph cluster_n0_0 {
        label="door"; style="rounded"; color="#57606a";
        n0_0 [shape=point, width=0.12, style=filled, fillcolor=black, label=""];
        n0_1 [label="closed\nKNOCK"];
        subgraph cluster_n0_2 {
          label="open"; style="rounded"; color="#1a7f37";
          n0_2 [shape=point, width=0.12, style=filled, fillcolor=black, label=""];
          n0_3 [label="ajar"];
          n0_4 [label="wide", fillcolor="#d3f2dc", color="#1a7f37", penwidth=2];
          n0_5 [label="H", shape=circle];
        }
        subgraph cluster_n0_6 {
          label="locked"; style="rounded,dashed"; color="#57606a";
          n0_6 [shape=point, style=invis, label=""];
          subgraph cluster_n0_7 {
            label="bolt"; style="rounded"; color="#57606a";
            n0_7 [shape=point, width=0.12, style=filled, fillcolor=black, label=""];
            n0_8 [label="out", peripheries=2];
          }
          n0_9 [label="alarm"];
        }
        n0_10 [label="gone", peripheries=2];
      }
      n0_0 -> n0_1 [arrowsize=0.7];
      n0_2 -> n0_3 [arrowsize=0.7];
      n0_5 -> n0_4 [style=dashed];
      n0_7 -> n0_8 [arrowsize=0.7];
      n0_1 -> n0_2 [label="OPEN [paid] / by guest, permit", lhead=cluster_n0_2, color="#1a7f37", penwidth=2.5];
      n0_1 -> n0_6 [label="after 1h", lhead=cluster_n0_6];
      n0_2 -> n0_1 [label="CLOSE", ltail=cluster_n0_2];
      n0_3 -> n0_4 [label="PUSH"];
      n0_4 -> n0_3 [label="PULL"];
      n0_6 -> n0_10 [label="done", ltail=cluster_n0_6];
      subgraph cluster_n1_0 {
        label="lamp"; style="rounded"; color="#57606a";
        n1_0 [shape=point, width=0.12, style=filled, fillcolor=black, label=""];
        n1_1 [label="dark"];
        n1_2 [label="lit"];
      }
      n1_0 -> n1_1 [arrowsize=0.7];
      n1_1 -> n1_2 [label="SWITCH"];
    }
    "##);
}

#[test]
fn in_svg() {
    let picture = svg(&definition(DOOR), &marked());
    let texts: Vec<&str> = picture
        .lines()
        .filter(|line| line.starts_with("<text"))
        .map(|line| line.split(['>', '<']).nth(2).unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "door",
            "closed",
            "KNOCK",
            "open",
            "ajar",
            "wide",
            "H",
            "locked",
            "bolt",
            "out",
            "alarm",
            "gone",
            "OPEN",
            "[paid]",
            "/ by guest, permit",
            "after 1h",
            "CLOSE",
            "PUSH",
            "PULL",
            "done",
            "lamp",
            "dark",
            "lit",
            "SWITCH"
        ]
    );
    assert_eq!(picture.matches("active\"").count(), 2, "`open` and `open.wide`");
    assert_eq!(picture.matches("arrow taken\"").count(), 1);
    assert_eq!(picture.matches(">H</text>").count(), 1);
    assert_eq!(picture, svg(&definition(DOOR), &marked()));
}

#[test]
fn a_flat_chart_needs_no_frame_in_mermaid() {
    insta::assert_snapshot!(mermaid(&definition("charter: 1\nid: t\nstates: {a: {on: {GO: b}, always: {when: 'x == 1', target: b}}, b: {type: final}}"), &Overlay::default()), @r##"
    stateDiagram-v2
        [*] --> s1
        state "a" as s1
        state "b" as s2
        s2 --> [*]
        s1 --> s2 : GO
        s1 --> s2 : always [x == 1]
    "##);
}

/// Returns the names of all tags. Asserts that every tag is closed and that text contains no
/// markup.
fn tags(svg: &str) -> Vec<String> {
    let mut open = Vec::new();
    let mut seen = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (inside, text) = tag.split_once('>').expect("a tag that ends");
        assert!(!text.contains('>'), "{text}");
        let name = inside.trim_matches('/').split([' ', '\n']).next().unwrap().to_owned();
        if inside.starts_with('/') {
            assert_eq!(open.pop().as_ref(), Some(&name));
        } else if !inside.ends_with('/') {
            open.push(name.clone());
        }
        seen.push(name);
    }
    assert!(open.is_empty(), "{open:?}");
    seen.sort();
    seen.dedup();
    seen
}

#[test]
fn names_never_become_markup() {
    let evil = [
        r#"</text><script>alert(1)</script>"#,
        r#""><img src=x onerror="alert(1)">"#,
        "a\"] evil [label=\"b\" // ' & \u{1}\u{7f} }",
        "]]> --> x : y ; %% note } state",
        "%%{init: {}}%%\nclick s1 href \"javascript:alert(1)\"",
    ];
    for name in evil {
        let quoted = serde_json::to_string(name).unwrap();
        // A role has no characters that are not seen.
        let seen: String = name.chars().filter(|c| !c.is_control()).collect();
        let role = serde_json::to_string(&seen).unwrap();
        let source = format!(
            "{{\"charter\": 1, \"id\": \"t\", \"title\": {quoted}, \"roles\": {{{role}: {{}}}}, \"guards\": {{{quoted}: \"true\"}}, \"states\": {{{quoted}: {{\"on\": {{{quoted}: {{\"target\": \"#b\", \"by\": {role}, \"guard\": {quoted}, \"when\": {quoted}}}}}, \"states\": {{{quoted}: {{\"type\": \"final\"}}}}}}, \"b\": {{\"id\": \"b\", \"type\": \"history\"}}}}}}"
        );
        let definition = definition(&source);
        let picture = svg(&definition, &Overlay::default());
        assert_eq!(
            tags(&picture),
            ["circle", "defs", "g", "marker", "path", "rect", "style", "svg", "text", "title"],
            "{picture}"
        );
        assert!(!picture.chars().any(|c| c.is_control() && c != '\n'));
        let diagram = mermaid(&definition, &Overlay::default());
        for line in diagram.lines().skip(1) {
            let line = line.trim();
            let known = ["state \"", "[*] -->", "s1", "s2", "s3", "note right of s", "end note", "}"]
                .iter()
                .any(|start| line.starts_with(start));
            // Lines inside a note are text.
            assert!(
                known
                    || line.starts_with(|c: char| !c.is_ascii_alphanumeric())
                    || line.contains("by ")
                    || line.contains("when "),
                "{line}"
            );
            assert!(!line.contains("script>") && !line.contains("%%") && line.matches('"').count() % 2 == 0, "{line}");
        }
        for line in dot(&definition, &Overlay::default()).lines() {
            let bare = line.replace("\\\\", "").replace("\\\"", "");
            assert_eq!(bare.matches('"').count() % 2, 0, "{line}");
        }
    }
}

#[test]
fn a_deeply_nested_statechart_has_a_message_instead() {
    let nested = |depth: usize| {
        let state = |inner: String, _| format!("{{initial: s, states: {{s: {inner}}}}}");
        let states = (0..depth).fold("{on: {E: {}}}".to_owned(), state);
        svg(
            &definition(&format!("charter: 1\nid: t\nevents: {{E: {{}}}}\nstates: {{a: {states}}}")),
            &Overlay::default(),
        )
    };
    let picture = nested(60);
    assert!(picture.contains("62 states nested 61 deep: too deep to draw"), "{picture}");
    assert!(!nested(10).contains("too deep"));
}

#[test]
fn a_large_statechart_has_a_message_instead() {
    let states: String = (0..MAX_STATES).map(|n| format!("  s{n}: {{}}\n")).collect();
    let picture = svg(&definition(&format!("charter: 1\nid: t\nstates:\n{states}")), &Overlay::default());
    assert!(picture.contains("251 states and 0 arrows: too many to draw"), "{picture}");
}

#[test]
fn transitions_of_one_event_are_numbered_in_the_order_of_evaluation() {
    let chart = "
charter: 1
id: order
initial: a
states:
  a: {on: {GO: [{guard: high, target: b}, {target: c}], OTHER: b}}
  b: {}
  c: {}
guards: {high: 'true'}
";
    let picture = mermaid(&definition(chart), &Overlay::default());
    for label in [": 1. GO [high]\n", ": 2. GO\n", ": OTHER\n"] {
        assert!(picture.contains(label), "{picture}");
    }
}

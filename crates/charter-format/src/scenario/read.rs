//! Reads scenario files.

use std::sync::Arc;

use charter_expr::ExprTimestamp;
use charter_kernel::Principal;
use charter_kernel::definition::{Delay, Template};

use super::{
    Act, Computed, Expectation, ExpectedRefusal, Scenario, ScenarioFile, ScenarioStep, Sender, Sending, Tick, What,
};
use crate::diagnostic::{Diagnostic, Diagnostics, Sink, codes};
use crate::grammar::{Form, check, scenario as grammar};
use crate::read::context::{Context, text};
use crate::read::delay;
use crate::read::template::template;
use crate::source::{self, Entry, Node, Span, Syntax, Value};

/// Whether a source text is a scenario file rather than a charter.
#[must_use]
pub fn is_scenario_file(source: &str, name: &str) -> bool {
    let parsed = source::parse(source, name, Syntax::Auto);
    let has = |key: &str| parsed.as_ref().is_ok_and(|parsed| parsed.root.entry(key).is_some());
    ["steps", "scenarios"].iter().any(|key| has(key)) && !has("states")
}

/// Reads a scenario file. `name` (usually a path) is used in messages; if it ends in `.json`, the
/// text is parsed as JSON.
///
/// # Errors
/// Returns the errors in the text, in source order. After a syntax error, nothing else is reported.
pub fn read_scenarios(source: &str, name: &str) -> Result<ScenarioFile, Diagnostics> {
    let source: Arc<str> = Arc::from(source);
    let fail = |sink: Sink, root: Option<&Node>| {
        let (list, omitted) = sink.finish(&source, root);
        Diagnostics { name: name.to_owned(), source: Arc::clone(&source), list, omitted }
    };
    let root = match source::parse(&source, name, Syntax::Auto) {
        Ok(parsed) => parsed.root,
        Err(problem) => {
            let mut sink = Sink::default();
            sink.push(problem);
            return Err(fail(sink, None));
        }
    };
    let mut reader = ScenarioReader { cx: Context::new(&source), next: 0, roles: Vec::new() };
    check::check(&root, &Form::Object(&grammar::FILE), &mut reader.cx.sink);
    let scenarios = reader.file(&root, name);
    let (mut cx, roles) = (reader.cx, reader.roles);
    if cx.sink.errors > 0 {
        return Err(fail(cx.sink, Some(&root)));
    }
    let places = std::mem::take(&mut cx.places);
    let (warnings, _) = cx.sink.finish(&source, Some(&root));
    Ok(ScenarioFile {
        name: name.to_owned(),
        charter: root.get("charter").map(text),
        scenarios,
        warnings,
        roles,
        root: Arc::new(root),
        places,
        source,
    })
}

struct ScenarioReader<'s> {
    cx: Context<'s>,
    /// The index of the next computed value.
    next: usize,
    /// The roles that the file names, and where.
    roles: Vec<(String, Span)>,
}

// The grammar check has already reported missing values and values of the wrong type; here they get
// defaults.
impl ScenarioReader<'_> {
    fn file(&mut self, root: &Node, name: &str) -> Vec<Scenario> {
        let before = root.get("before").map(|steps| self.steps(steps));
        let shared = self.scenario(root, file_stem(name), None, before.unwrap_or_default());
        match root.get("scenarios").map(Node::items) {
            None => vec![shared],
            Some(list) => {
                let numbered = list.iter().zip(1_usize..);
                numbered
                    .map(|(node, number)| {
                        let fallback = format!("{} {number}", shared.name);
                        self.scenario(node, &fallback, Some(&shared), shared.steps.clone())
                    })
                    .collect()
            }
        }
    }

    fn scenario(&mut self, node: &Node, name: &str, shared: Option<&Scenario>, before: Vec<ScenarioStep>) -> Scenario {
        let mut principals = shared.map(|s| s.principals.clone()).unwrap_or_default();
        for entry in node.get("principals").map(Node::entries).unwrap_or_default() {
            principals.insert(entry.key.text.clone(), self.principal(&entry.key.text, &entry.value));
        }
        let mut steps = before;
        if let Some(own) = node.get("steps") {
            steps.extend(self.steps(own));
        }
        let input = node.get("input").map(|value| self.computed(value));
        let refused = node.entry("refused");
        Scenario {
            name: node.get("name").map_or_else(|| name.to_owned(), text),
            span: node
                .entry("name")
                .map_or_else(|| Span::new(node.span.start, node.span.start), |entry| entry.value.span),
            principals,
            input: input.or_else(|| shared.and_then(|s| s.input.clone())),
            at: match node.get("at") {
                Some(at) => self.timestamp(at),
                None => shared.map_or(0, |s| s.at),
            },
            starter: node
                .get("as")
                .map(|name| Sender { id: text(name), ..Sender::default() })
                .or_else(|| shared.and_then(|s| s.starter.clone())),
            refused: refused.map(|entry| (entry.key.span, refusal(&entry.value))),
            steps,
        }
    }

    fn steps(&mut self, node: &Node) -> Vec<ScenarioStep> {
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => &[],
        };
        items.iter().filter_map(|item| self.step(item)).collect()
    }

    fn step(&mut self, node: &Node) -> Option<ScenarioStep> {
        let entry = node.entries().iter().find(|entry| entry.key.text != "description")?;
        Some(ScenarioStep { act: self.act(entry)?, span: head(entry), description: node.get("description").map(text) })
    }

    fn act(&mut self, entry: &Entry) -> Option<Act> {
        let node = &entry.value;
        Some(match entry.key.text.as_str() {
            "send" => Act::Send(self.sending(node)),
            "refused" => Act::Refused(self.sending(node), refusal(node)),
            "done" => {
                let mut sending = self.sending(node);
                sending.what = What::Done {
                    actor: text_at(node, "actor"),
                    output: node.get("output").map(|value| self.computed(value)),
                };
                Act::Send(sending)
            }
            "error" => {
                let mut sending = self.sending(node);
                sending.what = What::Failed {
                    actor: text_at(node, "actor"),
                    error: node.get("error").map(|value| self.computed(value)),
                };
                Act::Send(sending)
            }
            "expect" => Act::Expect(Box::new(self.expectation(node))),
            "tick" => Act::Tick(self.tick(node)),
            "restore" => Act::Restore,
            "repeat" => Act::Repeat {
                times: node.get("times").map_or(1, number),
                steps: node.get("steps").map(|steps| self.steps(steps)).unwrap_or_default(),
            },
            _ => return None,
        })
    }

    fn sending(&mut self, node: &Node) -> Sending {
        let actor = node.get("actor").map(text);
        let what = match (actor, node.get("error")) {
            (None, _) => {
                What::Event { kind: text_at(node, "type"), data: node.get("data").map(|value| self.computed(value)) }
            }
            (Some(actor), None) => What::Done { actor, output: node.get("output").map(|value| self.computed(value)) },
            (Some(actor), Some(error)) => What::Failed { actor, error: Some(self.computed(error)) },
        };
        Sending {
            what,
            to: node.get("to").map(text),
            at: node.get("at").map(|at| self.timestamp(at)),
            sender: self.sender(node),
            expected_seq: node
                .get("expected_seq")
                .map(|seq| seq.whole().and_then(|seq| u64::try_from(seq).ok()).unwrap_or_default()),
            taken_by: node.get("taken_by").map(text),
            verdict: match text_at(node, "verdict").as_str() {
                "vote" => "vote",
                "ignored" => "ignored",
                "late" => "late",
                _ => "accepted",
            },
        }
    }

    fn sender(&mut self, node: &Node) -> Sender {
        Sender {
            id: text_at(node, "as"),
            roles: node.get("roles").map(|roles| self.roles(roles)),
            kind: word(node, "kind"),
            auth: word(node, "auth"),
        }
    }

    /// Reads an entry of `principals`.
    fn principal(&mut self, id: &str, node: &Node) -> Principal {
        let known = Principal::new(id, &[]);
        match &node.value {
            Value::Map(_) => Principal {
                roles: node.get("roles").map(|roles| self.roles(roles)).unwrap_or_default(),
                kind: word(node, "kind"),
                auth: word(node, "auth"),
                ..known
            },
            _ => Principal { roles: self.roles(node), ..known },
        }
    }

    fn roles(&mut self, node: &Node) -> Vec<String> {
        self.roles.extend(node.one_or_many().iter().map(|role| (text(role), role.span)));
        texts(node)
    }

    fn expectation(&mut self, node: &Node) -> Expectation {
        let mut expect = Expectation::default();
        for entry in node.entries() {
            let value = &entry.value;
            expect.spans.insert(entry.key.text.clone(), head(entry));
            match entry.key.text.as_str() {
                "actor" => expect.actor = Some(text(value)),
                "state" => expect.state = Some(texts(value)),
                "status" => expect.status = Some(text(value)),
                "context" => {
                    for variable in value.entries() {
                        let computed = self.computed(&variable.value);
                        expect.context.insert(variable.key.text.clone(), computed);
                    }
                }
                "output" => expect.output = Some(self.computed(value)),
                "invocations" => expect.invocations = Some(texts(value)),
                "effects" => {
                    let list = list(value).iter().map(|item| self.computed(item));
                    expect.effects = Some(list.collect());
                }
                "legal" => expect.legal = Some((self.sender(node), texts(value))),
                "ledger" => expect.ledger = Some(self.computed(value)),
                "actors" => expect.actors = Some(texts(value)),
                "stuck" => expect.stuck = Some(value.value == Value::Bool(true)),
                "assert" => {
                    let conditions = value.one_or_many().iter().map(|item| self.condition(item));
                    expect.assert = conditions.collect();
                }
                _ => {}
            }
        }
        expect
    }

    fn tick(&mut self, node: &Node) -> Tick {
        if let Some(text) = node.text()
            && let Some(timestamp) = parse_timestamp(text)
        {
            return Tick::Until(timestamp);
        }
        match delay::read(node) {
            Ok(delay) => Tick::For(delay),
            Err(problem) => {
                let help = "write a duration such as `72h` or `1h30m`, a name from `delays`, or a timestamp such as `2026-11-21T10:00:00Z`";
                let mut problem = problem;
                problem.help = Some(help.to_owned());
                self.cx.report(problem);
                Tick::For(Delay::Ms(0))
            }
        }
    }

    fn timestamp(&mut self, node: &Node) -> i64 {
        let read = match &node.value {
            Value::Text(text) => parse_timestamp(&text.text),
            // The grammar check reports what is not a number.
            _ => Some(node.whole().unwrap_or(0)),
        };
        if read.is_none() {
            let message = format!("invalid timestamp `{}`", node.text().unwrap_or_default());
            let help = "write RFC 3339, such as `2026-11-21T10:00:00Z`, or milliseconds since 1970";
            self.cx.report(Diagnostic::error(codes::VALUE, node.span, message).help(help));
        }
        read.unwrap_or_default()
    }

    fn computed(&mut self, node: &Node) -> Computed {
        self.numbered(node, |cx| by_value(template(cx, node)))
    }

    fn condition(&mut self, node: &Node) -> Computed {
        self.numbered(node, |cx| Template::Cel(cx.cel(node)))
    }

    fn numbered(&mut self, node: &Node, read: impl FnOnce(&mut Context) -> Template) -> Computed {
        let key = self.next.to_string();
        self.next = self.next.saturating_add(1);
        Computed {
            template: self.cx.at(&key, |cx| {
                cx.mark(node.span);
                read(cx)
            }),
            at: format!("/{key}"),
            span: node.span,
        }
    }
}

fn parse_timestamp(text: &str) -> Option<i64> {
    ExprTimestamp::parse(text).ok().map(ExprTimestamp::millis)
}

fn refusal(node: &Node) -> ExpectedRefusal {
    ExpectedRefusal {
        code: text_at(node, "code"),
        rule: node.get("rule").map(text),
        message: node.get("message").map(text),
    }
}

/// Reads a word; the grammar check has reported unknown ones.
fn word<T: std::str::FromStr>(node: &Node, key: &str) -> Option<T> {
    node.get(key)?.text()?.parse().ok()
}

fn text_at(node: &Node, key: &str) -> String {
    node.get(key).map(text).unwrap_or_default()
}

fn texts(node: &Node) -> Vec<String> {
    node.one_or_many().iter().map(text).collect()
}

fn list(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => &[],
    }
}

/// A literal in a scenario is compared with data, so its notation does not matter.
fn by_value(template: Template) -> Template {
    match template {
        Template::Literal(mut json) => {
            charter_expr::json::normalize(&mut json);
            Template::Literal(json)
        }
        Template::List(items) => Template::List(items.into_iter().map(by_value).collect()),
        Template::Object(fields) => Template::Object(fields.into_iter().map(|(k, v)| (k, by_value(v))).collect()),
        cel => cel,
    }
}

fn number(node: &Node) -> u32 {
    node.whole().and_then(|value| u32::try_from(value).ok()).unwrap_or(1)
}

fn file_stem(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.split_once('.').map_or(file, |(stem, _)| stem)
}

/// The span of an entry; only its first line is underlined.
fn head(entry: &Entry) -> Span {
    Span::new(entry.key.span.start, entry.value.span.end.max(entry.key.span.end))
}

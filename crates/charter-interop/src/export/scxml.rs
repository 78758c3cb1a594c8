//! Exports SCXML documents (data model `cel`). The variables of a charter become fields of a
//! variable `context`, so that expressions keep their meaning. What SCXML cannot express is written
//! in the namespace `urn:charter:1`, and the charter itself in `<charter:definition>`.

use std::fmt::Write as _;

use charter_kernel::definition::{Action, Block, Delay, Guard, Initial, State, StateKind, Template, Transition};
use charter_kernel::{Definition, Digest, Machine, Outline};

use super::{flat, kind, text};
use crate::import::scxml::xml::CHARTER;

const OPEN: &str = "  <charter:definition seal=\"";
const CLOSE: &str = "]]></charter:definition>\n";

/// Exports a charter as an SCXML document, which [`crate::import::scxml`] imports as the same
/// charter.
///
/// Other SCXML processors can read its states, transitions and actions, but conditions and values
/// are in CEL, and roles, unique keys, ledger and interlocks are only in the embedded charter.
/// Named guards are inlined. Services of the host become invocations of type
/// `urn:charter:actor`, which other processors cannot start.
#[must_use]
pub fn scxml(machine: &Machine) -> String {
    let definition = machine.definition();
    let outlines = machine.outlines();
    let Some(outline) = outlines.first() else {
        return String::new();
    };
    let writer = ScxmlWriter { definition, outline, ids: ids(&definition.root.state) };
    let mut head = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let name = escape(definition.title.as_deref().unwrap_or(&definition.id));
    let _ = writeln!(
        head,
        "<scxml xmlns=\"http://www.w3.org/2005/07/scxml\" xmlns:charter=\"{CHARTER}\" version=\"1.0\" datamodel=\"cel\" name=\"{name}\"{}>",
        writer.initial_attribute(0)
    );
    let body = format!("{}</scxml>\n", writer.body());
    let seal = Digest::of_bytes(format!("{head}{body}").as_bytes());
    // A CDATA section cannot contain its own end marker, which occurs only inside strings in JSON.
    let json = text(definition).replace("]]>", "]]\\u003e");
    format!("{head}{OPEN}{seal}\"><![CDATA[{json}{CLOSE}{body}")
}

/// The charter embedded in a document.
pub(crate) enum Embedded {
    /// The document is unchanged since its export.
    Unchanged(Box<Definition>),
    /// The document was edited after its export.
    Edited,
    /// The document does not embed a charter.
    None,
}

/// Finds the charter embedded in a document.
pub(crate) fn embedded(source: &str) -> Embedded {
    let Some((head, rest)) = source.split_once(OPEN) else {
        return Embedded::None;
    };
    let parts = rest.split_once("\"><![CDATA[").and_then(|(seal, rest)| Some((seal, rest.split_once(CLOSE)?)));
    let Some((seal, (json, body))) = parts else {
        return Embedded::Edited;
    };
    let unchanged = Digest::of_bytes(format!("{head}{body}").as_bytes()).to_string() == seal;
    match charter_expr::strict_json::typed(json) {
        Ok(definition) if unchanged => Embedded::Unchanged(Box::new(definition)),
        _ => Embedded::Edited,
    }
}

/// Returns a unique XML id for each state by index, derived from its id or path.
fn ids(root: &State) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let mut found = Vec::new();
    for (state, path) in flat(root) {
        let wanted = state.id.clone().unwrap_or_else(|| path.join("."));
        let mut id: String =
            wanted.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
        if !id.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            id.insert(0, '_');
        }
        while !taken.insert(id.clone()) {
            id.push('_');
        }
        found.push(id);
    }
    found
}

struct ScxmlWriter<'m> {
    definition: &'m Definition,
    outline: &'m Outline<'m>,
    ids: Vec<String>,
}

impl ScxmlWriter<'_> {
    fn id(&self, number: u32) -> &str {
        self.ids.get(number as usize).map_or("", String::as_str)
    }

    fn ids_of(&self, numbers: &[u32]) -> String {
        numbers.iter().map(|n| self.id(*n)).collect::<Vec<_>>().join(" ")
    }

    fn initial_attribute(&self, number: u32) -> String {
        let targets = self.outline.states.get(number as usize).map(|s| s.initial).unwrap_or_default();
        if targets.is_empty() { String::new() } else { format!(" initial=\"{}\"", self.ids_of(targets)) }
    }

    fn body(&self) -> String {
        let mut out = String::new();
        let fields: Vec<String> = self
            .definition
            .root
            .context
            .iter()
            .map(|(name, value)| format!("{}: {}", quoted(name), cel(value)))
            .collect();
        let _ = writeln!(
            out,
            "  <datamodel>\n    <data id=\"context\" expr=\"{}\"/>\n  </datamodel>",
            escape(&format!("{{{}}}", fields.join(", ")))
        );
        let states = flat(&self.definition.root.state);
        let mut open: Vec<(u32, &'static str)> = Vec::new();
        for (number, (state, path)) in (0u32..).zip(&states) {
            let Some(outline) = self.outline.states.get(number as usize) else {
                continue;
            };
            self.close(&mut open, number, &mut out);
            let depth = path.len();
            if number > 0 {
                let tag = match kind(state) {
                    StateKind::Parallel => "parallel",
                    StateKind::Final => "final",
                    StateKind::Shallow | StateKind::Deep => "history",
                    StateKind::Atomic | StateKind::Compound => "state",
                };
                self.open(state, number, tag, depth, &mut out);
                open.push((outline.last, tag));
            }
            self.inside(state, number, depth, &mut out);
        }
        self.close(&mut open, u32::MAX, &mut out);
        out
    }

    fn close(&self, open: &mut Vec<(u32, &'static str)>, number: u32, out: &mut String) {
        while let Some((_, tag)) = open.last().filter(|(last, _)| number > *last).copied() {
            let depth = open.len();
            let _ = writeln!(out, "{}</{tag}>", indent(depth));
            open.pop();
        }
    }

    fn open(&self, state: &State, number: u32, tag: &str, depth: usize, out: &mut String) {
        let pad = indent(depth);
        let plain = state.initial.as_ref().is_none_or(|i| i.actions.is_empty());
        let initial =
            if kind(state) == StateKind::Compound && plain { self.initial_attribute(number) } else { String::new() };
        let deep = if kind(state) == StateKind::Deep { " type=\"deep\"" } else { "" };
        let _ = writeln!(out, "{pad}<{tag} id=\"{}\"{initial}{deep}>", self.id(number));
    }

    fn inside(&self, state: &State, number: u32, depth: usize, out: &mut String) {
        let pad = indent(depth.saturating_add(1));
        let targets = self.outline.states.get(number as usize).map(|s| s.initial).unwrap_or_default();
        match (kind(state), &state.initial) {
            (StateKind::Shallow | StateKind::Deep, Some(Initial { actions, .. })) => {
                let _ = writeln!(
                    out,
                    "{pad}<transition target=\"{}\">{}</transition>",
                    self.ids_of(targets),
                    block(actions)
                );
            }
            (StateKind::Compound, Some(Initial { actions, .. })) if !actions.is_empty() && number > 0 => {
                let _ = writeln!(
                    out,
                    "{pad}<initial><transition target=\"{}\">{}</transition></initial>",
                    self.ids_of(targets),
                    block(actions)
                );
            }
            _ => {}
        }
        if number == 0 {
            return;
        }
        for (tag, blocks) in [("onentry", &state.entry), ("onexit", &state.exit)] {
            for actions in blocks {
                let _ = writeln!(out, "{pad}<{tag}>{}</{tag}>", block(actions));
            }
        }
        for (index, after) in state.after.iter().enumerate() {
            let delay = match &after.delay {
                Delay::Ms(ms) => format!("delay=\"{ms}ms\""),
                Delay::Name(name) => format!("charter:delay=\"{}\"", escape(name)),
                Delay::Cel(cel) => format!("delayexpr=\"{}\"", escape(&translated(cel))),
            };
            let id = format!("after.{index}.{}", self.id(number));
            let _ = writeln!(out, "{pad}<onentry><send id=\"{id}\" event=\"{id}\" {delay}/></onentry>");
            let _ = writeln!(out, "{pad}<onexit><cancel sendid=\"{id}\"/></onexit>");
        }
        for invoke in &state.invoke {
            let id = invoke.id.as_deref().unwrap_or(&invoke.src);
            let _ = writeln!(
                out,
                "{pad}<invoke type=\"urn:charter:actor\" src=\"{}\" id=\"{}\"/>",
                escape(&invoke.src),
                escape(id)
            );
        }
        if let Some(output) = &state.output {
            let _ = writeln!(out, "{pad}<donedata><content expr=\"{}\"/></donedata>", escape(&cel(output)));
        }
        self.transitions(state, number, &pad, out);
    }

    fn transitions(&self, state: &State, number: u32, pad: &str, out: &mut String) {
        let mut of_source = self.outline.transitions.iter().filter(|t| t.source == number);
        let mut write = |event: Option<String>, t: &Transition| {
            // The kernel lists the transitions of a state in the same order.
            let targets = of_source.next().map(|o| self.ids_of(o.targets)).unwrap_or_default();
            let mut attributes = String::new();
            if let Some(event) = event {
                let _ = write!(attributes, " event=\"{}\"", escape(&event));
            }
            if let Some(cond) = self.condition(t) {
                let _ = write!(attributes, " cond=\"{}\"", escape(&cond));
            }
            if !targets.is_empty() {
                let _ = write!(attributes, " target=\"{targets}\"");
                if !t.reenter {
                    attributes.push_str(" type=\"internal\"");
                }
            }
            if !t.by.is_empty() {
                let _ = write!(attributes, " charter:by=\"{}\"", escape(&t.by.join(" ")));
            }
            let _ = writeln!(out, "{pad}<transition{attributes}>{}</transition>", block(&t.actions));
        };
        for on in &state.on {
            on.transitions.iter().for_each(|t| write(Some(on.events.join(" ")), t));
        }
        for invoke in &state.invoke {
            let id = invoke.id.as_deref().unwrap_or(&invoke.src);
            invoke.on_done.iter().for_each(|t| write(Some(format!("done.invoke.{id}")), t));
            invoke.on_error.iter().for_each(|t| write(Some(format!("error.invoke.{id}")), t));
        }
        let id = self.id(number);
        state.on_done.iter().for_each(|t| write(Some(format!("done.state.{id}")), t));
        for (index, after) in state.after.iter().enumerate() {
            after.transitions.iter().for_each(|t| write(Some(format!("after.{index}.{id}")), t));
        }
        state.always.iter().for_each(|t| write(None, t));
    }

    fn condition(&self, t: &Transition) -> Option<String> {
        let guard = t.guard.as_ref().map(|g| self.guard(g, 0));
        let when = t.when.as_ref().map(|w| translated(w));
        match (guard, when) {
            (Some(guard), Some(when)) => Some(format!("({guard}) && ({when})")),
            (guard, when) => guard.or(when),
        }
    }

    fn guard(&self, guard: &Guard, depth: usize) -> String {
        let join = |list: &[Guard], sign: &str, none: &str| {
            let parts: Vec<String> =
                list.iter().map(|g| format!("({})", self.guard(g, depth.saturating_add(1)))).collect();
            if parts.is_empty() { none.to_owned() } else { parts.join(sign) }
        };
        match guard {
            Guard::Cel(cel) => translated(cel),
            // The kernel refuses cyclic guards; the limit is only a safeguard.
            Guard::Name(name) if depth < 100 => self
                .definition
                .guards
                .get(name)
                .map_or_else(|| "false".to_owned(), |g| self.guard(g, depth.saturating_add(1))),
            Guard::Name(_) => "false".to_owned(),
            Guard::And(list) => join(list, " && ", "true"),
            Guard::Or(list) => join(list, " || ", "false"),
            Guard::Not(guard) => format!("!({})", self.guard(guard, depth.saturating_add(1))),
        }
    }
}

/// Writes actions as SCXML elements, or as elements of the `charter` namespace if SCXML has none.
fn block(actions: &Block) -> String {
    actions.iter().map(action).collect()
}

fn action(action: &Action) -> String {
    match action {
        Action::Assign(places) => places
            .iter()
            .map(|(path, value)| {
                format!("<assign location=\"context.{}\" expr=\"{}\"/>", escape(path), escape(&cel(value)))
            })
            .collect(),
        Action::Raise { r#type: Template::Literal(serde_json::Value::String(event)), data: None } => {
            format!("<raise event=\"{}\"/>", escape(event))
        }
        Action::Log { value, label } => {
            let label = label.as_ref().map(|l| format!(" label=\"{}\"", escape(l))).unwrap_or_default();
            format!("<log{label} expr=\"{}\"/>", escape(&cel(value)))
        }
        Action::Cancel(id) => format!("<cancel sendidexpr=\"{}\"/>", escape(&cel(id))),
        Action::If(branches) => {
            let mut out = String::new();
            for (index, branch) in branches.iter().enumerate() {
                let cond = branch.when.as_ref().map(|w| escape(&translated(w)));
                out.push_str(&match (index, cond) {
                    (0, cond) => format!("<if cond=\"{}\">", cond.unwrap_or_else(|| "true".into())),
                    (_, Some(cond)) => format!("<elseif cond=\"{cond}\"/>"),
                    (_, None) => "<else/>".to_owned(),
                });
                out.push_str(&block(&branch.r#do));
            }
            out.push_str("</if>");
            out
        }
        other => {
            let json = serde_json::to_string(other).unwrap_or_default();
            format!("<charter:action json=\"{}\"/>", escape(&json))
        }
    }
}

/// Converts a template to CEL.
fn cel(template: &Template) -> String {
    match template {
        Template::Literal(json) => json.to_string(),
        Template::Cel(cel) => translated(cel),
        Template::List(items) => {
            format!("[{}]", items.iter().map(cel).collect::<Vec<_>>().join(", "))
        }
        Template::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", quoted(key), cel(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// Renames `event` in an expression to `_event.data`, its name in SCXML.
fn translated(text: &str) -> String {
    let rename = |name: &str| (name == "event").then(|| vec!["_event".to_owned(), "data".to_owned()]);
    match charter_expr::parse(text).and_then(|ast| ast.rename_roots(rename)) {
        Ok(ast) => ast.unparse(),
        Err(_) => text.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Escapes text for an attribute. Characters that XML does not allow are dropped.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

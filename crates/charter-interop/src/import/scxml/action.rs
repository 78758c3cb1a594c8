//! Reads executable content (REC 4, 5.4, 5.8) as blocks of actions. An element may become several
//! actions.

use charter_kernel::definition::{Action, Block, Branch, Template};
use indexmap::IndexMap;
use roxmltree::Node;

use super::expression::{fail, is_name, quoted};
use super::{ScxmlReader, xml};
use charter_format::codes;

/// Returns an action that fails at run time with a message.
pub(super) fn failing(why: &str) -> Action {
    Action::Log { value: Template::Cel(fail(why)), label: None }
}

/// Returns an action that assigns to one location.
pub(super) fn assign(path: String, value: Template) -> Action {
    Action::Assign(IndexMap::from_iter([(path, value)]))
}

/// Converts an event type to a template: a literal, or an expression if the kernel would refuse the
/// literal.
pub(super) fn event_type(name: &str) -> Template {
    let plain = !name.is_empty() && !name.contains('*') && !name.contains(char::is_whitespace);
    if plain { Template::Literal(name.into()) } else { Template::Cel(quoted(name)) }
}

impl<'d, 'i> ScxmlReader<'_, '_, 'd, 'i> {
    /// Reads the executable content of an element.
    pub(super) fn block(&mut self, parent: Node<'d, 'i>) -> Block {
        let mut block = Block::new();
        for node in xml::elements(parent) {
            self.action(node, parent, &mut block);
        }
        block
    }

    /// Appends the actions of an element.
    fn action(&mut self, node: Node<'d, 'i>, parent: Node<'d, 'i>, block: &mut Block) {
        let name = node.tag_name().name();
        let index = block.len().to_string();
        if !xml::is_scxml(node) {
            let (message, help) = if node.tag_name().namespace() == Some(xml::CHARTER) {
                let message = format!("`<charter:{name}>` is lost in an edited export");
                (message, super::EDITED)
            } else {
                let help = "an unknown action cannot be ignored, because the document would behave differently";
                (format!("the action `<{name}>` is not supported"), help)
            };
            self.refuse(codes::NOT_SUPPORTED, xml::tag(node), message, Some(help));
            return;
        }
        let actions = self.at(&index, node, |reader| match name {
            "raise" => reader.raise(node),
            "assign" => reader.assign(node),
            "log" => reader.log(node),
            "if" => vec![reader.conditional(node)],
            "foreach" => reader.foreach(node),
            "script" => reader.script(node),
            "send" => reader.send(node),
            "cancel" => reader.cancel(node),
            _ => {
                reader.stray(node, parent.tag_name().name());
                Vec::new()
            }
        });
        for at in block.len().saturating_add(1)..block.len().saturating_add(actions.len()) {
            self.at(&at.to_string(), node, |_| ());
        }
        block.extend(actions);
    }

    fn raise(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &["event"]);
        let Some(event) = self.needed(node, "event") else {
            return Vec::new();
        };
        vec![Action::Raise { r#type: event_type(event.value.trim()), data: None }]
    }

    fn log(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &["label", "expr"]);
        let value =
            xml::attribute(node, "expr").map_or_else(Template::default, |expr| self.variables.value(expr.value));
        vec![Action::Log { value, label: node.attribute("label").map(str::to_owned) }]
    }

    fn assign(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &["location", "expr"]);
        let Some(location) = self.needed(node, "location") else {
            return Vec::new();
        };
        let content = xml::elements(node).next().is_some() || node.text().is_some_and(|text| !text.trim().is_empty());
        let value = match xml::attribute(node, "expr") {
            Some(expr) if content => {
                self.refuse(codes::CONFLICT, expr.span, "`expr` and content are mutually exclusive", None);
                Template::default()
            }
            Some(expr) => self.variables.value(expr.value),
            None => self.literal_content(node),
        };
        vec![match self.variables.location(location.value) {
            Ok(path) => assign(path, value),
            Err(error) => failing(&error.to_string()),
        }]
    }

    fn conditional(&mut self, node: Node<'d, 'i>) -> Action {
        self.only(node, &["cond"]);
        let mut branches = vec![Branch { when: self.branch_condition(node, 0), r#do: Block::new() }];
        for child in xml::elements(node) {
            let otherwise = xml::is(child, "else");
            if otherwise || xml::is(child, "elseif") {
                self.only(child, if otherwise { &[] } else { &["cond"] });
                if branches.last().is_some_and(|last| last.when.is_none()) {
                    let help = "an `<if>` has one `<else>`, at its end";
                    self.refuse(codes::CONFLICT, xml::tag(child), "unreachable branch after `<else>`", Some(help));
                    continue;
                }
                let when = if otherwise { None } else { self.branch_condition(child, branches.len()) };
                branches.push(Branch { when, r#do: Block::new() });
                continue;
            }
            let index = branches.len().saturating_sub(1).to_string();
            if let Some(branch) = branches.last_mut() {
                let block = &mut branch.r#do;
                let above = ["if", index.as_str(), "do"].map(|key| self.cx.enter(key));
                self.action(child, node, block);
                above.into_iter().rev().for_each(|above| self.cx.leave(above));
            }
        }
        Action::If(branches)
    }

    fn branch_condition(&mut self, node: Node<'d, 'i>, index: usize) -> Option<String> {
        let cond = self.needed(node, "cond")?;
        let index = index.to_string();
        self.inside("if", |reader| reader.inside(&index, |reader| reader.at_span("when", cond.span, |_| ())));
        Some(self.variables.condition(cond.value))
    }

    /// Reads `<foreach>`, which iterates over a copy. Its item and index are variables of the
    /// document and keep their last values (REC 4.6).
    fn foreach(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &["array", "item", "index"]);
        let (array, item) = (self.needed(node, "array"), self.needed(node, "item"));
        let (Some(array), Some(item)) = (array, item) else {
            return Vec::new();
        };
        let index = xml::attribute(node, "index").filter(|index| !index.value.trim().is_empty());
        for name in [Some(item), index].into_iter().flatten() {
            let text = name.value.trim();
            if !is_name(text) || !self.variables.is_declared(text) {
                return vec![failing(&format!("`{text}` cannot be the name of a variable"))];
            }
        }
        let depth = self.loops;
        let (of_item, of_index) = (format!("_item_{depth}"), format!("_index_{depth}"));
        self.loops = self.loops.saturating_add(1);
        let mut body = vec![assign(item.value.trim().to_owned(), Template::Cel(of_item.clone()))];
        if let Some(index) = index {
            body.push(assign(index.value.trim().to_owned(), Template::Cel(of_index.clone())));
        }
        let above = ["each", "do"].map(|key| self.cx.enter(key));
        for child in xml::elements(node) {
            self.action(child, node, &mut body);
        }
        above.into_iter().rev().for_each(|above| self.cx.leave(above));
        self.loops = self.loops.saturating_sub(1);
        self.inside("each", |reader| reader.at_span("in", array.span, |_| ()));
        // `+ []` leaves a list unchanged and fails for any other value: SCXML does not iterate over
        // maps.
        let list = match self.variables.expression(array.value) {
            failed if failed.starts_with("fail(") => failed,
            list => format!("({list}) + []"),
        };
        vec![Action::Each { r#in: list, r#as: of_item, index: index.map(|_| of_index), r#do: body }]
    }

    /// Reads `<script>`: lines of the form `name = CEL`. Any other line continues the previous one.
    pub(super) fn script(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &["src"]);
        let text = match self.script_text(node) {
            Ok(text) => text,
            Err((src, why)) => {
                // REC 5.8: a document is rejected if its script cannot be loaded.
                self.refuse(codes::FILE, src.span, format!("cannot read script `{}`: {why}", src.value), None);
                return Vec::new();
            }
        };
        let (statements, stray) = statements(&text);
        let stray =
            stray.into_iter().map(|line| failing(&format!("invalid statement `{line}`: write `name = expression`")));
        let mut actions: Vec<Action> = stray.collect();
        for (place, value) in statements {
            actions.push(match self.variables.location(&place) {
                Ok(path) => assign(path, self.variables.value(&value)),
                Err(error) => failing(&error.to_string()),
            });
        }
        actions
    }

    /// The text of a `<script>`; the attribute and the reason if its file cannot be read.
    fn script_text(&self, node: Node<'d, 'i>) -> Result<String, (xml::Attribute<'d>, std::io::Error)> {
        match xml::attribute(node, "src") {
            Some(src) => self.shared.text(src.value).map_err(|why| (src, why)),
            None => Ok(node.children().filter_map(|c| c.is_text().then(|| c.text()).flatten()).collect()),
        }
    }

    /// Returns the names that a `<script>` sets. A script declares them, unless the document does
    /// (REC 5.8).
    pub(super) fn script_names(&self, node: Node<'d, 'i>) -> Vec<String> {
        let text = self.script_text(node).unwrap_or_default();
        statements(&text).0.into_iter().map(|(place, _)| place).filter(|place| is_name(place)).collect()
    }
}

/// Splits a script into assignments (place and value). The second list has the lines before the
/// first of them.
fn statements(text: &str) -> (Vec<(String, String)>, Vec<&str>) {
    let mut statements: Vec<(String, String)> = Vec::new();
    let mut stray = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        match (statement(line), statements.last_mut()) {
            (Some((place, value)), _) => statements.push((place.to_owned(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(line);
            }
            (None, None) => stray.push(line),
        }
    }
    for (_, value) in &mut statements {
        *value = value.trim().trim_end_matches(';').trim_end().to_owned();
    }
    (statements, stray)
}

/// Splits `place = value`; `==`, `<=`, `>=` and `!=` are not treated as assignments.
fn statement(line: &str) -> Option<(&str, &str)> {
    let (place, value) = line.split_once('=')?;
    let place = place.trim_end();
    let assigns = !value.starts_with('=') && !place.ends_with(['<', '>', '!']);
    let begins = place.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let plain = place.chars().all(|c| c.is_alphanumeric() || "_.[]'\"-+ ".contains(c));
    (assigns && begins && plain).then_some((place, value.trim()))
}

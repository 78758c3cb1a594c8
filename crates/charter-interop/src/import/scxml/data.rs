//! Reads `<datamodel>`, `<data>`, `<content>`, `<param>` and `<donedata>` (REC 5.2 to 5.7): values,
//! and the data of events and invocations.

use charter_kernel::definition::{State, Template};
use indexmap::IndexMap;
use roxmltree::Node;

use super::expression::{DataModel, fail, literal};
use super::{ScxmlReader, xml};
use charter_format::codes;

impl<'d, 'i> ScxmlReader<'_, '_, 'd, 'i> {
    /// Reads a `<datamodel>`. With late binding, the variables of a state are bound when it is
    /// first entered (REC 5.3.3).
    pub(super) fn datamodel(&mut self, node: Node<'d, 'i>, document: bool, state: &mut State) {
        for child in xml::elements(node) {
            if !xml::is(child, "data") {
                self.stray(child, "datamodel");
            } else if self.variables.model == DataModel::Null {
                self.refuse(
                    codes::CONFLICT,
                    xml::tag(child),
                    "the null data model has no variables",
                    Some("write `datamodel=\"cel\"`"),
                );
            } else if self.late && !document {
                self.inside("data", |reader| reader.data(child, &mut state.data));
            }
        }
    }

    /// Reads a variable with its initial value.
    pub(super) fn data(&mut self, node: Node<'d, 'i>, into: &mut IndexMap<String, Template>) {
        self.only(node, &["id", "src", "expr"]);
        let Some(id) = self.needed(node, "id") else {
            return;
        };
        let content =
            node.children().any(|c| c.is_element() || c.text().is_some_and(|t| c.is_text() && !t.trim().is_empty()));
        let (src, expr) = (xml::attribute(node, "src"), xml::attribute(node, "expr"));
        if usize::from(src.is_some()).saturating_add(usize::from(expr.is_some())).saturating_add(usize::from(content))
            > 1
        {
            self.refuse(codes::CONFLICT, xml::tag(node), "`src`, `expr` and content are mutually exclusive", None);
        }
        let name = id.value.trim();
        let value = if let Some(expr) = expr {
            self.at_span(name, expr.span, |reader| reader.variables.value(expr.value))
        } else if let Some(src) = src {
            match self.shared.text(src.value) {
                Ok(text) => Template::Literal(text_value(&text)),
                Err(why) => {
                    let why = format!("`{}` cannot be read: {why}", src.value);
                    self.warn(codes::FILE, src.span, format!("{why}; the variable stays unbound"));
                    Template::Cel(fail(&why))
                }
            }
        } else {
            self.at(name, node, |reader| reader.literal_content(node))
        };
        if into.insert(name.to_owned(), value).is_some() {
            self.refuse(
                codes::AMBIGUOUS,
                id.span,
                format!("duplicate variable id `{name}`"),
                Some("ids are unique in a document"),
            );
        }
    }

    /// Reads literal content: JSON, a CEL literal, XML as text, or text with normalized whitespace
    /// (REC B.2.4).
    pub(super) fn literal_content(&mut self, node: Node<'d, 'i>) -> Template {
        if xml::elements(node).next().is_some() {
            return Template::Literal(self.inner_xml(node).into());
        }
        let text: String = node.children().filter_map(|c| c.is_text().then(|| c.text()).flatten()).collect();
        Template::Literal(text_value(&text))
    }

    /// Returns the source text inside an element.
    pub(super) fn inner_xml(&self, node: Node<'d, 'i>) -> String {
        let (first, last) = (node.first_child(), node.last_child());
        let range = first.zip(last).map(|(first, last)| first.range().start..last.range().end);
        range.and_then(|range| self.cx.source().get(range)).unwrap_or_default().trim().to_owned()
    }

    /// Reads the data of `<donedata>`, `<send>` or `<invoke>`: `<content>`, or `<param>`s and the
    /// variables of a `namelist`.
    pub(super) fn payload(&mut self, node: Node<'d, 'i>, namelist: Option<xml::Attribute<'d>>) -> Option<Template> {
        let name = node.tag_name().name();
        let mut content: Option<Template> = None;
        let mut fields = self.namelist(namelist);
        for child in xml::elements(node) {
            if xml::is(child, "content") {
                if content.is_some() {
                    self.refuse(
                        codes::CONFLICT,
                        xml::tag(child),
                        format!("more than one `<content>` in `<{name}>`"),
                        None,
                    );
                }
                content = Some(self.content(child));
            } else if xml::is(child, "param") {
                self.param(child, &mut fields);
            } else if !(name == "invoke" && xml::is(child, "finalize")) {
                self.stray(child, name);
            }
        }
        if content.is_some() && !fields.is_empty() {
            self.refuse(
                codes::CONFLICT,
                xml::tag(node),
                "`<content>` cannot be combined with `<param>` or `namelist`",
                None,
            );
        }
        content.or_else(|| (!fields.is_empty()).then_some(Template::Object(fields)))
    }

    /// Reads the variables of a `namelist`, by name.
    pub(super) fn namelist(&mut self, namelist: Option<xml::Attribute<'d>>) -> IndexMap<String, Template> {
        let names = namelist.map_or("", |attribute| attribute.value);
        names.split_whitespace().map(|name| (name.to_owned(), self.read_location(name))).collect()
    }

    /// Returns an expression that reads a location; an invalid location fails at run time.
    fn read_location(&mut self, text: &str) -> Template {
        Template::Cel(match self.variables.location(text) {
            Ok(_) => self.variables.expression(text),
            Err(error) => fail(&error.to_string()),
        })
    }

    pub(super) fn param(&mut self, node: Node<'d, 'i>, fields: &mut IndexMap<String, Template>) {
        self.only(node, &["name", "expr", "location"]);
        self.either(node, "expr", "location");
        let Some(name) = self.needed(node, "name") else {
            return;
        };
        let value = match (xml::attribute(node, "expr"), xml::attribute(node, "location")) {
            (Some(expr), _) => self.variables.value(expr.value),
            (None, Some(location)) => self.read_location(location.value),
            (None, None) => {
                self.refuse(codes::MISSING_KEY, xml::tag(node), "`<param>` requires `expr` or `location`", None);
                Template::default()
            }
        };
        if fields.insert(name.value.to_owned(), value).is_some() {
            self.warn(
                codes::AMBIGUOUS,
                name.span,
                format!("duplicate parameter `{}`; the last one is used", name.value),
            );
        }
    }

    fn content(&mut self, node: Node<'d, 'i>) -> Template {
        self.only(node, &["expr"]);
        match xml::attribute(node, "expr") {
            Some(expr) => {
                if node
                    .children()
                    .any(|c| c.is_element() || c.text().is_some_and(|t| c.is_text() && !t.trim().is_empty()))
                {
                    self.refuse(codes::CONFLICT, expr.span, "`expr` and content are mutually exclusive", None);
                }
                self.variables.value(expr.value)
            }
            None => self.literal_content(node),
        }
    }
}

/// Converts literal text to a value.
pub(super) fn text_value(text: &str) -> serde_json::Value {
    let text = text.trim();
    if text.is_empty() {
        return serde_json::Value::Null;
    }
    literal(text).unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" ").into())
}

//! Reads `<invoke>` (REC 6.4) and `<finalize>` (REC 6.5). Invoked documents become machines of the
//! charter.

use charter_kernel::definition::{Action, Branch, Choose, Invoke, Template};
use indexmap::IndexMap;
use roxmltree::Node;

use super::action::assign;
use super::expression::{fail, quoted, texts};
use super::{InvokeError, ScxmlReader, xml};
use charter_format::codes;

/// The type names that mean SCXML (REC 6.4.2).
const SCXML: [&str; 3] = ["scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml"];
/// An input key that cannot be the name of a variable. Its value is evaluated before the machine
/// starts and then ignored.
const CHECK: &str = "#type";
/// Name of the only state of the placeholder for a machine that is not available.
const NOTHING: &str = "nothing";

impl<'d, 'i> ScxmlReader<'_, '_, 'd, 'i> {
    pub(super) fn invoke(&mut self, node: Node<'d, 'i>) -> Invoke {
        self.only(node, &["type", "typeexpr", "src", "srcexpr", "id", "idlocation", "namelist", "autoforward"]);
        for (one, other) in [("type", "typeexpr"), ("src", "srcexpr"), ("id", "idlocation")] {
            self.either(node, one, other);
        }
        let mut invoke = Invoke { id: Some(self.invocation_id(node)), ..Invoke::default() };
        let mut input = self.namelist(xml::attribute(node, "namelist"));
        let mut finalize = None;
        let mut content = None;
        for child in xml::elements(node) {
            match child.tag_name().name() {
                "content" if xml::is_scxml(child) => content = Some(child),
                "param" if xml::is_scxml(child) => self.param(child, &mut input),
                "finalize" if xml::is_scxml(child) => finalize = Some(child),
                _ => self.stray(child, "invoke"),
            }
        }
        if let Some(why) = self.wrong_type(node) {
            input.insert(CHECK.into(), Template::Cel(why));
        }
        self.source(node, content, &mut invoke, &mut input);
        if let Some(place) = xml::attribute(node, "idlocation") {
            match self.variables.location(place.value) {
                Ok(path) if !path.contains(['.', '[']) => invoke.id_location = Some(path),
                Ok(_) => {
                    let help = "write a variable, and copy the id to another location afterwards";
                    self.refuse(
                        codes::NOT_SUPPORTED,
                        place.span,
                        "`idlocation` inside a variable is not supported",
                        Some(help),
                    );
                }
                Err(error) => drop(input.insert(CHECK.into(), Template::Cel(fail(&error.to_string())))),
            }
        }
        invoke.autoforward = match xml::attribute(node, "autoforward").map(|a| (a.value, a.span)) {
            None | Some(("false", _)) => false,
            Some(("true", _)) => true,
            Some((other, span)) => {
                self.refuse(codes::VALUE, span, format!("expected `true` or `false`, found `{other}`"), None);
                false
            }
        };
        if let Some(finalize) = finalize {
            invoke.finalize = self.at("finalize", finalize, |reader| reader.finalize(node, finalize));
        }
        invoke.input = (!input.is_empty()).then_some(Template::Object(input));
        invoke
    }

    /// Returns the `id`, or `STATE.NUMBER` if there is none (REC 6.4.1).
    fn invocation_id(&mut self, node: Node<'d, 'i>) -> String {
        if let Some(id) = xml::attribute(node, "id").map(|id| id.value.trim()).filter(|id| !id.is_empty()) {
            return id.to_owned();
        }
        let state = node.parent().and_then(|state| self.keys.get(&state.id())).cloned().unwrap_or_default();
        self.shared.invocations = self.shared.invocations.saturating_add(1);
        format!("{state}.{}", self.shared.invocations)
    }

    /// Returns an expression that fails unless the type is SCXML.
    fn wrong_type(&mut self, node: Node<'d, 'i>) -> Option<String> {
        if let Some(kind) = xml::attribute(node, "type") {
            let kind = kind.value.trim();
            return (!SCXML.contains(&kind)).then(|| fail(&format!("`{kind}` cannot be invoked: expected `scxml`")));
        }
        let expr = xml::attribute(node, "typeexpr")?;
        let known = SCXML.map(quoted).join(", ");
        let kind = self.variables.expression(expr.value);
        Some(format!("({kind}) in [{known}] ? null : {}", fail("this type cannot be invoked: expected `scxml`")))
    }

    /// Determines the machine to start.
    fn source(
        &mut self,
        node: Node<'d, 'i>,
        content: Option<Node<'d, 'i>>,
        invoke: &mut Invoke,
        input: &mut IndexMap<String, Template>,
    ) {
        let (src, srcexpr) = (xml::attribute(node, "src"), xml::attribute(node, "srcexpr"));
        if (src.is_some() || srcexpr.is_some()) && content.is_some() {
            self.refuse(codes::CONFLICT, xml::tag(node), "`src` and `<content>` cannot both be set", None);
        }
        let found = match (src, srcexpr, content) {
            (Some(src), _, _) => self.shared.machine_of_file(src.value).map_err(|cause| {
                let error = InvokeError::File { file: src.value.to_owned(), cause: Box::new(cause) };
                self.warn(codes::FILE, src.span, error.to_string());
                error
            }),
            (None, Some(expr), _) => self.choose(expr, invoke, false),
            (None, None, Some(content)) => match xml::attribute(content, "expr") {
                Some(expr) => self.choose(expr, invoke, true),
                None => match xml::child(content, "scxml") {
                    Some(scxml) => Ok(self.inline(scxml)),
                    None => Err(InvokeError::NotScxml),
                },
            },
            (None, None, None) => Err(InvokeError::NoSource),
        };
        invoke.src = found.unwrap_or_else(|error| {
            input.insert(CHECK.into(), Template::Cel(fail(&error.to_string())));
            self.nothing()
        });
    }

    fn inline(&mut self, scxml: Node<'d, 'i>) -> String {
        let name = self.shared.machine_name(scxml.attribute("name").unwrap_or("machine"));
        self.pending.push_back((scxml, name.clone()));
        name
    }

    /// Makes the invocation choose its machine when it starts, among the documents that are known
    /// at import time. Returns the first of these machines.
    fn choose(&mut self, expr: xml::Attribute<'d>, invoke: &mut Invoke, inline: bool) -> Result<String, InvokeError> {
        let mut machines: IndexMap<String, String> = IndexMap::new();
        if inline {
            for (text, scxml) in self.documents() {
                let name = self.inline(scxml);
                machines.insert(text, name);
            }
        } else {
            for file in self.file_names(expr.value) {
                if let Ok(name) = self.shared.machine_of_file(&file) {
                    machines.insert(file, name);
                }
            }
        }
        let first = machines.values().next().cloned();
        let value = self.variables.expression(expr.value);
        let what = if inline { "documents" } else { "files" };
        let Some(first) = first else {
            let message = format!("none of the {what} that this can refer to is known; the invocation will fail");
            self.warn(codes::NOT_SUPPORTED, expr.span, message);
            return Err(InvokeError::UnknownChoice(what));
        };
        invoke.choose = Some(Choose { value, machines });
        Ok(first)
    }

    /// Returns the documents that are values of variables, with their text.
    fn documents(&self) -> Vec<(String, Node<'d, 'i>)> {
        let Some(root) = self.document else {
            return Vec::new();
        };
        let holders = xml::inside(root).into_iter().filter(|n| xml::is(*n, "data") || xml::is(*n, "assign"));
        holders.filter_map(|holder| Some((self.inner_xml(holder), xml::child(holder, "scxml")?))).collect()
    }

    /// Returns the string literals in the expression and in the values of variables.
    fn file_names(&self, expr: &str) -> Vec<String> {
        let mut names = texts(expr);
        for node in self.document.map(xml::inside).unwrap_or_default() {
            if xml::is(node, "data") || xml::is(node, "assign") {
                names.extend(node.attribute("expr").map(texts).unwrap_or_default());
            }
        }
        names.dedup();
        names
    }

    fn nothing(&mut self) -> String {
        let name = format!("{NOTHING}-to-invoke");
        if !self.shared.machines.contains_key(&name) {
            self.shared.taken.insert(name.clone());
            let mut chart = charter_kernel::definition::Chart::default();
            chart.state.kind = charter_kernel::definition::StateKind::Compound;
            chart.state.states.insert(NOTHING.into(), charter_kernel::definition::State::default());
            self.shared.machines.insert(name.clone(), chart);
        }
        name
    }

    /// Reads the actions that run for each event from the invocation. An empty `<finalize>` updates
    /// the variables that were passed to the invocation (REC 6.5.2).
    fn finalize(&mut self, invoke: Node<'d, 'i>, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &[]);
        for child in xml::elements(node).filter(|c| xml::is(*c, "send") || xml::is(*c, "raise")) {
            let message = format!("`<{}>` does not belong in `<finalize>`", child.tag_name().name());
            self.refuse(
                codes::UNKNOWN_KEY,
                xml::tag(child),
                message,
                Some("it only reads what an event brings (REC 6.5)"),
            );
        }
        if xml::elements(node).next().is_some() {
            return self.block(node);
        }
        let listed = invoke.attribute("namelist").unwrap_or_default().split_whitespace().map(|name| (name, name));
        let params = xml::elements(invoke).filter(|c| xml::is(*c, "param"));
        let params = params.filter_map(|param| Some((param.attribute("name")?, param.attribute("location")?)));
        let mut actions = Vec::new();
        for (name, location) in listed.chain(params) {
            let Ok(path) = self.variables.location(location) else {
                continue;
            };
            let key = quoted(name);
            let when = format!("type(_event.data) == map && {key} in _event.data");
            let value = Template::Cel(format!("_event.data[{key}]"));
            actions.push(Action::If(vec![Branch { when: Some(when), r#do: vec![assign(path, value)] }]));
        }
        actions
    }
}

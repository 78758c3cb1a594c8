//! Reads `<scxml>`, `<state>`, `<parallel>`, `<final>`, `<history>` and `<initial>` (REC 3.2 to
//! 3.11).

use charter_kernel::definition::{Chart, Initial, State, StateKind};
use roxmltree::Node;
use rustc_hash::{FxHashMap, FxHashSet};

use super::expression::{DataModel, Variables, is_name};
use super::{ScxmlReader, xml};
use charter_format::codes;
use charter_format::source::Span;

const STATES: [&str; 4] = ["state", "parallel", "final", "history"];

impl<'d, 'i> ScxmlReader<'_, '_, 'd, 'i> {
    /// Reads an `<scxml>` element as the root chart or as an invoked machine.
    pub(super) fn chart(&mut self, scxml: Node<'d, 'i>) -> Chart {
        self.only(scxml, &["initial", "name", "version", "datamodel", "binding", "exmode"]);
        match xml::attribute(scxml, "version") {
            Some(version) if version.value.trim() != "1.0" => {
                let message = format!("unsupported SCXML version `{}`", version.value);
                self.refuse(codes::LANGUAGE_VERSION, version.span, message, Some("write `version=\"1.0\"`"));
            }
            Some(_) => {}
            None => self.warn(codes::MISSING_KEY, xml::tag(scxml), "missing `version=\"1.0\"` (REC 3.2.1)"),
        }
        let model = self.model(scxml);
        self.late = match xml::attribute(scxml, "binding") {
            Some(binding) if binding.value == "late" => true,
            Some(binding) if binding.value != "early" => {
                self.refuse(
                    codes::VALUE,
                    binding.span,
                    format!("invalid binding `{}`", binding.value),
                    Some("write `early` or `late`"),
                );
                false
            }
            _ => false,
        };
        let all = xml::inside(scxml);
        self.variables = Variables::new(model, self.declared(&all));
        self.name_states(&all);
        self.document = Some(scxml);

        let mut chart = Chart::default();
        for data in all.iter().filter(|n| xml::is(**n, "data")) {
            let top = data.parent().and_then(|model| model.parent()) == Some(scxml);
            if !self.late || top {
                self.inside("context", |reader| reader.data(*data, &mut chart.context));
            }
        }
        chart.state = self.at("state", scxml, |reader| {
            let mut state = reader.compound(scxml, None);
            if state.states.is_empty() {
                reader.refuse(codes::MISSING_KEY, xml::tag(scxml), "`<scxml>` has no state", None);
            }
            state.kind = StateKind::Compound;
            state
        });
        chart
    }

    fn model(&mut self, scxml: Node<'d, 'i>) -> DataModel {
        let Some(model) = xml::attribute(scxml, "datamodel") else {
            return DataModel::Cel;
        };
        match model.value {
            "cel" => DataModel::Cel,
            "null" => DataModel::Null,
            other => {
                let message = format!("the data model `{other}` is not supported");
                let help = "write `cel` (the Common Expression Language) or `null`; expressions in other languages are not translated";
                self.refuse(codes::NOT_SUPPORTED, model.span, message, Some(help));
                DataModel::Cel
            }
        }
    }

    /// Returns the variables of a document, declared by `<data>`, by `<foreach>` (REC 4.6), or by
    /// the first `<script>` that sets them.
    fn declared(&mut self, all: &[Node<'d, 'i>]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for node in all {
            if xml::is(*node, "script") {
                let set = self.script_names(*node);
                names.extend(set.into_iter().filter(|name| !name.starts_with('_')));
                continue;
            }
            let attributes: &[&str] = match node.tag_name().name() {
                "data" => &["id"],
                "foreach" => &["item", "index"],
                _ => continue,
            };
            for attribute in attributes.iter().filter_map(|name| xml::attribute(*node, name)) {
                let name = attribute.value.trim();
                let system = name.starts_with('_');
                if is_name(name) && !system {
                    names.push(name.to_owned());
                } else if xml::is(*node, "data") {
                    let help = if system {
                        "names that start with `_` are reserved"
                    } else {
                        "use letters, digits and `_`, so that expressions can refer to it"
                    };
                    self.refuse(codes::VALUE, attribute.span, format!("invalid variable id `{name}`"), Some(help));
                }
            }
        }
        names
    }

    /// Gives each state a key: its id, or a generated one.
    fn name_states(&mut self, all: &[Node<'d, 'i>]) {
        self.keys = FxHashMap::default();
        self.ids = FxHashSet::default();
        let states: Vec<Node<'d, 'i>> =
            all.iter().filter(|n| STATES.iter().any(|s| xml::is(**n, s))).copied().collect();
        for state in &states {
            if let Some(id) = xml::attribute(*state, "id") {
                let text = id.value.trim();
                if text.is_empty() || text.contains(char::is_whitespace) || text.starts_with(['#', '.']) {
                    self.refuse(
                        codes::VALUE,
                        id.span,
                        format!("invalid state id `{text}`"),
                        Some("write a name without spaces"),
                    );
                } else if !self.ids.insert(text) {
                    self.refuse(
                        codes::AMBIGUOUS,
                        id.span,
                        format!("duplicate state id `{text}`"),
                        Some("ids are unique in a document"),
                    );
                }
                self.keys.insert(state.id(), text.to_owned());
            }
        }
        let mut number = 0u32;
        for state in &states {
            if !self.keys.contains_key(&state.id()) {
                let mut key = String::new();
                while key.is_empty() || self.ids.contains(key.as_str()) {
                    number = number.saturating_add(1);
                    key = format!("{}{number}", state.tag_name().name());
                }
                self.keys.insert(state.id(), key);
            }
        }
    }

    /// Reads the content of `<scxml>`, `<state>` or `<parallel>`.
    fn compound(&mut self, node: Node<'d, 'i>, id: Option<String>) -> State {
        let name = node.tag_name().name();
        let (document, parallel) = (name == "scxml", name == "parallel");
        let mut state = State { id, ..State::default() };
        for child in xml::elements(node) {
            match child.tag_name().name() {
                _ if !xml::is_scxml(child) => self.stray(child, name),
                "onentry" if !document => self.blocks(child, "entry", &mut state.entry),
                "onexit" if !document => self.blocks(child, "exit", &mut state.exit),
                // The script of a document runs once, before its first state is entered (REC 5.8).
                "script" if document => {
                    let index = state.entry.len().to_string();
                    let block = self.inside("entry", |reader| reader.at(&index, child, |reader| reader.script(child)));
                    state.entry.push(block);
                }
                "transition" if !document => self.transition(child, &mut state),
                "initial" if name == "state" => {
                    if state.initial.is_some() {
                        self.refuse(codes::CONFLICT, xml::tag(child), "more than one `<initial>` in a state", None);
                    }
                    state.initial = Some(self.at("initial", child, |reader| reader.default_transition(child)));
                }
                "datamodel" => self.datamodel(child, document, &mut state),
                "invoke" if !document => {
                    let index = state.invoke.len().to_string();
                    let invoke =
                        self.inside("invoke", |reader| reader.at(&index, child, |reader| reader.invoke(child)));
                    state.invoke.push(invoke);
                }
                "history" if !document => self.child_state(child, &mut state),
                "final" if !parallel => self.child_state(child, &mut state),
                "state" | "parallel" => self.child_state(child, &mut state),
                _ => self.stray(child, name),
            }
        }
        if let Some(initial) = xml::attribute(node, "initial").filter(|_| !parallel) {
            if state.initial.is_some() {
                self.refuse(
                    codes::CONFLICT,
                    initial.span,
                    "the attribute `initial` and `<initial>` cannot both be set",
                    None,
                );
            }
            state.initial = self.at_span("initial", initial.span, |reader| {
                Some(Initial { target: reader.targets(initial), actions: Vec::new() })
            });
        }
        let active = xml::elements(node).any(|c| ["state", "parallel", "final"].iter().any(|n| xml::is(c, n)));
        state.kind = match (active, parallel) {
            (true, true) => StateKind::Parallel,
            (true, false) => StateKind::Compound,
            (false, _) => StateKind::Atomic,
        };
        if !active && !state.states.is_empty() {
            self.refuse(
                codes::MISSING_KEY,
                xml::tag(node),
                "a state with `<history>` requires other child states",
                None,
            );
        }
        if !active && state.initial.take().is_some() {
            self.refuse(codes::VALUE, xml::tag(node), "a state without child states cannot have `initial`", None);
        }
        state
    }

    fn child_state(&mut self, node: Node<'d, 'i>, parent: &mut State) {
        let key = self.keys.get(&node.id()).cloned().unwrap_or_default();
        let state = self.inside("states", |reader| {
            reader.at(&key, node, |reader| match node.tag_name().name() {
                "final" => reader.final_state(node, &key),
                "history" => reader.history(node, &key),
                "parallel" => {
                    reader.only(node, &["id"]);
                    reader.compound(node, Some(key.clone()))
                }
                _ => {
                    reader.only(node, &["id", "initial"]);
                    reader.compound(node, Some(key.clone()))
                }
            })
        });
        parent.states.insert(key, state);
    }

    fn final_state(&mut self, node: Node<'d, 'i>, key: &str) -> State {
        self.only(node, &["id"]);
        let mut state = State { id: Some(key.to_owned()), kind: StateKind::Final, ..State::default() };
        for child in xml::elements(node) {
            match child.tag_name().name() {
                _ if !xml::is_scxml(child) => self.stray(child, "final"),
                "onentry" => self.blocks(child, "entry", &mut state.entry),
                "onexit" => self.blocks(child, "exit", &mut state.exit),
                "donedata" => state.output = self.at("output", child, |reader| reader.payload(child, None)),
                _ => self.stray(child, "final"),
            }
        }
        state
    }

    fn history(&mut self, node: Node<'d, 'i>, key: &str) -> State {
        self.only(node, &["id", "type"]);
        let kind = match xml::attribute(node, "type").map(|kind| (kind.value, kind.span)) {
            Some(("deep", _)) => StateKind::Deep,
            None | Some(("shallow", _)) => StateKind::Shallow,
            Some((other, span)) => {
                self.refuse(
                    codes::VALUE,
                    span,
                    format!("invalid history type `{other}`"),
                    Some("write `shallow` or `deep`"),
                );
                StateKind::Shallow
            }
        };
        let initial = self.at("initial", node, |reader| reader.default_transition(node));
        State { id: Some(key.to_owned()), kind, initial: Some(initial), ..State::default() }
    }

    /// Reads the transition of an `<initial>` or a `<history>`.
    fn default_transition(&mut self, node: Node<'d, 'i>) -> Initial {
        let name = node.tag_name().name();
        let mut found: Option<Initial> = None;
        for child in xml::elements(node) {
            if !xml::is(child, "transition") {
                self.stray(child, name);
                continue;
            }
            if found.is_some() {
                self.refuse(codes::CONFLICT, xml::tag(child), format!("more than one transition in `<{name}>`"), None);
            }
            for no in ["event", "cond"] {
                if let Some(attribute) = xml::attribute(child, no) {
                    self.refuse(
                        codes::CONFLICT,
                        attribute.span,
                        format!("the transition of `<{name}>` cannot have `{no}`"),
                        None,
                    );
                }
            }
            let target = match self.needed(child, "target") {
                Some(target) => self.targets(target),
                None => Vec::new(),
            };
            let actions = self.inside("actions", |reader| reader.block(child));
            found = Some(Initial { target, actions });
        }
        if found.is_none() {
            let message = format!("`<{name}>` requires a `<transition>` with a `target`");
            self.refuse(codes::MISSING_KEY, xml::tag(node), message, None);
        }
        found.unwrap_or_default()
    }

    /// Translates state ids to targets.
    pub(super) fn targets(&mut self, attribute: xml::Attribute<'d>) -> Vec<String> {
        let mut targets = Vec::new();
        for id in attribute.value.split_whitespace() {
            let index = targets.len().to_string();
            self.inside("target", |reader| reader.at_span(&index, attribute.span, |_| ()));
            if !self.ids.contains(id) {
                let mut problem = charter_format::Diagnostic::error(
                    codes::UNDEFINED,
                    part(attribute, id),
                    format!("undefined state id `{id}`"),
                );
                problem.help =
                    charter_expr::nearest(id, self.ids.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                self.cx.report(problem);
            }
            targets.push(format!("#{id}"));
        }
        if targets.is_empty() {
            self.refuse(codes::VALUE, attribute.span, "empty target", Some("write the id of a state"));
        }
        targets
    }

    /// Reads an `<onentry>` or `<onexit>` as a block. Blocks stay separate, because an error ends
    /// only the block in which it occurs.
    fn blocks(&mut self, node: Node<'d, 'i>, key: &str, blocks: &mut Vec<charter_kernel::definition::Block>) {
        let index = blocks.len().to_string();
        let block = self.inside(key, |reader| reader.at(&index, node, |reader| reader.block(node)));
        blocks.push(block);
    }
}

/// Returns the span of a word in an attribute, or of the whole attribute if character references
/// shift the word.
fn part(attribute: xml::Attribute<'_>, word: &str) -> Span {
    let length = attribute.span.end.saturating_sub(attribute.span.start);
    match attribute.value.find(word) {
        Some(at) if length == attribute.value.len() => {
            let start = attribute.span.start.saturating_add(at);
            Span::new(start, start.saturating_add(word.len()))
        }
        _ => attribute.span,
    }
}

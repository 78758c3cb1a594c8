//! Reads `<transition>` (REC 3.5): events, conditions, targets and types.

use charter_kernel::definition::{On, State, Transition};
use roxmltree::Node;

use super::{ScxmlReader, xml};
use charter_format::codes;

/// The descriptors that together match what `*` matches in SCXML: all events, including platform
/// events.
const EVERY: [&str; 4] = ["*", "done.*", "error.*", "after.*"];

impl<'d, 'i> ScxmlReader<'_, '_, 'd, 'i> {
    pub(super) fn transition(&mut self, node: Node<'d, 'i>, state: &mut State) {
        self.only(node, &["event", "cond", "target", "type"]);
        let event = xml::attribute(node, "event");
        if event.is_none() {
            let index = state.always.len().to_string();
            let transition =
                self.inside("always", |reader| reader.at(&index, node, |reader| reader.plain_transition(node)));
            if transition.when.is_none() && transition.target.is_empty() {
                let help = "without any of them it would be taken forever";
                self.refuse(
                    codes::MISSING_KEY,
                    xml::tag(node),
                    "a transition requires an `event`, a `cond` or a `target`",
                    Some(help),
                );
            }
            state.always.push(transition);
            return;
        }
        let events = event.map(|event| self.descriptors(event)).unwrap_or_default();
        let index = state.on.len().to_string();
        let transition = self.inside("on", |reader| {
            reader.at(&index, node, |reader| {
                reader.inside("transitions", |reader| reader.at("0", node, |reader| reader.plain_transition(node)))
            })
        });
        state.on.push(On { events, transitions: vec![transition] });
    }

    fn plain_transition(&mut self, node: Node<'d, 'i>) -> Transition {
        let reenter = match xml::attribute(node, "type").map(|kind| (kind.value, kind.span)) {
            None | Some(("external", _)) => true,
            Some(("internal", _)) => false,
            Some((other, span)) => {
                self.refuse(
                    codes::VALUE,
                    span,
                    format!("invalid transition type `{other}`"),
                    Some("write `external` or `internal`"),
                );
                true
            }
        };
        let target = xml::attribute(node, "target").map(|target| self.targets(target)).unwrap_or_default();
        let when = xml::attribute(node, "cond").map(|cond| {
            self.at_span("when", cond.span, |_| ());
            self.variables.condition(cond.value)
        });
        let actions = self.inside("actions", |reader| reader.block(node));
        // A transition without a target exits no state, so it re-enters none.
        let reenter = reenter && !target.is_empty();
        Transition { target, when, actions, reenter, ..Transition::default() }
    }

    /// Translates event descriptors: `foo` matches `foo` and `foo.bar`, but not `foobar` (REC
    /// 3.12.1).
    fn descriptors(&mut self, attribute: xml::Attribute<'d>) -> Vec<String> {
        let mut events: Vec<String> = Vec::new();
        let mut add = |event: String| {
            if !events.contains(&event) {
                events.push(event);
            }
        };
        let mut bad = Vec::new();
        for word in attribute.value.split_whitespace() {
            let name = word.strip_suffix(".*").or_else(|| word.strip_suffix('.')).unwrap_or(word);
            match name {
                "*" | "" => EVERY.iter().for_each(|event| add((*event).to_owned())),
                name if name.contains('*') => bad.push(word),
                name => add(format!("{name}.*")),
            }
        }
        for word in bad {
            let help = "write `name`, `name.*` or `*`";
            self.refuse(codes::VALUE, attribute.span, format!("invalid event descriptor `{word}`"), Some(help));
        }
        if attribute.value.split_whitespace().next().is_none() {
            self.refuse(
                codes::VALUE,
                attribute.span,
                "empty event descriptor",
                Some("remove `event` for a transition without one"),
            );
        }
        events
    }
}

//! Reads `<send>` and `<cancel>` (REC 6.2, 6.3). Arguments are evaluated when the action runs.

use charter_kernel::definition::{Action, Delay, Send, Template};
use roxmltree::Node;

use super::action::{event_type, failing};
use super::expression::fail;
use super::{ScxmlReader, xml};
use charter_format::codes;

const HTTP: [&str; 2] = ["http://www.w3.org/TR/scxml/#BasicHTTPEventProcessor", "basichttp"];

impl<'d, 'i> ScxmlReader<'_, '_, 'd, 'i> {
    pub(super) fn send(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(
            node,
            &[
                "event",
                "eventexpr",
                "target",
                "targetexpr",
                "type",
                "typeexpr",
                "id",
                "idlocation",
                "delay",
                "delayexpr",
                "namelist",
            ],
        );
        for (one, other) in [
            ("event", "eventexpr"),
            ("target", "targetexpr"),
            ("type", "typeexpr"),
            ("id", "idlocation"),
            ("delay", "delayexpr"),
        ] {
            self.either(node, one, other);
        }
        if let Some(kind) = xml::attribute(node, "type").filter(|kind| HTTP.contains(&kind.value.trim())) {
            let help = "`<send>` reaches sessions of the same run; invoke an actor to reach the outside world";
            self.refuse(codes::NOT_SUPPORTED, kind.span, "the HTTP event processor is not supported", Some(help));
        }
        let data = self.payload(node, xml::attribute(node, "namelist"));
        let r#type = match (xml::attribute(node, "event"), xml::attribute(node, "eventexpr")) {
            (Some(event), _) => event_type(event.value.trim()),
            (None, Some(expr)) => self.variables.value(expr.value),
            (None, None) => Template::Cel(fail("`<send>` has no event, which the SCXML event processor requires")),
        };
        let mut send = Send { r#type: computed(r#type), data, ..Send::default() };
        send.to = self.text_or(node, "target", "targetexpr");
        send.processor = self.text_or(node, "type", "typeexpr");
        send.id = xml::attribute(node, "id").map(|id| Template::Literal(id.value.trim().into()));
        if let Some(place) = xml::attribute(node, "idlocation") {
            match self.variables.location(place.value) {
                Ok(path) if path == place.value.trim() && !path.contains(['.', '[']) => send.id_location = Some(path),
                Ok(_) => {
                    let help = "write a variable, and copy the id to another location afterwards";
                    self.refuse(
                        codes::NOT_SUPPORTED,
                        place.span,
                        "`idlocation` inside a variable is not supported",
                        Some(help),
                    );
                }
                Err(error) => return vec![failing(&error.to_string())],
            }
        }
        send.delay = match (xml::attribute(node, "delay"), xml::attribute(node, "delayexpr")) {
            (Some(delay), _) => Some(match milliseconds(delay.value.trim()) {
                Some(ms) => Delay::Ms(ms),
                None => Delay::Cel(fail(&format!("invalid duration `{}`", delay.value))),
            }),
            (None, Some(expr)) => Some(Delay::Cel(self.variables.expression(expr.value))),
            (None, None) => None,
        };
        vec![Action::Send(send)]
    }

    pub(super) fn cancel(&mut self, node: Node<'d, 'i>) -> Vec<Action> {
        self.only(node, &["sendid", "sendidexpr"]);
        self.either(node, "sendid", "sendidexpr");
        match self.text_or(node, "sendid", "sendidexpr") {
            Some(id) => vec![Action::Cancel(id)],
            None => {
                self.refuse(codes::MISSING_KEY, xml::tag(node), "`<cancel>` requires `sendid` or `sendidexpr`", None);
                Vec::new()
            }
        }
    }

    /// Reads the text of an attribute or, if it is missing, the value of an expression attribute.
    fn text_or(&mut self, node: Node<'d, 'i>, text: &str, expr: &str) -> Option<Template> {
        match (xml::attribute(node, text), xml::attribute(node, expr)) {
            (Some(text), _) => Some(Template::Literal(text.value.trim().into())),
            (None, Some(expr)) => Some(self.variables.value(expr.value)),
            (None, None) => None,
        }
    }
}

/// Converts an invalid literal event type to an expression, so that it fails at run time.
fn computed(kind: Template) -> Template {
    match &kind {
        Template::Literal(json) if json.as_str().is_none_or(|name| event_type(name) != kind) => {
            Template::Cel(json.to_string())
        }
        _ => kind,
    }
}

/// Parses a duration as in CSS 2 (REC 6.2.4): `500ms`, `1.5s`, `.5s`. The units of charters are
/// also allowed. Only `0` may have no unit.
fn milliseconds(text: &str) -> Option<u64> {
    let unit = text == "0" || text.ends_with(|c: char| c.is_ascii_alphabetic());
    charter_expr::parse_delay(text).ok().filter(|_| unit).and_then(|ms| u64::try_from(ms).ok())
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations() {
        for (text, ms) in
            [("1s", 1_000), (".5s", 500), ("1.5s", 1_500), ("20ms", 20), ("0s", 0), ("0", 0), ("2m", 120_000)]
        {
            assert_eq!(milliseconds(text), Some(ms), "{text}");
        }
        for text in ["", "s", "1", "1x", "-1s", ".s", "1.2.3s", "soon"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}

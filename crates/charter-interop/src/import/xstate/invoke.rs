//! Reads invocations.

use charter_format::codes;
use charter_format::source::Node;
use charter_kernel::definition::{Invoke, Template};

use super::XstateReader;
use super::states::without_wildcard;
use super::transition::own_part;

impl XstateReader<'_> {
    /// Reads the invocations of a state.
    pub(super) fn invocations(&mut self, node: &Node, number: usize) -> Vec<Invoke> {
        let Some(entry) = node.entry("invoke") else {
            return Vec::new();
        };
        let mut invokes = Vec::new();
        for (index, item) in entry.value.one_or_many().iter().enumerate() {
            self.only(
                item,
                "an invocation",
                &["src", "id", "input", "onDone", "onError", "onSnapshot", "systemId", "description", "meta", "type"],
            );
            if let Some(snapshot) = item.entry("onSnapshot") {
                let help = "let the actor send events instead";
                self.refuse(codes::NOT_SUPPORTED, snapshot.key.span, "`onSnapshot` is not supported", Some(help));
            }
            let src = item.entry("src");
            let name = src.and_then(|s| s.value.text());
            let (Some(src), Some(name)) = (src, name) else {
                let what = "the `src` of an invocation";
                let help = "declare an actor under `actors` of the charter, and write its name here";
                match src {
                    Some(src) => self.unnamed(&src.value, what, "the name of an actor", help),
                    None => self.refuse(codes::TYPE, item.span.first(), "an invocation needs `src`", Some(help)),
                }
                continue;
            };
            self.declared("actor", name, src.value.span);
            let id = match item.get("id").and_then(Node::text) {
                Some(id) => id.to_owned(),
                // The same id as in XState: the index of the invocation and the id of its state.
                None => format!("{index}.{}", self.states.get(number).map_or("", |p| p.id.as_str())),
            };
            let id = without_wildcard(&id);
            let mut invoke: Invoke = own_part(item)
                .and_then(|own| match own.json() {
                    serde_json::Value::Object(mut own) => {
                        own.insert("src".to_owned(), name.into());
                        serde_json::from_value(own.into()).ok()
                    }
                    _ => None,
                })
                .unwrap_or_default();
            (invoke.src, invoke.id) = (name.to_owned(), Some(id));
            if let Some(input) = item.get("input") {
                invoke.input = Some(Template::Literal(input.json()));
            }
            let spans = item.span;
            self.inside("invoke", entry.key.span, |reader| {
                reader.inside(&index.to_string(), spans, |reader| {
                    for (key, core, list) in
                        [("onDone", "on_done", &mut invoke.on_done), ("onError", "on_error", &mut invoke.on_error)]
                    {
                        if let Some(entry) = item.entry(key) {
                            *list = reader
                                .inside(core, entry.key.span, |reader| reader.transitions_here(&entry.value, number));
                        }
                    }
                });
            });
            invokes.push(invoke);
        }
        invokes
    }
}

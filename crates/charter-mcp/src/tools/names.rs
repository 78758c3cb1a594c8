//! The names of the tools for events: safe for every client, unique, and the same as long as the
//! charter is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use charter_kernel::Definition;

use super::STATIC;

/// Characters of a name: clients put `mcp__SERVER__` before it, and models accept 64.
const MAX_CHARS: usize = 44;

/// The names of the tools for the events of a charter.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolNames(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Event types in the order of the charter, and their tools.
    list: Vec<(String, String)>,
    by_type: BTreeMap<String, usize>,
    by_tool: BTreeMap<String, usize>,
}

impl ToolNames {
    pub(crate) fn new(definition: &Definition) -> ToolNames {
        // Some clients do not distinguish case.
        let mut taken: BTreeSet<String> = STATIC.iter().map(|name| (*name).to_owned()).collect();
        let mut inner = Inner::default();
        for kind in definition.events.keys() {
            let plain = safe(kind);
            let mut name = plain.clone();
            let mut number = 1u64;
            while !taken.insert(name.to_ascii_lowercase()) {
                number = number.saturating_add(1);
                name = format!("{plain}_{number}");
            }
            let index = inner.list.len();
            inner.by_type.insert(kind.clone(), index);
            inner.by_tool.insert(name.clone(), index);
            inner.list.push((kind.clone(), name));
        }
        ToolNames(Arc::new(inner))
    }

    /// The tool for an event.
    pub(crate) fn tool(&self, kind: &str) -> Option<&str> {
        self.entry(self.0.by_type.get(kind)).map(|(_, tool)| tool.as_str())
    }

    /// The event of a tool.
    pub(crate) fn event(&self, tool: &str) -> Option<&str> {
        self.entry(self.0.by_tool.get(tool)).map(|(kind, _)| kind.as_str())
    }

    /// The place of an event in the charter.
    pub(crate) fn place(&self, kind: &str) -> usize {
        self.0.by_type.get(kind).copied().unwrap_or_default()
    }

    fn entry(&self, index: Option<&usize>) -> Option<&(String, String)> {
        self.0.list.get(*index?)
    }
}

fn safe(kind: &str) -> String {
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = kind.chars().take(MAX_CHARS).map(|c| if ok(c) { c } else { '_' }).collect();
    match name.chars().any(|c| c.is_ascii_alphanumeric()) {
        true => name,
        false => "event".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(events: &[&str]) -> ToolNames {
        let mut definition = charter_test_support::definition("{charter: 1, id: x, initial: a, states: {a: {}}}");
        for event in events {
            definition.events.insert((*event).to_owned(), Default::default());
        }
        ToolNames::new(&definition)
    }

    #[test]
    fn names_are_safe_unique_and_lead_back_to_their_event() {
        let long = "X".repeat(200);
        let events = ["send", "Status", "a.b", "a b", "A_B", "a_b_2", "日本", "émile", &long, "x\u{202e}y", "legal"];
        let names = names(&events);
        let mut seen = BTreeSet::new();
        for event in events {
            let tool = names.tool(event).unwrap();
            assert!(tool.len() <= 50 && !tool.is_empty(), "{tool}");
            assert!(tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{tool}");
            assert!(!STATIC.contains(&tool.to_ascii_lowercase().as_str()), "{tool}");
            assert!(seen.insert(tool.to_ascii_lowercase()), "{tool} twice");
            assert_eq!(names.event(tool), Some(event));
        }
        assert_eq!(names.tool("NEVER"), None);
        assert_eq!(names.event("status"), None, "a tool that is always there is not an event");
    }

    #[test]
    fn a_plain_event_keeps_its_name() {
        assert_eq!(names(&["HUMAN_APPROVED"]).tool("HUMAN_APPROVED"), Some("HUMAN_APPROVED"));
    }
}

//! Translates event descriptors.

use charter_format::codes;
use charter_format::source::Span;
use charter_kernel::definition::{State, Transition};

use super::XstateReader;

/// The descriptors that together match what `*` matches in XState: all events, including internal
/// ones.
pub(super) const EVERY: [&str; 4] = ["*", "done.*", "error.*", "after.*"];

/// An event descriptor and its transitions.
pub(super) struct Listener {
    pub(super) descriptor: String,
    pub(super) events: Vec<String>,
    pub(super) transitions: Vec<(Transition, Span)>,
}

impl XstateReader<'_> {
    /// Translates an event descriptor. XState's own events start with `xstate.`.
    pub(super) fn events(&mut self, descriptor: &str, span: Span) -> Option<Vec<String>> {
        if descriptor == "*" {
            return Some(EVERY.map(str::to_owned).to_vec());
        }
        let Some(own) = descriptor.strip_prefix("xstate.") else {
            // These error events of charters do not exist in XState, but are allowed.
            let own = ["error.execution", "error.communication"].contains(&descriptor);
            let reserved = ["done.", "error.", "after.", "charter."];
            if !own && reserved.iter().any(|p| descriptor.starts_with(p)) {
                let help = "rename it: `done.`, `error.`, `after.` and `charter.` start the types of platform events, which cannot be sent";
                self.refuse(codes::NOT_SUPPORTED, span, format!("event type `{descriptor}` is reserved"), Some(help));
                return None;
            }
            let stem = descriptor.strip_suffix(".*").unwrap_or(descriptor);
            if stem.is_empty() || stem.contains('*') {
                let message = format!("invalid event descriptor `{descriptor}`");
                self.refuse(codes::VALUE, span, message, Some("write an event type, `prefix.*`, or `*`"));
                return None;
            }
            return Some(vec![descriptor.to_owned()]);
        };
        let state_name = |id: &str| self.states.by_id(id).map(|n| self.states.name(n));
        let events = if let Some(id) = own.strip_prefix("done.state.") {
            state_name(id)
                .map(|name| vec![format!("done.state.{name}")])
                .or_else(|| id.ends_with('*').then(|| vec!["done.state.*".to_owned()]))
        } else if let Some(id) = own.strip_prefix("done.actor.") {
            Some(vec![format!("done.invoke.{id}")])
        } else if let Some(id) = own.strip_prefix("error.actor.") {
            Some(vec![format!("error.invoke.{id}")])
        } else if let Some((delay, id)) = own.strip_prefix("after.").and_then(|rest| rest.split_once('.')) {
            state_name(id).map(|name| vec![format!("after.{delay}.{name}")])
        } else {
            match own {
                "*" => Some(vec!["done.*".into(), "error.*".into(), "after.*".into()]),
                "done.*" | "error.*" | "after.*" => Some(vec![own.to_owned()]),
                _ => None,
            }
        };
        if events.is_none() {
            let help = "of XState's own events, only those of done states, of done or failed actors, and of delays are supported";
            self.refuse(
                codes::NOT_SUPPORTED,
                span,
                format!("`{descriptor}` has no equivalent in a charter"),
                Some(help),
            );
        }
        events
    }
}

/// Moves all transitions for internal events to `on`: a wildcard that matches these events must
/// come after their exact descriptors.
pub(super) fn before_wildcards(name: &str, span: Span, state: &mut State, listeners: &mut Vec<Listener>) {
    let mut exact = |event: String, transitions: &mut Vec<Transition>| {
        if !transitions.is_empty() {
            listeners.push(Listener {
                descriptor: event.clone(),
                events: vec![event],
                transitions: std::mem::take(transitions).into_iter().map(|t| (t, span)).collect(),
            });
        }
    };
    for invoke in &mut state.invoke {
        let id = invoke.id.clone().unwrap_or_default();
        exact(format!("done.invoke.{id}"), &mut invoke.on_done);
        exact(format!("error.invoke.{id}"), &mut invoke.on_error);
    }
    exact(format!("done.state.{name}"), &mut state.on_done);
    for after in &mut state.after {
        exact(format!("after.{}.{name}", after.key), &mut after.transitions);
    }
}

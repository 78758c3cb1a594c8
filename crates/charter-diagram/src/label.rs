//! The labels of arrows: event, guard, roles.

use charter_kernel::definition::{Guard, Transition};

/// Upper limit of the length of an expression in a label, in characters.
const MAX_EXPRESSION: usize = 36;

/// Formats a label: `EVENT [guard] / by role`.
pub(crate) fn label(event: &str, transition: &Transition) -> String {
    let mut text = event.to_owned();
    if let Some(condition) = condition(transition) {
        push(&mut text, " ", &format!("[{condition}]"));
    }
    let mut needs = Vec::new();
    if !transition.by.is_empty() {
        needs.push(format!("by {}", transition.by.join(", ")));
    }
    if let Some(quorum) = &transition.quorum {
        needs.push(match &quorum.of {
            Some(of) => format!("{} of {of}", quorum.count),
            None if transition.agents => format!("{} principals", quorum.count),
            None => format!("{} people", quorum.count),
        });
    }
    if transition.approves.is_some() {
        needs.push("approval".to_owned());
    }
    if let Some(not_by) = &transition.not_by {
        needs.push(format!("not by {}", cut(not_by)));
    }
    if !transition.requires.is_empty() {
        needs.push("permit".to_owned());
    }
    if !needs.is_empty() {
        push(&mut text, " / ", &needs.join(", "));
    }
    text
}

fn condition(transition: &Transition) -> Option<String> {
    let guard = transition.guard.as_ref().map(|guard| cut(&guard_text(guard, 0)));
    let when = transition.when.as_deref().map(cut);
    match (guard, when) {
        (Some(guard), Some(when)) => Some(format!("{guard} && {when}")),
        (guard, when) => guard.or(when),
    }
}

fn guard_text(guard: &Guard, depth: usize) -> String {
    // The limit keeps labels readable and prevents a stack overflow: a definition built in Rust has
    // no depth limit.
    if depth > 8 {
        return "...".to_owned();
    }
    let deeper = depth.saturating_add(1);
    let joined = |guards: &[Guard], with: &str| {
        let parts: Vec<String> = guards.iter().map(|guard| guard_text(guard, deeper)).collect();
        if depth == 0 { parts.join(with) } else { format!("({})", parts.join(with)) }
    };
    match guard {
        Guard::Name(name) => name.clone(),
        Guard::Cel(cel) => cel.clone(),
        Guard::And(guards) => joined(guards, " && "),
        Guard::Or(guards) => joined(guards, " || "),
        Guard::Not(guard) => format!("!{}", guard_text(guard, deeper)),
    }
}

fn push(text: &mut String, with: &str, more: &str) {
    if !text.is_empty() {
        text.push_str(with);
    }
    text.push_str(more);
}

fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXPRESSION) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

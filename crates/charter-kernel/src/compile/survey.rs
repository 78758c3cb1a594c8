//! Surveys a definition's actions before compilation: which variables they set and which events
//! they raise.

use rustc_hash::FxHashSet;

use crate::definition;

/// Returns the context variables of a chart: those with an initial value, those bound late, and
/// those that an action sets.
pub(super) fn slots_of(
    chart: &definition::Chart,
    named: &indexmap::IndexMap<String, definition::Block>,
) -> Vec<String> {
    let mut slots: indexmap::IndexSet<String> = chart.context.keys().cloned().collect();
    let mut stack: Vec<&definition::State> = vec![&chart.state];
    let mut assigned: Vec<String> = Vec::new();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    while let Some(state) = stack.pop() {
        stack.extend(state.states.values().rev());
        slots.extend(state.data.keys().cloned());
        let mut blocks = blocks_of(state);
        assigned.extend(state.invoke.iter().filter_map(|i| i.id_location.clone()));
        while let Some(block) = blocks.pop() {
            for action in block {
                match action {
                    definition::Action::Assign(paths) => assigned.extend(paths.keys().cloned()),
                    definition::Action::If(branches) => blocks.extend(branches.iter().map(|b| &b.r#do)),
                    definition::Action::Each { r#do, .. } => blocks.push(r#do),
                    definition::Action::Send(send) => assigned.extend(send.id_location.clone()),
                    definition::Action::Name(name) if seen.insert(name) => blocks.extend(named.get(name)),
                    _ => {}
                }
            }
        }
    }
    let mut variables: Vec<String> =
        assigned.iter().map(|path| super::content::variable_of(path).to_string()).collect();
    variables.sort();
    slots.extend(variables.into_iter().filter(|v| !v.is_empty()));
    slots.into_iter().collect()
}

/// The types of events that actions raise or send.
pub(super) struct Raised<'d> {
    types: FxHashSet<&'d str>,
    /// Whether some type is computed at run time, so that any type is possible.
    any: bool,
}

impl<'d> Raised<'d> {
    pub(super) fn of(def: &'d definition::Definition) -> Raised<'d> {
        let mut raised = Raised { types: FxHashSet::default(), any: false };
        let mut blocks: Vec<&definition::Block> = def.actions.values().collect();
        let mut states = vec![&def.root.state];
        states.extend(def.machines.values().map(|machine| &machine.state));
        while let Some(state) = states.pop() {
            states.extend(state.states.values());
            blocks.extend(blocks_of(state));
        }
        while let Some(block) = blocks.pop() {
            for action in block {
                match action {
                    definition::Action::Raise { r#type, .. } => raised.add(r#type),
                    definition::Action::Send(send) => raised.add(&send.r#type),
                    definition::Action::If(branches) => blocks.extend(branches.iter().map(|b| &b.r#do)),
                    definition::Action::Each { r#do, .. } => blocks.push(r#do),
                    _ => {}
                }
            }
        }
        raised
    }

    fn add(&mut self, r#type: &'d definition::Template) {
        match r#type {
            definition::Template::Literal(literal) => self.types.extend(literal.as_str()),
            _ => self.any = true,
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.any || self.types.contains(name)
    }
}

/// Returns all blocks directly in a state.
fn blocks_of(state: &definition::State) -> Vec<&definition::Block> {
    let answers = state.invoke.iter().flat_map(|i| i.on_done.iter().chain(&i.on_error));
    let transitions = (state.on.iter().flat_map(|o| &o.transitions))
        .chain(&state.always)
        .chain(&state.on_done)
        .chain(state.after.iter().flat_map(|a| &a.transitions))
        .chain(answers);
    transitions
        .map(|t| &t.actions)
        .chain(state.entry.iter().chain(&state.exit))
        .chain(state.invoke.iter().map(|i| &i.finalize))
        .chain(state.initial.iter().map(|i| &i.actions))
        .collect()
}

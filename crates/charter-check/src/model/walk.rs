//! Visitors for transitions, states and actions: they yield expressions, assignments and other
//! items.

use charter_kernel::definition::{Action, Block, Delay, Guard, Require, State, Template, Transition};

use super::{Model, escape};

/// A visited item.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'d> {
    /// An expression.
    Cel(&'d str),
    /// An assignment: path and value. Its expressions are visited as [`Item::Cel`], too.
    Assign(&'d str, &'d Template),
    /// A use of a named guard; its expressions follow.
    Guard(&'d str),
    /// A use of a named block; its actions follow.
    Block(&'d str),
    /// A use of a named delay.
    Delay(&'d str),
    /// Any other action.
    Action(&'d Action),
}

/// A visitor: it gets the JSON pointer and the item.
pub(crate) type Visit<'v, 'd> = &'v mut dyn FnMut(&str, Item<'d>);

/// Upper limit of nesting, as a safeguard: the kernel refuses named guards and blocks that contain
/// themselves.
const MAX_NESTING: usize = 110;

impl<'d> Model<'d> {
    /// Visits the conditions of a transition, but not its actions.
    pub(crate) fn visit_condition(&self, t: &'d Transition, at: &str, visit: Visit<'_, 'd>) {
        if let Some(guard) = &t.guard {
            self.visit_guard(guard, &format!("{at}/guard"), visit, 0);
        }
        if let Some(when) = &t.when {
            visit(&format!("{at}/when"), Item::Cel(when));
        }
        if let Some(approves) = &t.approves {
            visit(&format!("{at}/approves"), Item::Cel(approves));
        }
        if let Some(not_by) = &t.not_by {
            visit(&format!("{at}/not_by"), Item::Cel(not_by));
        }
        for (i, require) in t.requires.iter().enumerate() {
            match require {
                Require::Use { key, when, .. } => {
                    template(key, &format!("{at}/requires/{i}/use/key"), visit);
                    if let Some(when) = when {
                        visit(&format!("{at}/requires/{i}/use/when"), Item::Cel(when));
                    }
                }
                Require::Open { key, .. } => template(key, &format!("{at}/requires/{i}/open/key"), visit),
                Require::None { .. } => {}
            }
        }
    }

    pub(crate) fn visit_guard(&self, guard: &'d Guard, at: &str, visit: Visit<'_, 'd>, depth: usize) {
        if depth > MAX_NESTING {
            return;
        }
        let deeper = depth.saturating_add(1);
        match guard {
            Guard::Cel(cel) => visit(&format!("{at}/cel"), Item::Cel(cel)),
            Guard::Name(name) => {
                visit(&format!("{at}/name"), Item::Guard(name));
                if let Some(guard) = self.def.guards.get(name) {
                    self.visit_guard(guard, &format!("/guards/{}", escape(name)), visit, deeper);
                }
            }
            Guard::And(all) => {
                all.iter().enumerate().for_each(|(i, g)| self.visit_guard(g, &format!("{at}/and/{i}"), visit, deeper))
            }
            Guard::Or(any) => {
                any.iter().enumerate().for_each(|(i, g)| self.visit_guard(g, &format!("{at}/or/{i}"), visit, deeper))
            }
            Guard::Not(guard) => self.visit_guard(guard, &format!("{at}/not"), visit, deeper),
        }
    }

    pub(crate) fn visit_blocks(&self, blocks: &'d [Block], at: &str, visit: Visit<'_, 'd>) {
        blocks.iter().enumerate().for_each(|(i, b)| self.visit_block(b, &format!("{at}/{i}"), visit));
    }

    pub(crate) fn visit_block(&self, block: &'d [Action], at: &str, visit: Visit<'_, 'd>) {
        self.block(block, at, visit, 0);
    }

    fn block(&self, block: &'d [Action], at: &str, visit: Visit<'_, 'd>, depth: usize) {
        if depth > MAX_NESTING {
            return;
        }
        for (i, action) in block.iter().enumerate() {
            self.action(action, &format!("{at}/{i}"), visit, depth.saturating_add(1));
        }
    }

    fn action(&self, action: &'d Action, at: &str, visit: Visit<'_, 'd>, depth: usize) {
        let maybe = |t: &'d Option<Template>, at: String, visit: Visit<'_, 'd>| {
            if let Some(t) = t {
                template(t, &at, visit);
            }
        };
        match action {
            Action::Name(name) => {
                visit(&format!("{at}/name"), Item::Block(name));
                if let Some(block) = self.def.actions.get(name) {
                    self.block(block, &format!("/actions/{}", escape(name)), visit, depth);
                }
                return;
            }
            Action::Assign(list) => {
                for (path, value) in list {
                    let at = format!("{at}/assign/{}", escape(path));
                    visit(&at, Item::Assign(path, value));
                    for cel in indexes(path) {
                        visit(&at, Item::Cel(cel));
                    }
                    template(value, &at, visit);
                }
                return;
            }
            Action::Raise { r#type, data } => {
                template(r#type, &format!("{at}/raise/type"), visit);
                maybe(data, format!("{at}/raise/data"), visit);
            }
            Action::Emit { r#type, data } => {
                template(r#type, &format!("{at}/emit/type"), visit);
                maybe(data, format!("{at}/emit/data"), visit);
            }
            Action::Send(send) => {
                maybe(&send.to, format!("{at}/send/to"), visit);
                template(&send.r#type, &format!("{at}/send/type"), visit);
                maybe(&send.data, format!("{at}/send/data"), visit);
                maybe(&send.id, format!("{at}/send/id"), visit);
                maybe(&send.processor, format!("{at}/send/processor"), visit);
                if let Some(d) = &send.delay {
                    self.visit_delay(d, &format!("{at}/send/delay"), visit);
                }
            }
            Action::Cancel(id) => template(id, &format!("{at}/cancel"), visit),
            Action::Stop(id) => template(id, &format!("{at}/stop"), visit),
            Action::Log { value, .. } => template(value, &format!("{at}/log/value"), visit),
            Action::Spawn { id, input, .. } => {
                template(id, &format!("{at}/spawn/id"), visit);
                maybe(input, format!("{at}/spawn/input"), visit);
            }
            Action::If(branches) => {
                visit(at, Item::Action(action));
                for (i, branch) in branches.iter().enumerate() {
                    if let Some(when) = &branch.when {
                        visit(&format!("{at}/if/{i}/when"), Item::Cel(when));
                    }
                    self.block(&branch.r#do, &format!("{at}/if/{i}/do"), visit, depth);
                }
                return;
            }
            Action::Each { r#in, r#do, .. } => {
                visit(at, Item::Action(action));
                visit(&format!("{at}/each/in"), Item::Cel(r#in));
                self.block(r#do, &format!("{at}/each/do"), visit, depth);
                return;
            }
            Action::Grant { key, uses, expires, data, .. } => {
                template(key, &format!("{at}/grant/key"), visit);
                maybe(uses, format!("{at}/grant/uses"), visit);
                maybe(expires, format!("{at}/grant/expires"), visit);
                maybe(data, format!("{at}/grant/data"), visit);
            }
            Action::Revoke { key, .. } => maybe(key, format!("{at}/revoke/key"), visit),
            Action::Open { key, due, data, .. } => {
                template(key, &format!("{at}/open/key"), visit);
                maybe(due, format!("{at}/open/due"), visit);
                maybe(data, format!("{at}/open/data"), visit);
            }
            Action::Close { key, r#as, .. } => {
                maybe(key, format!("{at}/close/key"), visit);
                maybe(r#as, format!("{at}/close/as"), visit);
            }
        }
        visit(at, Item::Action(action));
    }

    pub(crate) fn visit_delay(&self, delay: &'d Delay, at: &str, visit: Visit<'_, 'd>) {
        match delay {
            Delay::Ms(_) => {}
            Delay::Cel(cel) => visit(&format!("{at}/cel"), Item::Cel(cel)),
            Delay::Name(name) => {
                visit(&format!("{at}/name"), Item::Delay(name));
                if let Some(Delay::Cel(cel)) = self.def.delays.get(name) {
                    visit(&format!("/delays/{}/cel", escape(name)), Item::Cel(cel));
                }
            }
        }
    }

    /// Visits a state, but not its transitions and children.
    pub(crate) fn visit_state(&self, state: &'d State, at: &str, visit: Visit<'_, 'd>) {
        self.visit_blocks(&state.entry, &format!("{at}/entry"), visit);
        self.visit_blocks(&state.exit, &format!("{at}/exit"), visit);
        if let Some(initial) = &state.initial {
            self.visit_block(&initial.actions, &format!("{at}/initial/actions"), visit);
        }
        if let Some(output) = &state.output {
            template(output, &format!("{at}/output"), visit);
        }
        for (name, value) in &state.data {
            template(value, &format!("{at}/data/{}", escape(name)), visit);
        }
        for (i, after) in state.after.iter().enumerate() {
            self.visit_delay(&after.delay, &format!("{at}/after/{i}/delay"), visit);
        }
        for (i, invoke) in state.invoke.iter().enumerate() {
            if let Some(input) = &invoke.input {
                template(input, &format!("{at}/invoke/{i}/input"), visit);
            }
            if let Some(choose) = &invoke.choose {
                visit(&format!("{at}/invoke/{i}/choose/value"), Item::Cel(&choose.value));
            }
            if let Some(timeout) = &invoke.timeout {
                self.visit_delay(timeout, &format!("{at}/invoke/{i}/timeout"), visit);
            }
            self.visit_block(&invoke.finalize, &format!("{at}/invoke/{i}/finalize"), visit);
        }
    }

    /// Visits the whole charter. A named guard or block is visited each time it is used.
    pub(crate) fn visit_all(&self, visit: Visit<'_, 'd>) {
        for chart in &self.charts {
            for (name, value) in &chart.def.context {
                template(value, &format!("{}/context/{}", chart.at, escape(name)), visit);
            }
            if let Some(output) = &chart.def.output {
                template(output, &format!("{}/output", chart.at), visit);
            }
            for state in &chart.states {
                self.visit_state(state.def, &state.at, visit);
            }
            for t in &chart.transitions {
                self.visit_condition(t.def, t.at, visit);
                self.visit_block(&t.def.actions, &format!("{}/actions", t.at), visit);
            }
        }
        for (name, actor) in &self.def.actors {
            if let Some(timeout) = &actor.timeout {
                self.visit_delay(timeout, &format!("/actors/{}/timeout", escape(name)), visit);
            }
        }
    }

    /// The context variables that an expression reads (`context.NAME...`); `None` stands for the
    /// whole context.
    pub(crate) fn context_reads(&self, cel: &'d str) -> Vec<Option<String>> {
        let Some(ast) = self.ast(cel) else {
            return Vec::new();
        };
        let first = |p: &charter_expr::Path| match p.segments().first() {
            Some(charter_expr::Segment::Field(name)) => Some(name.to_string()),
            Some(charter_expr::Segment::Index(charter_expr::Key::String(name))) => Some(name.as_str().to_string()),
            _ => None,
        };
        ast.reads().iter().filter(|p| p.root() == "context").map(first).collect()
    }

    /// Whether an expression reads the root name `root`.
    pub(crate) fn reads_root(&self, cel: &'d str, root: &str) -> bool {
        self.ast(cel).is_some_and(|ast| ast.roots().any(|(name, _)| name == root))
    }

    /// The expressions of a template.
    pub(crate) fn cels(value: &'d Template) -> Vec<&'d str> {
        let mut out = Vec::new();
        template(value, "", &mut |_, item| {
            if let Item::Cel(cel) = item {
                out.push(cel);
            }
        });
        out
    }
}

/// Visits the expressions of a template.
pub(crate) fn template<'d>(value: &'d Template, at: &str, visit: Visit<'_, 'd>) {
    match value {
        Template::Literal(_) => {}
        Template::Cel(cel) => visit(&format!("{at}/cel"), Item::Cel(cel)),
        Template::List(items) => {
            items.iter().enumerate().for_each(|(i, t)| template(t, &format!("{at}/list/{i}"), visit))
        }
        Template::Object(fields) => {
            fields.iter().for_each(|(k, t)| template(t, &format!("{at}/object/{}", escape(k)), visit))
        }
    }
}

/// The context variable at the start of the path of an assignment.
pub(crate) fn variable_of(path: &str) -> &str {
    path.get(..path.find(['.', '[']).unwrap_or(path.len())).unwrap_or("")
}

/// The expressions in brackets in the path of an assignment.
pub(crate) fn indexes(path: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = path;
    while let Some(start) = rest.find('[') {
        let Some(tail) = rest.get(start.saturating_add(1)..) else {
            break;
        };
        let Some(end) = closing(tail) else { break };
        out.extend(tail.get(..end));
        rest = tail.get(end.saturating_add(1)..).unwrap_or("");
    }
    out
}

/// Finds the bracket that closes the one before `text`; ignores brackets in quotes.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '(' | '{') => depth = depth.saturating_add(1),
            (None, ']') if depth == 0 => return Some(i),
            (None, ']' | ')' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_assignments() {
        assert_eq!(variable_of("a.b"), "a");
        assert_eq!(variable_of("a[event.k].b"), "a");
        assert_eq!(indexes("a[event.k].b[\"]\" + x[0]]"), ["event.k", "\"]\" + x[0]"]);
    }
}

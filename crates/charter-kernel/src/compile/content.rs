//! Compiles blocks of actions: expressions become programs, variable names become slots.

use std::sync::Arc;

use super::scheme::Scheme;
use super::{Compiler, MAX_NESTING, escape};
use crate::machine::{Action, Assign, Block, Segment, Send};
use crate::{definition, scope};

/// Upper limit of the actions of a named action with everything that it uses: actions that use
/// others twice would have millions within a few lines.
const MAX_ACTIONS: usize = 1_000;

/// Counts the actions of a block with those of the named actions in it, and the levels of blocks.
fn size<'d>(scheme: &Scheme<'d>, block: &'d [definition::Action]) -> (usize, usize) {
    use definition::Action as D;
    let join = |(a, b): (usize, usize), (c, d): (usize, usize)| (a.saturating_add(c), b.max(d));
    let of = |action: &'d D| match action {
        D::Name(name) => scheme.sizes.get(name.as_str()).copied().unwrap_or_default(),
        D::If(branches) => branches.iter().map(|b| size(scheme, &b.r#do)).fold((0, 0), join),
        D::Each { r#do, .. } => size(scheme, r#do),
        _ => (0, 0),
    };
    let all = block.iter().map(|action| join((1, 0), of(action))).fold((0, 0), join);
    (all.0, all.1.saturating_add(1))
}

impl<'d> Compiler<'d> {
    pub(super) fn blocks(&mut self, scheme: &mut Scheme<'d>, defs: &'d [definition::Block], at: &str) -> Vec<Block> {
        defs.iter().enumerate().map(|(i, b)| self.block(scheme, b, &format!("{at}/{i}"), &mut Vec::new())).collect()
    }

    pub(super) fn block(
        &mut self,
        scheme: &mut Scheme<'d>,
        def: &'d [definition::Action],
        at: &str,
        locals: &mut Vec<String>,
    ) -> Block {
        if locals.len() > MAX_NESTING || scheme.pending.len() > MAX_NESTING || at.len() > 20_000 {
            self.problem("too-large", at, format!("actions nest deeper than {MAX_NESTING}"), None);
            return Vec::new();
        }
        def.iter().enumerate().filter_map(|(i, a)| self.action(scheme, a, &format!("{at}/{i}"), locals)).collect()
    }

    fn named(&mut self, scheme: &mut Scheme<'d>, name: &'d str, at: &str) -> Option<Action> {
        if let Some(block) = scheme.blocks.get(name) {
            return block.clone().map(Action::Named);
        }
        let Some(def) = self.def.actions.get(name) else {
            let help = self
                .did_you_mean(name, self.def.actions.keys().map(String::as_str))
                .unwrap_or_else(|| "declare it under `actions`".to_string());
            self.problem("unknown-action", at, format!("no action named `{name}`"), Some(help));
            return None;
        };
        if scheme.pending.contains(&name) {
            self.problem(
                "action-loop",
                at,
                format!("action `{name}` contains itself"),
                Some("an action may use others, but not itself".into()),
            );
            return None;
        }
        scheme.pending.push(name);
        let at = format!("/actions/{}", escape(name));
        let block = self.block(scheme, def, &at, &mut Vec::new());
        scheme.pending.pop();
        let (actions, depth) = size(scheme, def);
        let problem = match () {
            () if actions > MAX_ACTIONS => Some(format!("the action has more than {MAX_ACTIONS} actions")),
            () if depth > MAX_NESTING => Some(format!("actions are nested deeper than {MAX_NESTING} levels")),
            () => None,
        };
        // An action with a problem is not counted in those that use it.
        scheme.sizes.insert(name, if problem.is_some() { (0, 0) } else { (actions, depth) });
        let block = match problem {
            None => Some(Arc::new(block)),
            Some(message) => {
                let help = "use fewer actions, `each`, or a variable that an expression computes";
                self.problem("action-size", &at, message, Some(help.into()));
                None
            }
        };
        scheme.blocks.insert(name, block.clone());
        block.map(Action::Named)
    }

    fn action(
        &mut self,
        scheme: &mut Scheme<'d>,
        def: &'d definition::Action,
        at: &str,
        locals: &mut Vec<String>,
    ) -> Option<Action> {
        use definition::Action as D;
        Some(match def {
            D::Name(name) => return self.named(scheme, name, &format!("{at}/name")),
            D::Assign(list) => {
                let mut assigns = Vec::with_capacity(list.len());
                for (path, value) in list {
                    let at = format!("{at}/assign/{}", escape(path));
                    let value = self.template(value, &at, locals);
                    if let Some((slot, path)) = self.location(scheme, path, &format!("{at}/#"), locals) {
                        assigns.push(Assign { slot, path, value });
                    }
                }
                Action::Assign(assigns)
            }
            D::Raise { r#type, data } => Action::Raise {
                kind: self.type_name(r#type, &format!("{at}/raise/type"), locals),
                data: self.maybe(data.as_ref(), &format!("{at}/raise/data"), locals),
            },
            D::Send(send) => {
                let at = format!("{at}/send");
                let id_location = match &send.id_location {
                    Some(name) => self.slot_of(scheme, name, &format!("{at}/id_location")),
                    None => None,
                };
                let delay = match &send.delay {
                    Some(d) => Some(self.delay(d, &format!("{at}/delay"), locals)?),
                    None => None,
                };
                Action::Send(Box::new(Send {
                    to: self.maybe(send.to.as_ref(), &format!("{at}/to"), locals),
                    kind: self.type_name(&send.r#type, &format!("{at}/type"), locals),
                    data: self.maybe(send.data.as_ref(), &format!("{at}/data"), locals),
                    delay,
                    id: self.maybe(send.id.as_ref(), &format!("{at}/id"), locals),
                    id_location,
                    processor: self.maybe(send.processor.as_ref(), &format!("{at}/processor"), locals),
                }))
            }
            D::Cancel(id) => Action::Cancel(self.template(id, &format!("{at}/cancel"), locals)),
            D::Emit { r#type, data } => Action::Emit {
                kind: self.template(r#type, &format!("{at}/emit/type"), locals),
                data: self.maybe(data.as_ref(), &format!("{at}/emit/data"), locals),
            },
            D::Log { value, label } => Action::Log {
                value: self.template(value, &format!("{at}/log/value"), locals),
                label: label.clone().map(String::into_boxed_str),
            },
            D::Spawn { machine, id, input } => Action::Spawn {
                what: self.src(machine, &format!("{at}/spawn/machine"))?,
                id: self.template(id, &format!("{at}/spawn/id"), locals),
                input: self.maybe(input.as_ref(), &format!("{at}/spawn/input"), locals),
            },
            D::Stop(id) => Action::Stop(self.template(id, &format!("{at}/stop"), locals)),
            D::If(branches) => {
                let mut compiled = Vec::with_capacity(branches.len());
                for (i, branch) in branches.iter().enumerate() {
                    let at = format!("{at}/if/{i}");
                    let when = match &branch.when {
                        Some(cel) => Some(self.cel(cel, &format!("{at}/when"), locals)?),
                        None if i.saturating_add(1) < branches.len() => {
                            self.problem(
                                "dead-branch",
                                &at,
                                "the branches after this one are never tried",
                                Some("only the last branch may omit `when`".into()),
                            );
                            None
                        }
                        None => None,
                    };
                    compiled.push((when, self.block(scheme, &branch.r#do, &format!("{at}/do"), locals)));
                }
                Action::If(compiled)
            }
            D::Each { r#in, r#as, index, r#do } => {
                let at = format!("{at}/each");
                let list = self.cel(r#in, &format!("{at}/in"), locals);
                let depth = locals.len();
                for name in std::iter::once(r#as).chain(index) {
                    if scope::ROOTS.contains(&name.as_str())
                        || scope::SCXML_ROOTS.contains(&name.as_str())
                        || locals.contains(name)
                        || !is_name(name)
                    {
                        let help = Some("use letters, digits and `_`, and a name that is not taken yet".to_string());
                        self.problem("bad-name", &format!("{at}/as"), format!("`{name}` cannot name an item"), help);
                        return None;
                    }
                    locals.push(name.clone());
                }
                let block = self.block(scheme, r#do, &format!("{at}/do"), locals);
                locals.truncate(depth);
                Action::Each {
                    list: list?,
                    index: index.is_some(),
                    depth: u32::try_from(depth).unwrap_or(u32::MAX),
                    block,
                }
            }
            D::Grant { kind, key, uses, expires, data } => {
                let at = format!("{at}/grant");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.template(key, &format!("{at}/key"), locals);
                let uses = self.maybe(uses.as_ref(), &format!("{at}/uses"), locals);
                let expires = self.maybe(expires.as_ref(), &format!("{at}/expires"), locals);
                let data = self.maybe(data.as_ref(), &format!("{at}/data"), locals);
                Action::Grant { kind: kind?, key, uses, expires, data }
            }
            D::Revoke { kind, key } => {
                let at = format!("{at}/revoke");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.maybe(key.as_ref(), &format!("{at}/key"), locals);
                Action::Revoke { kind: kind?, key }
            }
            D::Open { kind, key, due, data } => {
                let at = format!("{at}/open");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.template(key, &format!("{at}/key"), locals);
                let due = self.maybe(due.as_ref(), &format!("{at}/due"), locals);
                let data = self.maybe(data.as_ref(), &format!("{at}/data"), locals);
                Action::Open { kind: kind?, key, due, data }
            }
            D::Close { kind, key, r#as } => {
                let at = format!("{at}/close");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.maybe(key.as_ref(), &format!("{at}/key"), locals);
                let how = self.maybe(r#as.as_ref(), &format!("{at}/as"), locals);
                Action::Close { kind: kind?, key, how }
            }
        })
    }

    pub(super) fn slot_of(&mut self, scheme: &Scheme<'d>, name: &str, at: &str) -> Option<u32> {
        let slot = scheme.slot(name);
        if slot.is_none() {
            let names = scheme.slot_names();
            let help = self.did_you_mean(name, names.iter().copied());
            self.problem("unknown-variable", at, format!("the context has no `{name}`"), help);
        }
        slot
    }

    /// Parses `name.field[CEL].field`.
    fn location(
        &mut self,
        scheme: &Scheme<'d>,
        path: &str,
        at: &str,
        locals: &[String],
    ) -> Option<(u32, Vec<Segment>)> {
        let name = variable_of(path);
        let mut rest = path.strip_prefix(name).unwrap_or("");
        let mut segments = Vec::new();
        let bad = |c: &mut Self| {
            let help = Some("write `name`, `name.field`, or `name[CEL]`".to_string());
            c.problem("bad-location", at, format!("`{path}` is not a place in the context"), help);
        };
        if name.is_empty() {
            bad(self);
            return None;
        }
        while !rest.is_empty() {
            if let Some(tail) = rest.strip_prefix('.') {
                let end = tail.find(['.', '[']).unwrap_or(tail.len());
                let (key, tail) = tail.split_at_checked(end)?;
                if !is_name(key) {
                    bad(self);
                    return None;
                }
                segments.push(Segment::Key(key.into()));
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix('[') {
                let Some(end) = closing(tail) else {
                    bad(self);
                    return None;
                };
                let begins = path.len().saturating_sub(tail.len());
                let (cel, tail) = tail.split_at_checked(end)?;
                let index = self.cel_within(cel, at, begins, locals)?;
                segments.push(Segment::Computed(index));
                rest = tail.strip_prefix(']').unwrap_or(tail);
            } else {
                bad(self);
                return None;
            }
        }
        Some((self.slot_of(scheme, name, at)?, segments))
    }
}

/// The context variable that a location begins with.
pub(super) fn variable_of(path: &str) -> &str {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    path.get(..end).filter(|n| !n.is_empty() && !n.chars().any(char::is_whitespace)).unwrap_or("")
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphanumeric() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// Returns the position of the bracket that closes one opened before `text`; skips quoted strings.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0usize, None);
    let mut escaped = false;
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

//! Guards, actions, values and delays: texts become programs.

use std::sync::Arc;

use charter_expr::{Env, Program, Type};
use smallvec::SmallVec;

use super::chart::Scheme;
use super::{Compiler, MAX_NESTING, escape};
use crate::definition;
use crate::machine::{
    Action, Assign, Block, Delay, Guard, Require, Segment, Send, Template, Transition, TypeName,
};
use crate::refusal::Code;
use crate::scope;

impl<'d> Compiler<'d> {
    /// Compiles CEL; `locals` are the names bound by `each` and `requires` around it.
    pub(super) fn cel(&mut self, text: &str, at: &str, locals: &[String]) -> Option<Program> {
        // Imports: a name that means nothing is an error when it is evaluated, not before (SCXML 5.9).
        let compile = |env: &Env| {
            if self.def.strict {
                Program::compile(text, env)
            } else {
                Program::compile_lenient(text, env)
            }
        };
        let result = if locals.is_empty() {
            compile(&self.env)
        } else {
            let mut env: Env = self.env.clone();
            for name in locals {
                env.root(name, Type::Dyn);
            }
            compile(&env)
        };
        match result {
            Ok(program) => {
                self.note_reads(&program);
                Some(program)
            }
            Err(e) => {
                self.problem_in(
                    "bad-expression",
                    at,
                    Some((e.span.start, e.span.end)),
                    e.message,
                    e.help,
                );
                None
            }
        }
    }

    /// Which parts of events are read: what an event may be reduced to.
    fn note_reads(&mut self, program: &Program) {
        for path in program.reads() {
            if path.root() == "_event" {
                self.whole_events = true;
            }
            if path.root() != "event" {
                continue;
            }
            let mut fields: Vec<Box<str>> = Vec::new();
            for segment in path.segments() {
                match segment {
                    charter_expr::Segment::Field(name) => fields.push((**name).into()),
                    charter_expr::Segment::Index(_) => break,
                }
            }
            match fields.first().map(AsRef::as_ref) {
                None => self.whole_events = true,
                Some("type") => continue,
                // `event.data.x` is `event.x`.
                Some("data") => drop(fields.remove(0)),
                Some(_) => {}
            }
            if fields.is_empty() {
                self.whole_events = true;
            } else if !self.event_reads.contains(&fields) {
                self.event_reads.push(fields);
            }
        }
    }

    pub(super) fn template(
        &mut self,
        def: &definition::Template,
        at: &str,
        locals: &[String],
    ) -> Template {
        self.template_at(def, at, locals, 0)
    }

    fn template_at(
        &mut self,
        def: &definition::Template,
        at: &str,
        locals: &[String],
        depth: usize,
    ) -> Template {
        let null = || Template::Literal(Arc::new(serde_json::Value::Null));
        if depth > MAX_NESTING {
            self.problem(
                "too-large",
                at,
                format!("values nest deeper than {MAX_NESTING}"),
                None,
            );
            return null();
        }
        let deeper = depth.saturating_add(1);
        match def {
            definition::Template::Literal(json) => {
                let mut json = json.clone();
                if let Err(e) = charter_expr::json::canonical(&mut json) {
                    self.problem(
                        "bad-number",
                        at,
                        e.to_string(),
                        Some("write it as a text".into()),
                    );
                }
                Template::Literal(Arc::new(json))
            }
            definition::Template::Cel(text) => self
                .cel(text, &format!("{at}/cel"), locals)
                .map_or_else(null, Template::Cel),
            definition::Template::List(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.template_at(t, &format!("{at}/list/{i}"), locals, deeper));
                Template::List(items.collect())
            }
            definition::Template::Object(fields) => {
                let fields = fields.iter().map(|(k, t)| {
                    let value =
                        self.template_at(t, &format!("{at}/object/{}", escape(k)), locals, deeper);
                    (k.clone().into_boxed_str(), value)
                });
                Template::Object(fields.collect())
            }
        }
    }

    fn maybe(
        &mut self,
        def: Option<&definition::Template>,
        at: &str,
        locals: &[String],
    ) -> Option<Template> {
        def.map(|t| self.template(t, at, locals))
    }

    pub(super) fn delay(
        &mut self,
        def: &definition::Delay,
        at: &str,
        locals: &[String],
    ) -> Option<Delay> {
        match def {
            definition::Delay::Ms(ms) => {
                let ms = i64::try_from(*ms)
                    .ok()
                    .filter(|ms| *ms <= crate::time::MAX_DELAY);
                if ms.is_none() {
                    self.problem("bad-delay", at, "longer than 1,000 years", None);
                }
                ms.map(Delay::Ms)
            }
            definition::Delay::Cel(text) => {
                self.cel(text, &format!("{at}/cel"), locals).map(Delay::Cel)
            }
            definition::Delay::Name(name) => {
                match self.def.delays.get(name) {
                    Some(definition::Delay::Name(_)) => None, // reported where it is declared
                    Some(other) => self.delay(other, &format!("/delays/{}", escape(name)), locals),
                    None => {
                        let help = match charter_expr::nearest(name, self.def.delays.keys().map(String::as_str)) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "a length such as `24h` or `500ms`, or a name declared under `delays`".to_string(),
                    };
                        self.problem(
                            "unknown-delay",
                            at,
                            format!("no delay is called `{name}`"),
                            Some(help),
                        );
                        None
                    }
                }
            }
        }
    }

    pub(super) fn guard(
        &mut self,
        def: &'d definition::Guard,
        at: &str,
        depth: usize,
    ) -> Option<Guard> {
        if depth > MAX_NESTING {
            self.problem(
                "guard-loop",
                at,
                "guards refer to each other in a circle",
                Some("a guard may use others, but not itself".into()),
            );
            return None;
        }
        let deeper = depth.saturating_add(1);
        match def {
            definition::Guard::Cel(text) => {
                self.cel(text, &format!("{at}/cel"), &[]).map(Guard::Cel)
            }
            definition::Guard::Name(name) => {
                match self.def.guards.get(name) {
                    Some(guard) => {
                        let guard =
                            self.guard(guard, &format!("/guards/{}", escape(name)), deeper)?;
                        Some(Guard::Named(Arc::new((
                            name.clone().into_boxed_str(),
                            guard,
                        ))))
                    }
                    None => {
                        let help = match charter_expr::nearest(name, self.def.guards.keys().map(String::as_str)) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "declare it under `guards`, or write the condition in place as `when`".to_string(),
                    };
                        self.problem(
                            "unknown-guard",
                            at,
                            format!("no guard is called `{name}`"),
                            Some(help),
                        );
                        None
                    }
                }
            }
            definition::Guard::And(all) => {
                let all: Option<Vec<_>> = all
                    .iter()
                    .enumerate()
                    .map(|(i, g)| self.guard(g, &format!("{at}/and/{i}"), deeper))
                    .collect();
                all.map(Guard::And)
            }
            definition::Guard::Or(any) => {
                let any: Option<Vec<_>> = any
                    .iter()
                    .enumerate()
                    .map(|(i, g)| self.guard(g, &format!("{at}/or/{i}"), deeper))
                    .collect();
                any.map(Guard::Or)
            }
            definition::Guard::Not(guard) => self
                .guard(guard, &format!("{at}/not"), deeper)
                .map(|g| Guard::Not(Box::new(g))),
        }
    }

    fn ledger_kind(&mut self, name: &str, at: &str) -> Option<u32> {
        let found = self
            .def
            .ledger
            .get_index_of(name)
            .and_then(|i| u32::try_from(i).ok());
        if found.is_none() {
            let help = match charter_expr::nearest(name, self.def.ledger.keys().map(String::as_str))
            {
                Some(near) => format!("did you mean `{near}`?"),
                None => "declare it under `ledger`".to_string(),
            };
            self.problem(
                "unknown-ledger-kind",
                at,
                format!("the ledger has no kind `{name}`"),
                Some(help),
            );
        }
        found
    }

    pub(super) fn require(&mut self, def: &definition::Require, at: &str) -> Option<Require> {
        match def {
            definition::Require::Use {
                kind,
                key,
                when,
                rules,
            } => {
                let at = format!("{at}/use");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.template(key, &format!("{at}/key"), &[]);
                // `entry` is a fixed root of the scope.
                let when = match when {
                    Some(cel) => Some(self.cel(cel, &format!("{at}/when"), &[])?),
                    None => None,
                };
                let rules = self.permit_rules(rules, &format!("{at}/rules"));
                Some(Require::Use {
                    kind: kind?,
                    key,
                    when,
                    rules,
                })
            }
            definition::Require::Open { kind, key, rule } => {
                let kind = self.ledger_kind(kind, &format!("{at}/open/kind"));
                let key = self.template(key, &format!("{at}/open/key"), &[]);
                let rule = rule
                    .as_ref()
                    .and_then(|rule| self.rule(rule, &format!("{at}/open/rule")));
                Some(Require::Open {
                    kind: kind?,
                    key,
                    rule,
                })
            }
            definition::Require::None { kind, rule } => {
                let rule = rule
                    .as_ref()
                    .and_then(|rule| self.rule(rule, &format!("{at}/none/rule")));
                self.ledger_kind(kind, &format!("{at}/none/kind"))
                    .map(|kind| Require::None { kind, rule })
            }
        }
    }

    /// Which rule is named by what can be wrong with a permit.
    fn permit_rules(
        &mut self,
        rules: &indexmap::IndexMap<String, String>,
        at: &str,
    ) -> SmallVec<[(Code, u32); 2]> {
        let mut out = SmallVec::new();
        for (failure, rule) in rules {
            let at = format!("{at}/{}", escape(failure));
            let code = match failure.as_str() {
                "missing" => Code::PermitMissing,
                "revoked" => Code::PermitRevoked,
                "expired" => Code::PermitExpired,
                "exhausted" => Code::PermitExhausted,
                "scope" => Code::PermitScope,
                _ => {
                    self.problem(
                        "unknown-key",
                        &at,
                        format!("nothing can be `{failure}` with a permit"),
                        Some(format!(
                            "there are: {}",
                            definition::PERMIT_FAILURES.join(", ")
                        )),
                    );
                    continue;
                }
            };
            if let Some(rule) = self.rule(rule, &at) {
                out.push((code, rule));
            }
        }
        out
    }

    pub(super) fn blocks(
        &mut self,
        scheme: &mut Scheme<'d>,
        defs: &'d [definition::Block],
        at: &str,
    ) -> Vec<Block> {
        defs.iter()
            .enumerate()
            .map(|(i, b)| self.block(scheme, b, &format!("{at}/{i}"), &mut Vec::new()))
            .collect()
    }

    pub(super) fn block(
        &mut self,
        scheme: &mut Scheme<'d>,
        def: &'d [definition::Action],
        at: &str,
        locals: &mut Vec<String>,
    ) -> Block {
        if locals.len() > MAX_NESTING || scheme.pending.len() > MAX_NESTING || at.len() > 20_000 {
            self.problem(
                "too-large",
                at,
                format!("actions nest deeper than {MAX_NESTING}"),
                None,
            );
            return Vec::new();
        }
        def.iter()
            .enumerate()
            .filter_map(|(i, a)| self.action(scheme, a, &format!("{at}/{i}"), locals))
            .collect()
    }

    fn named(&mut self, scheme: &mut Scheme<'d>, name: &'d str, at: &str) -> Option<Action> {
        if let Some(block) = scheme.blocks.get(name) {
            return block.clone().map(Action::Named);
        }
        let Some(def) = self.def.actions.get(name) else {
            let help =
                match charter_expr::nearest(name, self.def.actions.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "declare it under `actions`".to_string(),
                };
            self.problem(
                "unknown-action",
                at,
                format!("no action is called `{name}`"),
                Some(help),
            );
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
        let block = self.block(
            scheme,
            def,
            &format!("/actions/{}", escape(name)),
            &mut Vec::new(),
        );
        scheme.pending.pop();
        let block = Arc::new(block);
        scheme.blocks.insert(name, Some(block.clone()));
        Some(Action::Named(block))
    }

    fn type_name(&mut self, def: &definition::Template, at: &str, locals: &[String]) -> TypeName {
        match def {
            definition::Template::Literal(serde_json::Value::String(name)) => {
                if name.is_empty() || name.contains('*') || name.chars().any(char::is_whitespace) {
                    self.problem(
                        "bad-event-name",
                        at,
                        format!("`{name}` is not an event type"),
                        None,
                    );
                }
                TypeName::Known(self.event(name))
            }
            definition::Template::Literal(_) => {
                self.problem("bad-event-name", at, "an event type is a text", None);
                TypeName::Known(0)
            }
            other => TypeName::Computed(self.template(other, at, locals)),
        }
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
                    if let Some((slot, path)) = self.location(scheme, path, &at, locals) {
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
                    processor: self.maybe(
                        send.processor.as_ref(),
                        &format!("{at}/processor"),
                        locals,
                    ),
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
                                Some("only the last branch goes without `when`".into()),
                            );
                            None
                        }
                        None => None,
                    };
                    compiled.push((
                        when,
                        self.block(scheme, &branch.r#do, &format!("{at}/do"), locals),
                    ));
                }
                Action::If(compiled)
            }
            D::Each {
                r#in,
                r#as,
                index,
                r#do,
            } => {
                let at = format!("{at}/each");
                let list = self.cel(r#in, &format!("{at}/in"), locals);
                let depth = locals.len();
                for name in std::iter::once(r#as).chain(index) {
                    if scope::ROOTS.contains(&name.as_str())
                        || scope::SCXML_ROOTS.contains(&name.as_str())
                        || locals.contains(name)
                        || !is_name(name)
                    {
                        let help = Some(
                            "a word of letters, digits and `_` that is not in use yet".to_string(),
                        );
                        self.problem(
                            "bad-name",
                            &format!("{at}/as"),
                            format!("`{name}` cannot name an item"),
                            help,
                        );
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
            D::Grant {
                kind,
                key,
                uses,
                expires,
                data,
            } => {
                let at = format!("{at}/grant");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.template(key, &format!("{at}/key"), locals);
                let uses = self.maybe(uses.as_ref(), &format!("{at}/uses"), locals);
                let expires = self.maybe(expires.as_ref(), &format!("{at}/expires"), locals);
                let data = self.maybe(data.as_ref(), &format!("{at}/data"), locals);
                Action::Grant {
                    kind: kind?,
                    key,
                    uses,
                    expires,
                    data,
                }
            }
            D::Revoke { kind, key } => {
                let at = format!("{at}/revoke");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.maybe(key.as_ref(), &format!("{at}/key"), locals);
                Action::Revoke { kind: kind?, key }
            }
            D::Open {
                kind,
                key,
                due,
                data,
            } => {
                let at = format!("{at}/open");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.template(key, &format!("{at}/key"), locals);
                let due = self.maybe(due.as_ref(), &format!("{at}/due"), locals);
                let data = self.maybe(data.as_ref(), &format!("{at}/data"), locals);
                Action::Open {
                    kind: kind?,
                    key,
                    due,
                    data,
                }
            }
            D::Close { kind, key, r#as } => {
                let at = format!("{at}/close");
                let kind = self.ledger_kind(kind, &format!("{at}/kind"));
                let key = self.maybe(key.as_ref(), &format!("{at}/key"), locals);
                let how = self.maybe(r#as.as_ref(), &format!("{at}/as"), locals);
                Action::Close {
                    kind: kind?,
                    key,
                    how,
                }
            }
        })
    }

    pub(super) fn slot_of(&mut self, scheme: &Scheme<'d>, name: &str, at: &str) -> Option<u32> {
        let slot = scheme.slot(name);
        if slot.is_none() {
            let names = scheme.slot_names();
            let help = charter_expr::nearest(name, names.iter().copied())
                .map(|n| format!("did you mean `{n}`?"));
            self.problem(
                "unknown-variable",
                at,
                format!("the context has no `{name}`"),
                help,
            );
        }
        slot
    }

    /// Reads `name.field[CEL].field`.
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
            c.problem(
                "bad-location",
                at,
                format!("`{path}` is not a place in the context"),
                help,
            );
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
                let (cel, tail) = tail.split_at_checked(end)?;
                segments.push(Segment::Computed(self.cel(cel, at, locals)?));
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
    path.get(..end)
        .filter(|n| !n.is_empty() && !n.chars().any(char::is_whitespace))
        .unwrap_or("")
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_alphanumeric() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The place of the bracket that closes what began before `text`, texts in quotes left alone.
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

/// Whether anything that decides about a transition reads the event.
pub(super) fn reads_event(t: &Transition) -> bool {
    let cel = |p: &Program| p.reads().iter().any(|path| path.root() == "event");
    fn guard(g: &Guard, cel: &dyn Fn(&Program) -> bool) -> bool {
        match g {
            Guard::Cel(p) => cel(p),
            Guard::Named(named) => guard(&named.1, cel),
            Guard::And(list) | Guard::Or(list) => list.iter().any(|g| guard(g, cel)),
            Guard::Not(g) => guard(g, cel),
        }
    }
    fn template(t: &Template, cel: &dyn Fn(&Program) -> bool) -> bool {
        match t {
            Template::Literal(_) => false,
            Template::Cel(p) => cel(p),
            Template::List(list) => list.iter().any(|t| template(t, cel)),
            Template::Object(fields) => fields.iter().any(|(_, t)| template(t, cel)),
        }
    }
    let require = |r: &Require| match r {
        Require::Use { key, when, .. } => template(key, &cel) || when.as_ref().is_some_and(cel),
        Require::Open { key, .. } => template(key, &cel),
        Require::None { .. } => false,
    };
    t.guard.as_ref().is_some_and(|g| guard(g, &cel))
        || t.requires.iter().any(require)
        || t.approves.is_some()
}

//! Compiles expressions, templates and delays, and records which event fields they read.

use std::sync::Arc;

use charter_expr::{CompileError, DelayError, Env, Program, Type};

use super::{Compiler, MAX_NESTING, escape};
use crate::definition;
use crate::machine::{Delay, Guard, Require, Template, Transition, TypeName};
use crate::time::Millis;

impl<'d> Compiler<'d> {
    /// Compiles CEL; `locals` are the names bound by the enclosing `each` and `requires`.
    pub(super) fn cel(&mut self, text: &str, at: &str, locals: &[String]) -> Option<Program> {
        self.cel_within(text, at, 0, locals)
    }

    /// Compiles an expression that begins at byte `begins` of the text at `at`.
    pub(super) fn cel_within(&mut self, text: &str, at: &str, begins: usize, locals: &[String]) -> Option<Program> {
        // In imports, an unknown name is an error only when it is evaluated (SCXML 5.9).
        let compile = |env: &Env| {
            if self.def.strict { Program::compile(text, env) } else { Program::compile_lenient(text, env) }
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
        self.compiled(result, at, begins)
    }

    /// Compiles the key of `unique`, which the host computes before the step: it reads nothing but
    /// the event and its sender.
    pub(super) fn unique_key(&mut self, text: &str, at: &str) -> Option<Program> {
        let result = Program::compile(text, &crate::unique::env());
        self.compiled(result, at, 0)
    }

    /// Reports the error of an expression that begins at byte `begins` of the text at `at`.
    fn compiled(&mut self, result: Result<Program, CompileError>, at: &str, begins: usize) -> Option<Program> {
        match result {
            Ok(program) => {
                self.note_reads(&program);
                Some(program)
            }
            Err(e) => {
                self.problem_in(
                    "bad-expression",
                    at,
                    Some((begins.saturating_add(e.span.start), begins.saturating_add(e.span.end))),
                    e.message,
                    e.help,
                );
                None
            }
        }
    }

    /// Records which parts of events a program reads, so that hosts may drop the others.
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
                // `event.data.x` is the same as `event.x`.
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

    pub(super) fn template(&mut self, def: &definition::Template, at: &str, locals: &[String]) -> Template {
        self.template_at(def, at, locals, 0)
    }

    fn template_at(&mut self, def: &definition::Template, at: &str, locals: &[String], depth: usize) -> Template {
        let null = || Template::Literal(Arc::new(serde_json::Value::Null));
        if depth > MAX_NESTING {
            self.problem("too-large", at, format!("values nest deeper than {MAX_NESTING}"), None);
            return null();
        }
        let deeper = depth.saturating_add(1);
        match def {
            definition::Template::Literal(json) => {
                let mut json = json.clone();
                if let Err(e) = charter_expr::json::canonical(&mut json) {
                    self.problem("bad-number", at, e.to_string(), Some("write it as a string".into()));
                }
                Template::Literal(Arc::new(json))
            }
            definition::Template::Cel(text) => {
                self.cel(text, &format!("{at}/cel"), locals).map_or_else(null, Template::Cel)
            }
            definition::Template::List(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.template_at(t, &format!("{at}/list/{i}"), locals, deeper));
                Template::List(items.collect())
            }
            definition::Template::Object(fields) => {
                let fields = fields.iter().map(|(k, t)| {
                    let value = self.template_at(t, &format!("{at}/object/{}", escape(k)), locals, deeper);
                    (k.clone().into_boxed_str(), value)
                });
                Template::Object(fields.collect())
            }
        }
    }

    pub(super) fn maybe(
        &mut self,
        def: Option<&definition::Template>,
        at: &str,
        locals: &[String],
    ) -> Option<Template> {
        def.map(|t| self.template(t, at, locals))
    }

    pub(super) fn delay(&mut self, def: &definition::Delay, at: &str, locals: &[String]) -> Option<Delay> {
        match def {
            definition::Delay::Ms(ms) => {
                let delay = charter_expr::delay_ms(i128::from(*ms));
                if let Err(error) = delay {
                    self.problem("bad-delay", at, error.message(&ms.to_string()), Some(DelayError::HELP.to_string()));
                }
                delay.ok().map(|ms| Delay::Ms(Millis(ms)))
            }
            definition::Delay::Cel(text) => self.cel(text, &format!("{at}/cel"), locals).map(Delay::Cel),
            definition::Delay::Name(name) => {
                match self.def.delays.get(name) {
                    Some(definition::Delay::Name(_)) => None, // reported where it is declared
                    Some(other) => self.delay(other, &format!("/delays/{}", escape(name)), locals),
                    None => {
                        if charter_expr::resembles_delay(name) {
                            let help = Some(DelayError::HELP.to_string());
                            self.problem("bad-delay", at, DelayError::Malformed.message(name), help);
                            return None;
                        }
                        let help =
                            self.did_you_mean(name, self.def.delays.keys().map(String::as_str)).unwrap_or_else(|| {
                                "write a duration such as `24h` or `500ms`, or a name declared under `delays`"
                                    .to_string()
                            });
                        self.problem("unknown-delay", at, format!("no delay named `{name}`"), Some(help));
                        None
                    }
                }
            }
        }
    }

    pub(super) fn type_name(&mut self, def: &definition::Template, at: &str, locals: &[String]) -> TypeName {
        match def {
            definition::Template::Literal(serde_json::Value::String(name)) => {
                if name.is_empty() || name.contains('*') || name.chars().any(char::is_whitespace) {
                    self.problem("bad-event-name", at, format!("`{name}` is not an event type"), None);
                }
                TypeName::Known(self.event(name))
            }
            definition::Template::Literal(_) => {
                self.problem("bad-event-name", at, "an event type must be a string", None);
                TypeName::Known(0)
            }
            other => TypeName::Computed(self.template(other, at, locals)),
        }
    }
}

/// Whether a condition of a transition reads the event.
pub(super) fn reads_event(t: &Transition) -> bool {
    t.guard.as_ref().is_some_and(Guard::reads_event)
        || t.requires.iter().any(Require::reads_event)
        || t.approves.is_some()
        || t.sender.as_ref().is_some_and(|rule| rule.reads_event())
}

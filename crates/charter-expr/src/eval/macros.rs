//! Macros that iterate over lists and maps (CEL specification, "Macros"; extension `macros2`).

use super::{Evaluated, Evaluation};
use crate::ast::MacroName;
use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::program::{MacroStep, Op};
use crate::value::MapBuilder;
use crate::{Key, List, Map, Value};

/// What a macro iterates over: the items of a list, or the keys of a map in order.
enum Range<'a> {
    List(List<'a>),
    Map(Map<'a>, Vec<Key<'a>>),
}

impl<'a> Range<'a> {
    fn len(&self) -> usize {
        match self {
            Range::List(list) => list.len(),
            Range::Map(_, keys) => keys.len(),
        }
    }
}

impl<'a> Evaluation<'a, '_> {
    /// Evaluates a macro on a value; removes its variables afterwards, even after an error.
    #[inline(never)]
    pub(super) fn run_macro(&mut self, over: Value<'a>, step: &'a MacroStep) -> Evaluated<'a> {
        let range = match over {
            Value::List(list) => Range::List(list),
            Value::Map(map) => {
                self.fuel.spend_elements(map.len())?;
                let keys = map.keys();
                Range::Map(map, keys)
            }
            other => {
                let vars = if step.two_vars { 2 } else { 1 };
                let name = step.name.name(vars);
                return Err(EvalDetail::needs(format!("`{name}`"), "a list or a map", other.type_name()).into());
            }
        };
        let before = self.locals.len();
        let result = match step.name {
            MacroName::All => self.quantified(&range, step, false),
            MacroName::Exists => self.quantified(&range, step, true),
            MacroName::ExistsOne => self.exists_one(&range, step),
            MacroName::Map | MacroName::TransformList => self.mapped(&range, step),
            MacroName::Filter => self.filtered(&range, step),
            MacroName::TransformMap | MacroName::TransformMapEntry => self.transformed(&range, step),
        };
        self.locals.truncate(before);
        result
    }

    /// Binds the variables for one iteration and returns the element: the item or the key.
    fn enter(&mut self, range: &Range<'a>, at: usize, step: &MacroStep) -> Result<Value<'a>, EvalError> {
        self.fuel.spend(1)?;
        let (element, second) = match range {
            Range::List(list) => {
                let item = list.get(at).unwrap_or(Value::Null);
                if step.two_vars {
                    self.locals.push(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
                    (item.clone(), Some(item))
                } else {
                    (item, None)
                }
            }
            Range::Map(map, keys) => {
                let Some(key) = keys.get(at) else {
                    return Ok(Value::Null);
                };
                let value = match step.two_vars {
                    true => Some(map.find(key, self.fuel)?.unwrap_or(Value::Null)),
                    false => None,
                };
                let key = key.clone().into_value();
                if step.two_vars {
                    self.locals.push(key.clone());
                }
                (key, value)
            }
        };
        self.locals.push(second.unwrap_or_else(|| element.clone()));
        Ok(element)
    }

    fn leave(&mut self, step: &MacroStep) {
        let vars = if step.two_vars { 2 } else { 1 };
        self.locals.truncate(self.locals.len().saturating_sub(vars));
    }

    fn predicate(&mut self, op: &'a Op, name: &str) -> Result<bool, EvalError> {
        self.truth(op, &|| format!("the condition of `{name}`"))
    }

    /// Evaluates `all` (decided by false) and `exists` (decided by true).
    fn quantified(&mut self, range: &Range<'a>, step: &'a MacroStep, decisive: bool) -> Evaluated<'a> {
        let name = if decisive { "exists" } else { "all" };
        let mut error = None;
        for at in 0..range.len() {
            let before = self.locals.len();
            self.enter(range, at, step)?;
            let result = self.predicate(&step.body, name);
            // After an error, variables of inner macros may remain.
            self.locals.truncate(before);
            match result {
                Ok(b) if b == decisive => return Ok(Value::Bool(b)),
                Ok(_) => {}
                Err(e) if !e.is_absorbable() => return Err(e),
                Err(e) => {
                    error.get_or_insert(e);
                }
            }
        }
        match error {
            Some(e) => Err(e),
            None => Ok(Value::Bool(!decisive)),
        }
    }

    fn exists_one(&mut self, range: &Range<'a>, step: &'a MacroStep) -> Evaluated<'a> {
        let mut found: usize = 0;
        for at in 0..range.len() {
            self.enter(range, at, step)?;
            found = found.saturating_add(usize::from(self.predicate(&step.body, "exists_one")?));
            self.leave(step);
        }
        Ok(Value::Bool(found == 1))
    }

    fn wanted(&mut self, step: &'a MacroStep) -> Result<bool, EvalError> {
        match &step.condition {
            Some(condition) => self.predicate(condition, step.name.name(1)),
            None => Ok(true),
        }
    }

    fn mapped(&mut self, range: &Range<'a>, step: &'a MacroStep) -> Evaluated<'a> {
        let mut out = Vec::new();
        for at in 0..range.len() {
            self.enter(range, at, step)?;
            if self.wanted(step)? {
                out.push(self.eval(&step.body)?);
            }
            self.leave(step);
        }
        Ok(Value::list(out))
    }

    fn filtered(&mut self, range: &Range<'a>, step: &'a MacroStep) -> Evaluated<'a> {
        let mut out = Vec::new();
        for at in 0..range.len() {
            let element = self.enter(range, at, step)?;
            if self.predicate(&step.body, "filter")? {
                out.push(element);
            }
            self.leave(step);
        }
        Ok(Value::list(out))
    }

    /// Evaluates `transformMap`, which keeps the keys (for a list, the indexes), and
    /// `transformMapEntry`, which creates entries with different keys.
    fn transformed(&mut self, range: &Range<'a>, step: &'a MacroStep) -> Evaluated<'a> {
        let mut out = MapBuilder::default();
        for at in 0..range.len() {
            self.enter(range, at, step)?;
            if self.wanted(step)? {
                let result = self.eval(&step.body)?;
                match (step.name, result) {
                    (MacroName::TransformMap, value) => {
                        let key = match range {
                            Range::List(_) => Key::Int(i64::try_from(at).unwrap_or(i64::MAX)),
                            Range::Map(_, keys) => keys.get(at).cloned().unwrap_or(Key::Bool(false)),
                        };
                        out.push(key, value);
                    }
                    (_, Value::Map(entries)) => {
                        self.fuel.spend_elements(entries.len())?;
                        for (key, value) in entries.entries() {
                            out.push(key, value);
                        }
                    }
                    (_, other) => {
                        let detail =
                            EvalDetail::needs("`transformMapEntry`", "a map with the new entry", other.type_name());
                        return Err(EvalError::from(detail).at(step.body.span));
                    }
                }
            }
            self.leave(step);
        }
        out.finish().map(Value::Map)
    }
}

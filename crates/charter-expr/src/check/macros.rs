//! Checks macros: the types of their variables and of their results.

use std::sync::Arc;

use super::fields::null_help;
use super::{Checker, alternatives, bounded, join};
use crate::ast::{MacroName, Node};
use crate::types::a;
use crate::{Span, Type};

impl Checker<'_> {
    pub(super) fn macro_call(
        &mut self,
        name: MacroName,
        over: &Type,
        vars: &[Arc<str>],
        condition: Option<&Node>,
        body: &Node,
        span: Span,
    ) -> Type {
        let mut firsts = Vec::new();
        let mut seconds = Vec::new();
        let mut bad = false;
        for t in alternatives(over) {
            let (first, second) = match t {
                Type::Dyn => (Type::Dyn, Type::Dyn),
                Type::List(item) if vars.len() > 1 => (Type::Int, *item),
                Type::List(item) => (*item, Type::Dyn),
                Type::Map(key, value) => (*key, *value),
                Type::Object { fields, open } => {
                    let values = if open { Type::Dyn } else { Type::union(fields.values().map(|f| f.ty.clone())) };
                    (Type::String, values)
                }
                _ => {
                    bad = true;
                    continue;
                }
            };
            firsts.push(first);
            seconds.push(second);
        }
        let shown = name.name(vars.len());
        if bad {
            let message = format!("`{shown}` needs a list or a map, but this is {}", a(over));
            if firsts.is_empty() {
                self.error(span, message, None);
            } else {
                let text = self.text(span);
                self.warning(span, format!("for some values: {message}"), null_help(over, &text));
            }
        }
        let item = join(firsts);
        let types = [item.clone(), join(seconds)];
        let bound: Vec<(Arc<str>, Type)> = vars.iter().cloned().zip(types).collect();
        let key = bound.first().map_or(Type::Dyn, |(_, t)| t.clone());
        let result = self.within(&bound, |c| {
            if let Some(condition) = condition {
                let ty = c.node(condition);
                c.condition(&ty, condition.span, &format!("the condition of `{shown}`"));
                c.facts.add(c.facts_if(condition, true));
            }
            c.node(body)
        });
        match name {
            MacroName::All | MacroName::Exists | MacroName::ExistsOne => {
                self.condition(&result, body.span, &format!("the condition of `{shown}`"));
                Type::Bool
            }
            MacroName::Filter => {
                self.condition(&result, body.span, "the condition of `filter`");
                Type::list(item)
            }
            MacroName::Map | MacroName::TransformList => bounded(Type::list(result)),
            MacroName::TransformMap => bounded(Type::map(key, result)),
            MacroName::TransformMapEntry => {
                let maps = |t: &Type| matches!(t, Type::Dyn | Type::Map(..) | Type::Object { .. });
                if !alternatives(&result).iter().any(maps) {
                    self.error(
                        body.span,
                        format!("`{shown}` needs a map with the new entry, but this is {}", a(&result)),
                        None,
                    );
                }
                match result {
                    Type::Map(k, v) => Type::Map(k, v),
                    _ => Type::map(Type::Dyn, Type::Dyn),
                }
            }
        }
    }
}

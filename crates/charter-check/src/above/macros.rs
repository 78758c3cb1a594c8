//! The macros over lists and maps of which parts are unknown.

use std::sync::Arc;

use charter_expr::ast::{MacroName, Node};
use charter_expr::{List, Value};
use charter_kernel::Unknowns;

use super::domain::{BOOL, LIST, MAP, Values};
use super::eval::{Evaluated, Evaluator};
use super::oracle::fails;

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn iterate(
        &mut self,
        name: MacroName,
        value: Value<'a>,
        vars: &[Arc<str>],
        condition: Option<&Node>,
        body: &Node,
    ) -> Evaluated<'a> {
        let value = self.oracle.normal(value);
        let entries: Option<Vec<(Value<'a>, Value<'a>)>> = match &value {
            Value::List(list) => Some(numbered(list)),
            Value::Map(map) => Some(map.entries().into_iter().map(|(k, v)| (k.into_value(), v)).collect()),
            _ if self.oracle.symbol(&value).is_some() => None,
            _ => return Err(fails()),
        };
        let is_list = matches!(value, Value::List(_));
        let Some(entries) = entries else {
            let values = match name {
                MacroName::All | MacroName::Exists | MacroName::ExistsOne => Values::of(BOOL),
                MacroName::Map | MacroName::Filter | MacroName::TransformList => Values::of(LIST | MAP),
                MacroName::TransformMap | MacroName::TransformMapEntry => Values::of(MAP),
            };
            return self.unknown(values, true);
        };
        let bound = |(key, item): &(Value<'a>, Value<'a>)| -> Vec<(Arc<str>, Value<'a>)> {
            match vars {
                [one] => vec![(one.clone(), if is_list { item.clone() } else { key.clone() })],
                [first, second, ..] => vec![(first.clone(), key.clone()), (second.clone(), item.clone())],
                [] => Vec::new(),
            }
        };
        match name {
            MacroName::All | MacroName::Exists => {
                let decides = name == MacroName::Exists;
                let mut error = None;
                for entry in &entries {
                    let value = self.with(&bound(entry), body);
                    match value.and_then(|value| self.oracle.truth(&value).ok_or_else(fails)) {
                        Ok(holds) if holds == decides => return Ok(Value::Bool(decides)),
                        Ok(_) => {}
                        Err(e) => error = error.or(Some(e)),
                    }
                }
                error.map_or(Ok(Value::Bool(!decides)), Err)
            }
            MacroName::ExistsOne => {
                let mut count = 0usize;
                for entry in &entries {
                    let value = self.with(&bound(entry), body)?;
                    count = count.saturating_add(usize::from(self.oracle.truth(&value).ok_or_else(fails)?));
                }
                Ok(Value::Bool(count == 1))
            }
            MacroName::Map | MacroName::Filter | MacroName::TransformList if is_list => {
                let mut out = Vec::new();
                for entry in &entries {
                    let test = if name == MacroName::Filter { Some(body) } else { condition };
                    if let Some(test) = test {
                        let value = self.with(&bound(entry), test)?;
                        if !self.oracle.truth(&value).ok_or_else(fails)? {
                            continue;
                        }
                    }
                    out.push(match name {
                        MacroName::Filter => entry.1.clone(),
                        _ => self.with(&bound(entry), body)?,
                    });
                }
                Ok(Value::list(out))
            }
            MacroName::Map | MacroName::Filter | MacroName::TransformList => self.unknown(Values::of(LIST | MAP), true),
            MacroName::TransformMap | MacroName::TransformMapEntry => self.unknown(Values::of(MAP), true),
        }
    }
}

fn numbered<'a>(list: &List<'a>) -> Vec<(Value<'a>, Value<'a>)> {
    let number = |place: usize| Value::Int(i64::try_from(place).unwrap_or(i64::MAX));
    list.iter().enumerate().map(|(place, item)| (number(place), item)).collect()
}

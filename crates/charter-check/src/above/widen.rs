//! Keeps the number of abstract states finite: numbers beyond the constants of a charter become
//! intervals between them, and long values become unknown.

use charter_expr::ast::{Kind, Literal};
use charter_kernel::definition::Template;
use serde_json::Value as Json;

use super::domain::{self, INT, LIST, MAP, MAX_SHORT, NUMBER, STRING, Values};
use super::oracle::Oracle;
use super::slice::{Level, reads};
use super::store::{has_unknown, is_marker};
use crate::model::Model;
use crate::model::walk::{Item, variable_of};
use crate::tree;

/// Whole numbers are told apart up to this distance from 0.
const MAX_EXACT: f64 = 64.0;
const MAX_TEXT: usize = 48;
const MAX_KEYS: usize = 24;
const MAX_DEPTH: usize = 8;
/// How far beyond the constants of the charter numbers are told apart.
const BESIDE: f64 = 2.0;

/// The numbers and strings that occur in a charter.
pub(super) struct Constants {
    /// In order.
    numbers: Vec<f64>,
    texts: Vec<String>,
}

impl Constants {
    pub(super) fn of(model: &Model<'_>, level: &Level) -> Constants {
        let mut constants = Constants { numbers: vec![0.0, 1.0], texts: Vec::new() };
        let mut cels: Vec<&str> = model.def.properties.iter().map(crate::explore::condition_of).collect();
        let followed = level.followed(model);
        let matters = |cel: &str| {
            if level.wide {
                return true;
            }
            let (names, inputs) = reads(cel);
            let is_followed = |name: &Option<String>| name.as_ref().is_none_or(|name| followed.contains(name.as_str()));
            inputs && level.inputs || names.iter().any(|(name, _)| is_followed(name))
        };
        let mut literals: Vec<&Json> = Vec::new();
        model.visit_all(&mut |_, item| match item {
            Item::Cel(cel) if matters(cel) => cels.push(cel),
            Item::Assign(path, value) if level.wide || followed.contains(variable_of(path)) => {
                cels.extend(Model::cels(value));
                literal(value, &mut literals);
            }
            _ => {}
        });
        for chart in &model.charts {
            let values = chart.def.context.iter().filter(|(name, _)| level.wide || followed.contains(name.as_str()));
            values.for_each(|(_, value)| literal(value, &mut literals));
        }
        for cel in cels {
            let Ok(ast) = charter_expr::parse(cel) else { continue };
            tree::visit(ast.root(), &mut |node| match &node.kind {
                Kind::Literal(Literal::String(text)) => constants.texts.push(text.to_string()),
                Kind::Literal(_) => constants.numbers.extend(tree::literal_of(node).and_then(|n| n.as_f64())),
                _ => {}
            });
        }
        literals.into_iter().for_each(|value| constants.add(value));
        constants.numbers.retain(|n| n.is_finite());
        constants.numbers.sort_by(f64::total_cmp);
        constants.numbers.dedup();
        constants
    }

    fn add(&mut self, value: &Json) {
        match value {
            Json::Number(n) => self.numbers.extend(n.as_f64()),
            Json::String(text) => self.texts.push(text.clone()),
            Json::Array(items) => items.iter().for_each(|item| self.add(item)),
            Json::Object(map) => map.values().for_each(|item| self.add(item)),
            _ => {}
        }
    }

    fn is_exact(&self, n: f64) -> bool {
        let (first, last) = (self.numbers.first().copied(), self.numbers.last().copied());
        let near = |n: f64| {
            n >= first.unwrap_or(0.0).max(-MAX_EXACT) - BESIDE && n <= last.unwrap_or(0.0).min(MAX_EXACT) + BESIDE
        };
        n.fract() == 0.0 && near(n) || self.numbers.contains(&n)
    }

    /// Widens an interval to the next constants.
    pub(super) fn widen(&self, values: &mut Values) {
        if !self.is_exact(values.low.0) {
            let next = self.numbers.iter().rev().find(|n| **n <= values.low.0);
            values.low = next.map_or((f64::NEG_INFINITY, false), |n| (*n, *n < values.low.0 || values.low.1));
        }
        if !self.is_exact(values.high.0) {
            let next = self.numbers.iter().find(|n| **n >= values.high.0);
            values.high = next.map_or((f64::INFINITY, false), |n| (*n, *n > values.high.0 || values.high.1));
        }
    }

    /// Replaces parts of a known value that the analysis does not tell apart.
    pub(super) fn blur(&self, oracle: &Oracle, value: &Json, depth: usize) -> Json {
        match value {
            Json::Number(number) => {
                let n = number.as_f64().unwrap_or(f64::NAN);
                if self.is_exact(n) {
                    return value.clone();
                }
                let types = if domain::types_of(value) == INT { INT } else { NUMBER };
                let mut values = Values::between(types, n, n);
                self.widen(&mut values);
                oracle.fresh(values)
            }
            Json::String(text) if text.len() > MAX_TEXT && !is_marker(text) && !self.texts.contains(text) => {
                let short = text.len() as u64 <= MAX_SHORT;
                oracle.fresh(if short { Values::short_text() } else { Values::of(STRING) })
            }
            Json::Array(items) => {
                let most = self.numbers.last().copied().unwrap_or(0.0).clamp(2.0, 14.0) + BESIDE;
                if depth >= MAX_DEPTH || items.len() as f64 > most {
                    let list = oracle.fresh(Values::of(LIST));
                    let size = oracle.fresh(Values::between(INT, most.floor(), f64::INFINITY));
                    if items.len() as f64 > most {
                        oracle.store.borrow_mut().remember("size()", vec![list.clone()], size);
                    }
                    return list;
                }
                Json::Array(items.iter().map(|item| self.blur(oracle, item, depth.saturating_add(1))).collect())
            }
            Json::Object(map) => {
                if depth >= MAX_DEPTH || map.len() > MAX_KEYS && has_unknown(value) {
                    return oracle.fresh(Values::of(MAP));
                }
                let blur =
                    |(key, item): (&String, &Json)| (key.clone(), self.blur(oracle, item, depth.saturating_add(1)));
                Json::Object(map.iter().map(blur).collect())
            }
            other => other.clone(),
        }
    }
}

/// Collects the literals of a template.
fn literal<'d>(value: &'d Template, out: &mut Vec<&'d Json>) {
    match value {
        Template::Literal(json) => out.push(json),
        Template::Cel(_) => {}
        Template::List(items) => items.iter().for_each(|item| literal(item, out)),
        Template::Object(fields) => fields.values().for_each(|item| literal(item, out)),
    }
}

//! The unknown values of an abstract state: symbols, what is known about each, which of them
//! are different, and the results of operations on them.
//!
//! In JSON, a symbol is a string that begins with [`MARK`].

use std::collections::{BTreeMap, BTreeSet};

use charter_expr::Value;
use charter_expr::ast::BinaryOp;
use serde_json::Value as Json;

use super::domain::{self, Values};
use crate::effort::units;

/// The first character of the strings that stand for unknown values; a private-use character that a
/// charter cannot contain where it is analyzed.
pub(super) const MARK: char = '\u{E000}';
/// Stands for any value, without an identity: it becomes a symbol at the beginning of a step.
pub(super) const ANYTHING: &str = "\u{E000}?";
/// The result of an operation that fails.
pub(super) const FAILS: &str = "\u{E000}!";

/// `factor * symbol + offset`, for whole numbers.
pub(super) type Linear = (u32, i64, i64);

#[derive(Debug, Clone, Default, PartialEq)]
struct Symbol {
    values: Option<Values>,
    /// What it was found to be equal to: a known value, or another symbol.
    is: Option<Json>,
    linear: Option<Linear>,
}

/// The result of an operation on unknown values; the same operation has the same result.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    operation: String,
    operands: Vec<Json>,
    result: Json,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Store {
    symbols: Vec<Symbol>,
    different: BTreeSet<(u32, u32)>,
    terms: Vec<Term>,
}

/// A value without the names of symbols that were found to be something else.
pub(super) enum Found {
    Known(Json),
    Symbol(u32),
}

pub(super) fn marker(symbol: u32) -> Json {
    Json::String(format!("{MARK}{symbol}"))
}

/// The symbol that a string stands for.
pub(super) fn symbol_of(text: &str) -> Option<u32> {
    text.strip_prefix(MARK)?.parse().ok()
}

pub(super) fn is_marker(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Whether a value has an unknown part.
pub(super) fn has_unknown(value: &Json) -> bool {
    match value {
        Json::String(text) => is_marker(text),
        Json::Array(items) => items.iter().any(has_unknown),
        Json::Object(map) => map.values().any(has_unknown),
        _ => false,
    }
}

/// The same for a value of an expression; counts the values that it looks at.
pub(super) fn holds_unknown(value: &Value<'_>, looked_at: &mut u64) -> bool {
    *looked_at = looked_at.saturating_add(1);
    match value {
        Value::String(text) => is_marker(text),
        Value::List(list) => list.iter().any(|item| holds_unknown(&item, looked_at)),
        Value::Map(map) => map.entries().iter().any(|(_, item)| holds_unknown(item, looked_at)),
        _ => false,
    }
}

impl Store {
    /// The number of things that it knows.
    pub(super) fn size(&self) -> u64 {
        units(self.symbols.len().saturating_add(self.terms.len()).saturating_add(self.different.len()))
    }

    pub(super) fn fresh(&mut self, values: Values) -> Json {
        let number = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX);
        self.symbols.push(Symbol { values: Some(values), is: None, linear: None });
        marker(number)
    }

    /// Follows what a symbol was found to be.
    pub(super) fn find(&self, symbol: u32) -> Found {
        let mut at = symbol;
        for _ in 0..=self.symbols.len() {
            match self.symbols.get(at as usize).and_then(|s| s.is.as_ref()) {
                None => break,
                Some(Json::String(text)) => match symbol_of(text) {
                    Some(next) => at = next,
                    None => return Found::Known(Json::String(text.clone())),
                },
                Some(known) => return Found::Known(known.clone()),
            }
        }
        Found::Symbol(at)
    }

    pub(super) fn values(&self, symbol: u32) -> Values {
        self.symbols.get(symbol as usize).and_then(|s| s.values.clone()).unwrap_or_else(Values::any)
    }

    pub(super) fn set(&mut self, symbol: u32, values: Values) {
        if let Some(s) = self.symbols.get_mut(symbol as usize) {
            s.values = Some(values);
        }
    }

    pub(super) fn linear(&self, symbol: u32) -> Linear {
        self.symbols.get(symbol as usize).and_then(|s| s.linear).unwrap_or((symbol, 1, 0))
    }

    pub(super) fn set_linear(&mut self, symbol: u32, linear: Linear) {
        if let Some(s) = self.symbols.get_mut(symbol as usize) {
            s.linear = Some(linear);
        }
    }

    /// Replaces the symbols in a value by what they were found to be.
    pub(super) fn resolve(&self, value: &Json) -> Json {
        match value {
            Json::String(text) => match symbol_of(text).map(|s| self.find(s)) {
                None => value.clone(),
                Some(Found::Known(known)) => known,
                Some(Found::Symbol(symbol)) => marker(symbol),
            },
            Json::Array(items) => Json::Array(items.iter().map(|item| self.resolve(item)).collect()),
            Json::Object(map) => Json::Object(map.iter().map(|(k, v)| (k.clone(), self.resolve(v))).collect()),
            other => other.clone(),
        }
    }

    /// Records that a symbol is a known value.
    pub(super) fn bind(&mut self, symbol: u32, value: Json) {
        if let Some(s) = self.symbols.get_mut(symbol as usize) {
            s.is = Some(value);
        }
    }

    pub(super) fn are_different(&self, a: u32, b: u32) -> bool {
        let found = |s: u32| match self.find(s) {
            Found::Symbol(s) => Some(s),
            Found::Known(_) => None,
        };
        self.different.iter().any(|(x, y)| {
            let (x, y) = (found(*x), found(*y));
            (x, y) == (Some(a), Some(b)) || (x, y) == (Some(b), Some(a))
        })
    }

    pub(super) fn set_different(&mut self, a: u32, b: u32) {
        self.different.insert((a.min(b), a.max(b)));
    }

    /// Widens what is known about numbers.
    pub(super) fn widen(&mut self, wider: &dyn Fn(&mut Values)) {
        self.symbols.iter_mut().filter_map(|s| s.values.as_mut()).for_each(wider);
    }

    /// The known value or the values that a symbol must not be, because symbols that are known now
    /// are different from it.
    pub(super) fn excludes(&self, symbol: u32, value: &Json) -> bool {
        self.different.iter().any(|(x, y)| {
            let (x, y) = (self.find(*x), self.find(*y));
            let is = |a: &Found, b: &Found| {
                matches!(a, Found::Symbol(s) if *s == symbol)
                    && matches!(b, Found::Known(known) if domain::same(known, value))
            };
            is(&x, &y) || is(&y, &x)
        })
    }

    /// Records that two symbols are equal; `false` if they cannot be.
    pub(super) fn unify(&mut self, a: u32, b: u32) -> bool {
        let Some(met) = self.values(a).meet(&self.values(b)) else { return false };
        if self.are_different(a, b) {
            return false;
        }
        self.set(b, met);
        self.bind(a, marker(b));
        true
    }

    /// The known result of an operation.
    pub(super) fn result(&self, operation: &str, operands: &[Json]) -> Option<Json> {
        let same = |t: &&Term| {
            t.operation == operation
                && t.operands.len() == operands.len()
                && t.operands.iter().zip(operands).all(|(a, b)| self.resolve(a) == *b)
        };
        self.terms.iter().find(same).map(|t| self.resolve(&t.result))
    }

    pub(super) fn remember(&mut self, operation: &str, operands: Vec<Json>, result: Json) {
        self.terms.push(Term { operation: operation.to_string(), operands, result });
    }

    /// Whether comparing a linear term with a constant is possible: the value that its symbol has.
    pub(super) fn solve(&self, symbol: u32, wanted: i64) -> Option<(u32, Option<i64>)> {
        let (base, factor, offset) = self.linear(symbol);
        let rest = wanted.checked_sub(offset)?;
        if factor == 0 {
            return Some((base, None)).filter(|_| rest != 0);
        }
        let solution = if rest.checked_rem(factor)? == 0 { rest.checked_div(factor) } else { None };
        Some((base, solution))
    }

    /// Returns a store with the symbols that `values` uses and what depends on them only, renamed
    /// in the order of their occurrence; renames them in `values`, too. `None` if there are too
    /// many.
    pub(super) fn compact(&self, values: &mut [Json]) -> Option<Store> {
        const MAX_LIVE: usize = 256;
        let mut names: BTreeMap<u32, u32> = BTreeMap::new();
        let mut order: Vec<u32> = Vec::new();
        for value in values.iter() {
            live(value, &mut names, &mut order);
        }
        let mut kept: Vec<(Vec<Json>, &Term, Json)> = Vec::new();
        let mut taken = vec![false; self.terms.len()];
        loop {
            let before = kept.len();
            for (term, taken) in self.terms.iter().zip(&mut taken) {
                if *taken || !outlives_step(&term.operation) {
                    continue;
                }
                let operands: Vec<Json> = term.operands.iter().map(|o| self.resolve(o)).collect();
                let mut symbols = (BTreeMap::new(), Vec::new());
                operands.iter().for_each(|o| live(o, &mut symbols.0, &mut symbols.1));
                if symbols.1.is_empty() || !symbols.1.iter().all(|s| names.contains_key(s)) {
                    continue;
                }
                *taken = true;
                let result = self.resolve(&term.result);
                live(&result, &mut names, &mut order);
                kept.push((operands, term, result));
            }
            if order.len() > MAX_LIVE {
                return None;
            }
            if kept.len() == before {
                break;
            }
        }
        let mut store = Store::default();
        for symbol in &order {
            store.symbols.push(Symbol { values: Some(self.values(*symbol)), is: None, linear: None });
        }
        for (a, b) in &self.different {
            if let (Found::Symbol(a), Found::Symbol(b)) = (self.find(*a), self.find(*b))
                && let (Some(a), Some(b)) = (names.get(&a), names.get(&b))
            {
                store.set_different(*a, *b);
            }
        }
        // A symbol that differs from one that is known now does not have its value.
        for symbol in &order {
            for (x, y) in &self.different {
                let known = match (self.find(*x), self.find(*y)) {
                    (Found::Symbol(s), Found::Known(v)) | (Found::Known(v), Found::Symbol(s)) if s == *symbol => v,
                    _ => continue,
                };
                if let Some(name) = names.get(symbol) {
                    let mut values = store.values(*name);
                    values.exclude(&known);
                    store.set(*name, values);
                }
            }
        }
        for (operands, term, result) in kept {
            let operands = operands.iter().map(|o| renamed(o, &names)).collect();
            let operation = term.operation.clone();
            store.terms.push(Term { operation, operands, result: renamed(&result, &names) });
        }
        store.terms.sort_by_cached_key(|t| format!("{t:?}"));
        values.iter_mut().for_each(|value| *value = renamed(value, &names));
        Some(store)
    }
}

/// Whether the result of an operation is remembered after a step. Results of arithmetic are not: a
/// counter would have more and more of them.
fn outlives_step(operation: &str) -> bool {
    operation.starts_with('.') || operation.ends_with("()") || matches!(operation, "digest" | "in")
}

/// Adds the symbols of a value in the order of their occurrence.
fn live(value: &Json, names: &mut BTreeMap<u32, u32>, order: &mut Vec<u32>) {
    match value {
        Json::String(text) => {
            if let Some(symbol) = symbol_of(text)
                && !names.contains_key(&symbol)
            {
                names.insert(symbol, u32::try_from(order.len()).unwrap_or(u32::MAX));
                order.push(symbol);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| live(item, names, order)),
        Json::Object(map) => map.values().for_each(|item| live(item, names, order)),
        _ => {}
    }
}

fn renamed(value: &Json, names: &BTreeMap<u32, u32>) -> Json {
    match value {
        Json::String(text) => match symbol_of(text).and_then(|s| names.get(&s)) {
            Some(name) => marker(*name),
            None => value.clone(),
        },
        Json::Array(items) => Json::Array(items.iter().map(|item| renamed(item, names)).collect()),
        Json::Object(map) => Json::Object(map.iter().map(|(k, v)| (k.clone(), renamed(v, names))).collect()),
        other => other.clone(),
    }
}

/// The comparison with its operands exchanged.
pub(super) fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

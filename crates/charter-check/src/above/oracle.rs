//! Decides for the kernel what depends on unknown values, along one sequence of decisions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use charter_expr::{Ast, ErrorKind, EvalError, Fuel, Program, RootId, Scope, Value};
use charter_kernel::{ROOTS, Unknowns};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value as Json, json};

use super::domain::{self, BOOL, INT, LIST, MAP, STRING, Values};
use super::eval::{Evaluated, Evaluator};
use super::schemas::Schemas;
use super::slice::{Decided, Unread};
use super::store::{Found, MARK, Store, has_unknown, holds_unknown, is_marker, symbol_of};

/// Upper limit of the decisions in one step.
const MAX_DECISIONS: usize = 400;

/// A sequence of decisions: what was chosen, and among how many.
#[derive(Debug, Default)]
pub(super) struct Tape {
    decisions: Vec<(u32, u32)>,
    at: usize,
}

impl Tape {
    /// Goes on to the next sequence; `false` after the last one.
    pub(super) fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, ways)) = self.decisions.pop() {
            if choice.saturating_add(1) < ways {
                self.decisions.push((choice.saturating_add(1), ways));
                return true;
            }
        }
        false
    }
}

/// What an analysis does not cover, with the expression if it is about one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GaveUp {
    pub(super) why: &'static str,
    pub(super) expression: Option<String>,
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) tape: RefCell<Tape>,
    pub(super) store: RefCell<Store>,
    pub(super) gave_up: RefCell<Option<GaveUp>>,
    pub(super) interlocks: Cell<bool>,
    /// The expressions of this step that were decided both ways.
    pub(super) decided: RefCell<Vec<Decided>>,
    /// Not all actors are followed, and this is not a property.
    pub(super) anybody: Cell<bool>,
    /// The lists of `each` whose actions may be taken to run once.
    pub(super) repeats: RefCell<FxHashSet<String>>,
    /// The expressions whose values do not matter.
    unread: FxHashMap<String, Unread>,
    pub(super) schemas: Schemas,
    asts: RefCell<FxHashMap<String, Option<Rc<Ast>>>>,
    pub(super) evaluating: RefCell<Option<Rc<str>>>,
    /// The fuel that decisions have used.
    cost: Cell<u64>,
}

impl Oracle {
    pub(super) fn new(unread: FxHashMap<String, Unread>) -> Oracle {
        Oracle { unread, ..Oracle::default() }
    }

    /// Starts a step with what is known before it.
    pub(super) fn begin(&self, store: &Store) {
        self.store.replace(store.clone());
        self.decided.borrow_mut().clear();
        self.evaluating.replace(None);
    }

    /// Counts what a decision has used.
    pub(super) fn spend(&self, fuel: u64) {
        self.cost.set(self.cost.get().saturating_add(fuel));
    }

    pub(super) fn fresh(&self, values: Values) -> Json {
        self.store.borrow_mut().fresh(values)
    }

    /// The values that match a schema.
    pub(super) fn matching(&self, schema: Option<&Json>) -> Values {
        let any = || Values::of(domain::ANY & !domain::OTHER);
        schema.map_or_else(any, |schema| self.schemas.values(schema))
    }

    /// A value without what is in a list or a map.
    pub(super) fn shape(&self, value: Json) -> Json {
        let types = match &value {
            Json::Array(_) => LIST,
            Json::Object(_) => MAP,
            Json::String(text) => match symbol_of(text).map(|symbol| self.store.borrow().values(symbol).types) {
                Some(types) if types & (LIST | MAP) != 0 => types,
                _ => return value,
            },
            _ => return value,
        };
        self.fresh(Values::of(types))
    }

    /// Replaces a symbol by what it was found to be.
    pub(super) fn normal<'a>(&self, value: Value<'a>) -> Value<'a> {
        let Some(symbol) = value.as_str().and_then(symbol_of) else { return value };
        match self.store.borrow().find(symbol) {
            Found::Symbol(s) if s == symbol => value,
            Found::Symbol(s) => Value::string(format!("{MARK}{s}")),
            Found::Known(Json::Null) => Value::Null,
            Found::Known(Json::Bool(b)) => Value::Bool(b),
            Found::Known(Json::String(text)) => Value::string(text),
            Found::Known(_) => value,
        }
    }

    /// The symbol that a value is.
    pub(super) fn symbol(&self, value: &Value<'_>) -> Option<u32> {
        match self.store.borrow().find(value.as_str().and_then(symbol_of)?) {
            Found::Symbol(symbol) => Some(symbol),
            Found::Known(_) => None,
        }
    }

    pub(super) fn values(&self, value: &Value<'_>) -> Values {
        match self.symbol(value) {
            Some(symbol) => self.store.borrow().values(symbol),
            None => domain::known(&self.normal(value.clone())),
        }
    }

    /// Decides whether a symbol has one of these types, and remembers it.
    pub(super) fn has_type(&self, symbol: u32, types: domain::Types) -> bool {
        let values = self.store.borrow().values(symbol);
        if values.within(types) {
            return true;
        }
        if values.types & types == 0 {
            return false;
        }
        let is = self.choose(2) == 0;
        let left = if is { values.types & types } else { values.types & !types };
        self.store.borrow_mut().set(symbol, Values { types: left, ..values });
        is
    }

    /// Evaluates an expression.
    pub(super) fn value<'a>(
        &self,
        scope: &dyn Scope<'a>,
        program: &'a Program,
        ast: &Ast,
        fuel: &mut Fuel,
    ) -> Evaluated<'a> {
        let roots = |name: &str| -> Option<RootId> {
            let fixed = ROOTS.iter().position(|root| *root == name).and_then(|place| u16::try_from(place).ok());
            fixed.map(RootId).or_else(|| program.reads().iter().find(|p| p.root() == name)?.root_id())
        };
        let limit = fuel.left();
        let mut evaluator = Evaluator::new(self, scope, &roots, fuel);
        let result = evaluator.eval(ast.root());
        let unknown = evaluator.most;
        let cost = limit.saturating_sub(fuel.left()).saturating_add(unknown);
        // Half of the limit is left for what is not counted here as the kernel counts it.
        if result.is_ok() && cost > limit / 2 && self.choose(2) == 1 {
            return Err(EvalError::out_of_fuel());
        }
        result
    }

    pub(super) fn ast(&self, source: &str) -> Option<Rc<Ast>> {
        if let Some(known) = self.asts.borrow().get(source) {
            return known.clone();
        }
        let ast = charter_expr::parse(source).ok().map(Rc::new);
        self.asts.borrow_mut().insert(source.to_string(), ast.clone());
        ast
    }

    pub(super) fn holds_unknown(&self, value: &Value<'_>) -> bool {
        let mut looked_at = 0;
        let holds = holds_unknown(value, &mut looked_at);
        self.spend(looked_at / 8);
        holds
    }

    /// Whether an expression reads something unknown.
    fn reads_unknown<'a>(&self, scope: &dyn Scope<'a>, program: &Program) -> bool {
        program.reads().iter().any(|path| {
            let root = path.root();
            if matches!(root, "now" | "ledger" | "entry" | "run") || root == "actors" && self.anybody.get() {
                return true;
            }
            let Some(value) = path.root_id().and_then(|id| scope.root(id)) else { return false };
            if root == "by" {
                return charter_expr::apply::field(&value, "id").is_ok_and(|id| self.holds_unknown(&id));
            }
            let mut at = value;
            for (place, segment) in path.segments().iter().enumerate() {
                if holds_marker(&at) {
                    return true;
                }
                let next = match segment {
                    charter_expr::Segment::Field(name) => charter_expr::apply::field(&at, name),
                    charter_expr::Segment::Index(key) => {
                        let mut fuel = Fuel::new(1_000);
                        charter_expr::apply::index(&at, &key.clone().into_value(), &mut fuel)
                    }
                };
                match next {
                    Ok(next) => at = next,
                    // The data of an event may be unknown as a whole.
                    Err(_) if root == "event" && place == 0 => {
                        return charter_expr::apply::field(&at, "data").is_ok_and(|data| holds_marker(&data));
                    }
                    Err(_) => return false,
                }
            }
            self.holds_unknown(&at)
        })
    }
}

fn holds_marker(value: &Value<'_>) -> bool {
    value.as_str().is_some_and(is_marker)
}

/// An error of an operation on unknown values; what it says does not matter.
pub(super) fn fails() -> EvalError {
    EvalError::new(ErrorKind::NoSuchOverload, "a value is not known")
}

impl Unknowns for Oracle {
    fn choose(&self, ways: u32) -> u32 {
        if ways > 1
            && let Some(expression) = self.evaluating.borrow().as_ref()
        {
            let decided = Decided { expression: expression.clone(), unread: false };
            let mut all = self.decided.borrow_mut();
            if all.last() != Some(&decided) {
                all.push(decided);
            }
        }
        let mut tape = self.tape.borrow_mut();
        let at = tape.at;
        tape.at = at.saturating_add(1);
        if let Some((choice, _)) = tape.decisions.get(at) {
            return *choice;
        }
        if at >= MAX_DECISIONS {
            drop(tape);
            self.give_up("one event has too many ways to go on");
            return 0;
        }
        tape.decisions.push((0, ways));
        0
    }

    fn eval<'a>(&self, scope: &dyn Scope<'a>, program: &'a Program, fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
        if !self.reads_unknown(scope, program) {
            return program.eval(scope, fuel);
        }
        // What is known is looked through.
        self.spend(self.store.borrow().size().checked_div(4).unwrap_or(0));
        if let Some(how) = self.unread.get(program.source()) {
            return self.guess(scope, program, *how, fuel.left());
        }
        let Some(ast) = self.ast(program.source()) else { return Err(fails()) };
        let before = self.evaluating.replace(Some(program.source().into()));
        let result = self.value(scope, program, &ast, fuel);
        self.evaluating.replace(before);
        result.map(|value| self.normal(value))
    }

    fn cost(&self) -> u64 {
        self.cost.take()
    }

    fn truth(&self, value: &Value<'_>) -> Option<bool> {
        match self.normal(value.clone()) {
            Value::Bool(b) => Some(b),
            other => {
                let symbol = self.symbol(&other)?;
                if !self.has_type(symbol, BOOL) {
                    return None;
                }
                let values = self.store.borrow().values(symbol);
                let truth = match (values.admits(&json!(true)), values.admits(&json!(false))) {
                    (true, false) => true,
                    (false, true) => false,
                    _ => self.choose(2) == 0,
                };
                self.store.borrow_mut().bind(symbol, json!(truth));
                Some(truth)
            }
        }
    }

    fn is_unknown(&self, value: &Json) -> bool {
        // A symbol that is known by now still stands in the snapshot under its name.
        has_unknown(value)
    }

    fn has_fraction(&self, value: &Json) -> bool {
        match self.store.borrow().resolve(value) {
            Json::String(text) => symbol_of(&text)
                .is_some_and(|s| self.store.borrow().values(s).types & !(INT | STRING | domain::NULL | BOOL) != 0),
            Json::Array(items) => items.iter().any(|item| self.has_fraction(item)),
            Json::Object(map) => map.values().any(|item| self.has_fraction(item)),
            _ => false,
        }
    }

    fn names(&self, value: &Value<'_>, id: &str) -> Option<bool> {
        let value = self.normal(value.clone());
        if let Some(symbol) = self.symbol(&value) {
            if self.has_type(symbol, domain::NULL) {
                return Some(false);
            }
            if self.has_type(symbol, STRING) {
                return Some(self.equal(&value, &Value::from(id)));
            }
            return self
                .has_type(symbol, LIST)
                .then(|| self.choose(3))
                .and_then(|way| [Some(true), Some(false)].get(way as usize).copied().flatten());
        }
        match value {
            Value::Null => Some(false),
            Value::String(_) => Some(self.equal(&value, &Value::from(id))),
            Value::List(list) => list.iter().try_fold(false, |named, item| Some(self.names(&item, id)? | named)),
            _ => None,
        }
    }

    fn approves(&self, value: &Json, event: &Json) -> bool {
        let resolved = self.store.borrow().resolve(value);
        let digest = self.digest(&resolved);
        let named = match event {
            Json::Object(map) => map.get("digest").cloned(),
            Json::String(text) if is_marker(text) => {
                self.field_of(&Value::from(text.as_str()), "digest").and_then(|v| v.to_json().ok())
            }
            _ => None,
        };
        named.is_some_and(|named| {
            let equal = self.equal(&Value::from_json(&named), &Value::from_json(&digest));
            // A digest may also be written with the name of the algorithm, or in capitals.
            equal || self.symbol(&Value::from_json(&named)).is_some() && self.choose(2) == 0
        })
    }

    fn anything(&self) -> Json {
        self.fresh(self.matching(None))
    }

    fn container(&self) -> Json {
        self.fresh(Values::of(LIST | MAP))
    }

    fn error(&self, error: &Json) -> Json {
        let error_symbol = self.fresh(Values::of(MAP));
        for name in ["code", "message"] {
            if let Some(value) = error.get(name) {
                let field = format!(".{name}");
                self.store.borrow_mut().remember(&field, vec![error_symbol.clone()], value.clone());
            }
        }
        error_symbol
    }

    fn repeats(&self, list: &str) -> bool {
        self.repeats.borrow().contains(list)
    }

    fn checks_interlocks(&self) -> bool {
        self.interlocks.get()
    }

    fn give_up(&self, why: &'static str) -> EvalError {
        let expression = self.evaluating.borrow().as_deref().map(str::to_string);
        self.gave_up.borrow_mut().get_or_insert(GaveUp { why, expression });
        fails()
    }
}

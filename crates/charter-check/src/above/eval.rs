//! Evaluates an expression of which some values are unknown. Where its result depends on one, it is
//! decided both ways; operators that are not understood have any result of their type, or fail.

use std::sync::Arc;

use charter_expr::apply::Name;
use charter_expr::ast::{BinaryOp, Kind, Link, LinkKind, Literal, Node, UnaryOp};
use charter_expr::{EvalError, Fuel, FunctionId, Key, Map, RootId, Scope, Value, apply};
use charter_kernel::{FUNCTIONS, Unknowns};
use serde_json::Value as Json;

use super::domain::{ANY, BOOL, INT, LIST, MAP, OTHER, STRING, Values};
use super::oracle::{Oracle, fails};
use super::store::{FAILS, MARK, marker};

pub(super) type Evaluated<'a> = Result<Value<'a>, EvalError>;

pub(super) struct Evaluator<'e, 'a> {
    pub(super) oracle: &'e Oracle,
    scope: &'e dyn Scope<'a>,
    roots: &'e dyn Fn(&str) -> Option<RootId>,
    pub(super) fuel: &'e mut Fuel,
    locals: Vec<(Arc<str>, Value<'a>)>,
    /// The fuel that operations on unknown values may cost at most.
    pub(super) most: u64,
}

impl<'e, 'a> Evaluator<'e, 'a> {
    pub(super) fn new(
        oracle: &'e Oracle,
        scope: &'e dyn Scope<'a>,
        roots: &'e dyn Fn(&str) -> Option<RootId>,
        fuel: &'e mut Fuel,
    ) -> Self {
        Evaluator { oracle, scope, roots, fuel, locals: Vec::new(), most: 0 }
    }

    pub(super) fn eval(&mut self, node: &Node) -> Evaluated<'a> {
        self.fuel.spend(1)?;
        match &node.kind {
            Kind::Literal(literal) => Ok(constant(literal)),
            Kind::Ident { .. } => self.links(node, &[]),
            Kind::List(items) => Ok(Value::list(self.all(items)?)),
            Kind::Map(entries) => self.map(entries),
            Kind::Call { function, args } => self.call(function, args),
            Kind::Has(operand) => self.has(operand),
            Kind::Bind { name, value, body } => {
                let value = self.eval(value)?;
                self.with(&[(name.clone(), value)], body)
            }
            Kind::Postfix { base, links } => self.links(base, links),
            Kind::Unary { op: UnaryOp::Not, count, operand } => {
                let holds = self.truth(operand)?;
                Ok(Value::Bool(holds ^ (count % 2 == 1)))
            }
            Kind::Unary { op: UnaryOp::Negate, count, operand } => {
                let mut value = self.eval(operand)?;
                for _ in 0..*count {
                    value = match self.oracle.symbol(&value) {
                        None => apply::negate(value)?,
                        Some(_) => self.binary(BinaryOp::Mul, value, Value::Int(-1))?,
                    };
                }
                Ok(value)
            }
            Kind::Chain { first, rest } => {
                let mut left = self.eval(first)?;
                for (op, right) in rest {
                    let right = self.eval(right)?;
                    left = self.binary(*op, left, right)?;
                }
                Ok(left)
            }
            Kind::And(operands) => self.decided_by(operands, false),
            Kind::Or(operands) => self.decided_by(operands, true),
            Kind::Conditional { arms, otherwise } => {
                for (condition, result) in arms {
                    if self.truth(condition)? {
                        return self.eval(result);
                    }
                }
                self.eval(otherwise)
            }
        }
    }

    fn all(&mut self, items: &[Node]) -> Result<Vec<Value<'a>>, EvalError> {
        items.iter().map(|item| self.eval(item)).collect()
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Evaluated<'a> {
        let mut out = Vec::new();
        for (key, value) in entries {
            let key = self.eval(key)?;
            if self.oracle.symbol(&key).is_some() {
                self.all(&entries.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>())?;
                return self.unknown(Values::of(MAP), true);
            }
            let key = Key::from_value(&self.oracle.normal(key)).ok_or_else(fails)?;
            out.push((key, self.eval(value)?));
        }
        Map::from_entries(out).map(Value::Map)
    }

    /// Evaluates with variables in scope.
    pub(super) fn with(&mut self, variables: &[(Arc<str>, Value<'a>)], body: &Node) -> Evaluated<'a> {
        let before = self.locals.len();
        self.locals.extend(variables.iter().cloned());
        let result = self.eval(body);
        self.locals.truncate(before);
        result
    }

    fn truth(&mut self, node: &Node) -> Result<bool, EvalError> {
        let value = self.eval(node)?;
        self.oracle.truth(&value).ok_or_else(fails)
    }

    /// `&&` and `||`: an operand that decides absorbs the failure of another.
    fn decided_by(&mut self, operands: &[Node], decides: bool) -> Evaluated<'a> {
        let mut error = None;
        for operand in operands {
            match self.truth(operand) {
                Ok(holds) if holds == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(e) => error = error.or(Some(e)),
            }
        }
        match error {
            Some(e) => Err(e),
            None => Ok(Value::Bool(!decides)),
        }
    }

    /// Any of these values; or a failure, if it may fail.
    pub(super) fn unknown(&self, values: Values, may_fail: bool) -> Evaluated<'a> {
        if may_fail && self.oracle.choose(2) == 1 {
            return Err(fails());
        }
        Ok(Value::from_json(&self.oracle.fresh(values)).into_owned())
    }

    /// The result of an operation: the same for the same operands.
    pub(super) fn term(
        &self,
        operation: &str,
        operands: &[&Value<'a>],
        values: Values,
        may_fail: bool,
    ) -> Evaluated<'a> {
        let store = &self.oracle.store;
        let operands: Result<Vec<Json>, _> =
            operands.iter().map(|o| o.to_json().map(|json| store.borrow().resolve(&json))).collect();
        let Ok(operands) = operands else { return self.unknown(values, may_fail) };
        let known = store.borrow().result(operation, &operands);
        let result = known.unwrap_or_else(|| {
            let result = match may_fail && self.oracle.choose(2) == 1 {
                true => Json::from(FAILS),
                false => self.oracle.fresh(values),
            };
            store.borrow_mut().remember(operation, operands, result.clone());
            result
        });
        if result.as_str() == Some(FAILS) {
            return Err(fails());
        }
        Ok(self.oracle.normal(Value::from_json(&result).into_owned()))
    }

    /// A variable of a macro.
    fn local(&self, name: &str) -> Option<&Value<'a>> {
        self.locals.iter().rev().find(|(known, _)| known.as_ref() == name).map(|(_, value)| value)
    }

    fn ident(&mut self, name: &str, absolute: bool) -> Evaluated<'a> {
        if let Some(value) = self.local(name).filter(|_| !absolute) {
            return Ok(self.oracle.normal(value.clone()));
        }
        match name {
            "now" => self.term("now", &[], Values::of(OTHER | STRING), false),
            "run" => self.term("run", &[], Values::of(MAP), false),
            "ledger" | "entry" => self.unknown(Values::of(MAP), true),
            "actors" if self.oracle.anybody.get() => self.unknown(Values::of(MAP), false),
            _ => {
                // Any other name is that of a type.
                let Some(id) = (self.roots)(name) else { return self.unknown(Values::of(OTHER), false) };
                let root = self.scope.root(id).ok_or_else(fails)?;
                if name == "by" && apply::field(&root, "id").is_ok_and(|id| self.oracle.holds_unknown(&id)) {
                    // Everything about the sender is unknown; the id has a name.
                    return self.sender(root);
                }
                Ok(self.oracle.normal(root))
            }
        }
    }

    /// The sender: its id, and anything else.
    fn sender(&self, root: Value<'a>) -> Evaluated<'a> {
        let sender = self.term("by", &[], Values::of(MAP), false)?;
        let (Some(symbol), Ok(id)) = (self.oracle.symbol(&sender), apply::field(&root, "id")) else {
            return Ok(sender);
        };
        let mut store = self.oracle.store.borrow_mut();
        let operands = [marker(symbol)];
        if store.result(".id", &operands).is_none()
            && let Ok(id) = id.to_json()
        {
            store.remember(".id", operands.to_vec(), id);
            let word = Values { types: STRING, ..Values::any() };
            for (field, words) in [(".kind", &["person", "agent", "service"][..]), (".roles", &[])] {
                let values = match words {
                    [] => Values::of(LIST),
                    words => Values { one_of: Some(words.iter().map(|w| Json::from(*w)).collect()), ..word.clone() },
                };
                let value = store.fresh(values);
                store.remember(field, operands.to_vec(), value);
            }
            let auth = store.fresh(word);
            store.remember(".auth", operands.to_vec(), auth);
        }
        drop(store);
        Ok(sender)
    }

    /// A field; `None` if there is none.
    fn field(&mut self, base: &Value<'a>, name: &str, of_event: bool) -> Result<Option<Value<'a>>, EvalError> {
        let base = self.oracle.normal(base.clone());
        if self.oracle.symbol(&base).is_some() {
            let found: Option<Value<'a>> = self.oracle.field_of(&base, name);
            return Ok(found.map(|value| self.oracle.normal(value)));
        }
        let Value::Map(map) = &base else { return Err(fails()) };
        if let Some(value) = map.get_str(name) {
            return Ok(Some(self.oracle.normal(value)));
        }
        // The fields of the data are fields of the event.
        let data = map.get_str("data").filter(|_| of_event);
        match data.map(|data| self.oracle.normal(data)) {
            Some(data) if self.oracle.symbol(&data).is_some() => self.field(&data, name, false),
            _ => Ok(None),
        }
    }

    fn has(&mut self, operand: &Node) -> Evaluated<'a> {
        let Kind::Postfix { base, links } = &operand.kind else { return Err(fails()) };
        let Some((last, links)) = links.split_last() else { return Err(fails()) };
        let LinkKind::Field(name) = &last.kind else { return Err(fails()) };
        let value = match links {
            [] => self.eval(base)?,
            links => self.links(base, links)?,
        };
        let of_event = links.is_empty() && is_event(base);
        Ok(Value::Bool(self.field(&value, name, of_event)?.is_some()))
    }

    fn links(&mut self, base: &Node, links: &[Link]) -> Evaluated<'a> {
        let (mut value, used) = self.start(base, links)?;
        for (place, link) in links.iter().enumerate().skip(used) {
            self.fuel.spend(1)?;
            value = match &link.kind {
                LinkKind::Field(name) => self.field(&value, name, place == 0 && is_event(base))?.ok_or_else(fails)?,
                LinkKind::Index(index) => {
                    let index = self.eval(index)?;
                    self.index(value, index)?
                }
                LinkKind::Method { name, args } => {
                    let mut all = vec![value];
                    all.extend(self.all(args)?);
                    self.function(name, true, &all)?
                }
                LinkKind::Macro { name, vars, condition, body } => {
                    self.iterate(*name, value, vars, condition.as_deref(), body)?
                }
            };
        }
        Ok(value)
    }

    /// The value at the start of a chain, and how many links belong to it.
    fn start(&mut self, base: &Node, links: &[Link]) -> Result<(Value<'a>, usize), EvalError> {
        let Kind::Ident { name, absolute } = &base.kind else { return Ok((self.eval(base)?, 0)) };
        let is_variable = !absolute && self.local(name).is_some();
        if is_variable || (self.roots)(name).is_some() {
            return Ok((self.ident(name, *absolute)?, 0));
        }
        match apply::name(name, links) {
            Some(Name::Type { name, used }) => Ok((Value::Type(name), used)),
            Some(Name::Call { function, args, used }) => {
                let args = self.all(args)?;
                Ok((self.function(function, false, &args)?, used))
            }
            None => Err(fails()),
        }
    }

    fn index(&mut self, base: Value<'a>, at: Value<'a>) -> Evaluated<'a> {
        let (base, at) = (self.oracle.normal(base), self.oracle.normal(at));
        match (self.oracle.symbol(&base), self.oracle.symbol(&at)) {
            (None, None) => apply::index(&base, &at, self.fuel).map(|value| self.oracle.normal(value)),
            (Some(_), None) if at.as_str().is_some() => {
                let found: Option<Value<'a>> = self.oracle.field_of(&base, at.as_str().unwrap_or_default());
                found.ok_or_else(fails)
            }
            (Some(symbol), _) => {
                let list = self.oracle.store.borrow().values(symbol);
                let known = list.within(LIST) && at.as_str().is_none() && self.oracle.symbol(&at).is_none();
                let values = self.oracle.schemas.items(list.schema.filter(|_| known));
                self.term("[]", &[&base, &at], values, true)
            }
            (None, Some(_)) => self.term("[]", &[&base, &at], Values::of(ANY & !OTHER), true),
        }
    }

    fn call(&mut self, function: &str, args: &[Node]) -> Evaluated<'a> {
        let args = self.all(args)?;
        let unknown = args.iter().any(|arg| self.oracle.holds_unknown(&self.oracle.normal(arg.clone())));
        let host = FUNCTIONS.iter().position(|name| *name == function).and_then(|place| u16::try_from(place).ok());
        match (host, args.as_slice()) {
            (Some(id), _) if !unknown => self.scope.call(FunctionId(id), &args, self.fuel),
            (Some(_), [value]) if function == "digest" => {
                let json = value.to_json()?;
                let json = self.oracle.store.borrow().resolve(&json);
                Ok(Value::from_json(&self.oracle.digest(&json)).into_owned())
            }
            (Some(_), _) => self.unknown(Values::of(BOOL), true),
            (None, _) => self.function(function, false, &args),
        }
    }

    /// A function of the library.
    fn function(&mut self, name: &str, method: bool, args: &[Value<'a>]) -> Evaluated<'a> {
        let args: Vec<Value<'a>> = args.iter().map(|arg| self.oracle.normal(arg.clone())).collect();
        let known = match (name, args.as_slice()) {
            ("size", [value]) => self.oracle.symbol(value).is_none(),
            _ => !args.iter().any(|arg| self.oracle.holds_unknown(arg)),
        };
        if known {
            return apply::call(name, method, &args, self.fuel).ok_or_else(fails)?;
        }
        let values = match name {
            "size" => return self.size(args.first().ok_or_else(fails)?),
            "matches" | "contains" | "startsWith" | "endsWith" | "bool" | "math.isNaN" | "math.isInf"
            | "math.isFinite" => Values::of(BOOL),
            "int" | "uint" | "indexOf" | "lastIndexOf" => Values::of(INT),
            "string" | "charAt" | "lowerAscii" | "upperAscii" | "replace" | "substring" | "trim" | "join"
            | "strings.quote" | "format" => Values::of(STRING),
            _ => Values::any(),
        };
        let operands: Vec<&Value<'a>> = args.iter().collect();
        self.term(&format!("{name}()"), &operands, values, true)
    }

    fn size(&mut self, value: &Value<'a>) -> Evaluated<'a> {
        let symbol = self.oracle.symbol(value).ok_or_else(fails)?;
        if !self.oracle.has_type(symbol, STRING | LIST | MAP) {
            return Err(fails());
        }
        let known = self.oracle.store.borrow().values(symbol);
        if known.types & STRING != 0 {
            self.charge(self.oracle.steps_of(value));
        }
        let values = self.oracle.schemas.size(&known);
        self.term("size()", &[value], values, false)
    }
}

fn is_event(node: &Node) -> bool {
    matches!(&node.kind, Kind::Ident { name, .. } if name.as_ref() == "event")
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(i) => Value::Int(*i),
        Literal::Uint(u) => Value::Uint(*u),
        Literal::Double(d) => Value::Double(*d),
        Literal::String(text) => Value::string(text.clone()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.to_vec().into()),
    }
}

/// Whether a charter can be analyzed: it must not contain the character that marks symbols.
pub(super) fn is_free_of_marks(text: &str) -> bool {
    !text.contains(MARK) && !text.contains("\\ue000") && !text.contains("\\uE000")
}

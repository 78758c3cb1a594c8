//! Values as typed JSON, `{"t": "uint", "v": "1"}`, and the evaluation of a conformance case.
//!
//! Plain JSON cannot distinguish an int from a uint or a double; this form can. The conformance
//! cases use it. `v` is missing for `null`, a boolean for `bool`, text for `int`, `uint`, `double`
//! (`"inf"`, `"-inf"`, `"nan"`), `string` and `type`, base64 for `bytes`, an array for `list`, and
//! an array of pairs for `map`. A `dur` and a `ts` have whole seconds `s` and nanoseconds `n`;
//! `duration` and `timestamp` with their text in `v` are also accepted.

use std::fmt;

use serde_json::{Value as Json, json};

use crate::functions::encode;
use crate::parse::is_identifier;
use crate::{
    Bytes, CompileError, Duration, Env, ErrorKind, EvalError, ExprTimestamp, Finding, Fuel, Key, MAX_DATA_DEPTH, Map,
    ParseError, Program, RootId, Scope, Type, TypeName, Value,
};

/// Why a JSON value is not the typed form of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is nested deeper than [`MAX_DATA_DEPTH`].
    TooDeep,
    /// This part, shortened, is not a typed value.
    Invalid(String),
    /// A map is invalid: two of its keys are equal.
    Map(EvalError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::TooDeep => f.write_str("the value is nested too deeply"),
            DecodeError::Invalid(part) => write!(f, "`{part}` is not a typed value"),
            DecodeError::Map(e) => f.write_str(&e.message()),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Why a case has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseError {
    /// The case has no `expr`.
    NoExpression,
    /// A binding is not a typed value.
    Binding(DecodeError),
    /// The expression has a syntax error.
    Parse(ParseError),
    /// The expression does not pass the static check.
    Check(Finding),
    /// The expression does not compile.
    Compile(CompileError),
    /// The evaluation failed, or its result has no typed form.
    Eval(EvalError),
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaseError::NoExpression => f.write_str("a case needs `expr`"),
            CaseError::Binding(e) => e.fmt(f),
            CaseError::Parse(e) => e.fmt(f),
            CaseError::Check(finding) => f.write_str(&finding.message),
            CaseError::Compile(e) => e.fmt(f),
            CaseError::Eval(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for CaseError {}

/// Converts a value to its typed form.
///
/// Errors: `TooDeep` for data nested deeper than [`MAX_DATA_DEPTH`], `TooLarge` for more than
/// 262,144 values.
pub fn encode(value: &Value<'_>) -> Result<Json, EvalError> {
    encode_at(value, 0, &mut Fuel::new(1 << 18))
}

fn encode_at(value: &Value<'_>, depth: usize, left: &mut Fuel) -> Result<Json, EvalError> {
    left.spend(1).map_err(|_| EvalError::new(ErrorKind::TooLarge, "the value is too large"))?;
    if depth > MAX_DATA_DEPTH {
        return Err(EvalError::too_deep());
    }
    let deeper = depth.saturating_add(1);
    Ok(match value {
        Value::Null => json!({"t": "null"}),
        Value::Bool(b) => tagged("bool", Json::Bool(*b)),
        Value::Int(i) => tagged("int", Json::String(i.to_string())),
        Value::Uint(u) => tagged("uint", Json::String(u.to_string())),
        Value::Double(d) => tagged("double", Json::String(double(*d))),
        Value::String(s) => tagged("string", Json::String(s.as_str().to_owned())),
        Value::Bytes(b) => tagged("bytes", Json::String(encode::base64(b))),
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                items.push(encode_at(&item, deeper, left)?);
            }
            tagged("list", Json::Array(items))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, item) in map.entries() {
                let key = encode_at(&key.into_value(), deeper, left)?;
                entries.push(Json::Array(vec![key, encode_at(&item, deeper, left)?]));
            }
            tagged("map", Json::Array(entries))
        }
        Value::Timestamp(t) => json!({"t": "ts", "s": t.seconds(), "n": t.nanos()}),
        Value::Duration(d) => json!({"t": "dur", "s": d.seconds(), "n": d.nanos()}),
        Value::Type(t) => tagged("type", Json::String(t.name().to_owned())),
    })
}

/// Moves its argument; the macro `json!` would copy it on every level.
fn tagged(t: &str, v: Json) -> Json {
    let mut object = serde_json::Map::new();
    object.insert("t".to_owned(), Json::String(t.to_owned()));
    object.insert("v".to_owned(), v);
    Json::Object(object)
}

fn double(d: f64) -> String {
    if d.is_nan() {
        "nan".to_owned()
    } else if d.is_infinite() {
        if d > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else {
        format!("{d:?}")
    }
}

/// Converts a typed form to its value.
///
/// Errors: the JSON is not a typed form, or is nested deeper than [`MAX_DATA_DEPTH`].
pub fn decode(typed: &Json) -> Result<Value<'static>, DecodeError> {
    decode_at(typed, 0)
}

fn decode_at(typed: &Json, depth: usize) -> Result<Value<'static>, DecodeError> {
    if depth > MAX_DATA_DEPTH {
        return Err(DecodeError::TooDeep);
    }
    let deeper = depth.saturating_add(1);
    let bad = || DecodeError::Invalid(crate::detail::shorten(&typed.to_string()));
    let kind = typed.get("t").and_then(Json::as_str).ok_or_else(bad)?;
    let v = typed.get("v").unwrap_or(&Json::Null);
    // Numbers are written as text, which is exact; JSON numbers are accepted as well.
    let text = match v {
        Json::String(s) => s.clone(),
        other => other.to_string(),
    };
    Ok(match kind {
        "null" => Value::Null,
        "bool" => Value::Bool(v.as_bool().ok_or_else(bad)?),
        "int" => Value::Int(text.parse().map_err(|_| bad())?),
        "uint" => Value::Uint(text.parse().map_err(|_| bad())?),
        "double" => Value::Double(text.parse().map_err(|_| bad())?),
        "string" => Value::string(v.as_str().ok_or_else(bad)?),
        "bytes" => Value::Bytes(Bytes::from(encode::from_base64(v.as_str().ok_or_else(bad)?).ok_or_else(bad)?)),
        "list" => {
            let items = v.as_array().ok_or_else(bad)?;
            Value::list(items.iter().map(|i| decode_at(i, deeper)).collect::<Result<_, _>>()?)
        }
        "map" => {
            let mut entries = Vec::new();
            for pair in v.as_array().ok_or_else(bad)? {
                let Some([key, value]) = pair.as_array().map(Vec::as_slice) else {
                    return Err(bad());
                };
                let key = Key::from_value(&decode_at(key, deeper)?).ok_or_else(bad)?;
                entries.push((key, decode_at(value, deeper)?));
            }
            Value::Map(Map::from_entries(entries).map_err(DecodeError::Map)?)
        }
        "ts" | "timestamp" => Value::Timestamp(match (parts(typed), v.as_str()) {
            (Some((s, n)), _) => u32::try_from(n).ok().and_then(|n| ExprTimestamp::new(s, n)).ok_or_else(bad)?,
            (None, Some(text)) => ExprTimestamp::parse(text).map_err(|_| bad())?,
            _ => return Err(bad()),
        }),
        "dur" | "duration" => Value::Duration(match (parts(typed), v.as_str()) {
            (Some((s, n)), _) => i32::try_from(n).ok().and_then(|n| Duration::new(s, n)).ok_or_else(bad)?,
            (None, Some(text)) => Duration::parse(text).map_err(|_| bad())?,
            _ => return Err(bad()),
        }),
        "type" => Value::Type(v.as_str().and_then(TypeName::from_name).ok_or_else(bad)?),
        _ => return Err(bad()),
    })
}

/// Returns the seconds and nanoseconds.
fn parts(typed: &Json) -> Option<(i64, i64)> {
    let number = |name: &str| typed.get(name).map(|v| v.as_i64().or_else(|| v.as_str()?.parse().ok()));
    Some((number("s")??, number("n").unwrap_or(Some(0))?))
}

/// The values of the roots, in order of declaration.
struct Bindings(Vec<Value<'static>>);

impl<'a> Scope<'a> for Bindings {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        self.0.get(usize::from(id.0)).cloned()
    }
}

/// Evaluates one case: an object with `expr`, `bindings` (name to typed value) and `disable_check`.
///
/// Returns the typed result. With `check_only`, the static type as a value (`dyn` if it is known
/// only at run time).
///
/// Errors: the case is incomplete, or its expression fails at any stage.
pub fn run(case: &Json) -> Result<Json, CaseError> {
    let source = case.get("expr").and_then(Json::as_str).ok_or(CaseError::NoExpression)?;
    let flag = |name: &str| case.get(name).and_then(Json::as_bool).unwrap_or(false);
    let ast = crate::parse(source).map_err(CaseError::Parse)?;
    let mut env = Env::new();
    let mut values = Vec::new();
    if let Some(bindings) = case.get("bindings").and_then(Json::as_object) {
        for (name, typed) in bindings {
            let value = decode(typed).map_err(CaseError::Binding)?;
            env.root(name, type_of(&value));
            values.push(value);
        }
        let names: Vec<&str> = bindings.keys().map(String::as_str).collect();
        let container = match case.get("container").and_then(Json::as_str) {
            Some(container) => container.to_owned(),
            None => container(&ast, &names).unwrap_or_default(),
        };
        env.set_container(&container);
    }
    if !flag("disable_check") {
        let (ty, findings) = crate::check(&ast, &env);
        if let Some(finding) = findings.into_iter().find(|f| f.severity == crate::Severity::Error) {
            return Err(CaseError::Check(finding));
        }
        if flag("check_only") {
            return Ok(json!({"t": "type", "v": static_type(&ty)}));
        }
    }
    let program = if flag("disable_check") { Program::compile_lenient(ast, &env) } else { Program::compile(ast, &env) };
    let program = program.map_err(CaseError::Compile)?;
    let scope = Bindings(values);
    let value = program.eval(&scope, &mut Fuel::default()).map_err(CaseError::Eval)?;
    encode(&value).map_err(CaseError::Eval)
}

/// The name of a static type.
fn static_type(ty: &Type) -> &'static str {
    let name = match ty {
        Type::Null => TypeName::Null,
        Type::Bool => TypeName::Bool,
        Type::Int => TypeName::Int,
        Type::Uint => TypeName::Uint,
        Type::Double => TypeName::Double,
        Type::String => TypeName::String,
        Type::Bytes => TypeName::Bytes,
        Type::Timestamp => TypeName::Timestamp,
        Type::Duration => TypeName::Duration,
        Type::List(_) => TypeName::List,
        Type::Map(..) | Type::Object { .. } => TypeName::Map,
        Type::Type => TypeName::Type,
        Type::Dyn | Type::Number | Type::Union(_) => return "dyn",
    };
    name.name()
}

fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::String(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        Value::Timestamp(_) => Type::Timestamp,
        Value::Duration(_) => Type::Duration,
        Value::Type(_) => Type::Type,
        Value::List(_) => Type::list(Type::Dyn),
        Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
        Value::Null => Type::Dyn,
    }
}

/// Guesses the container of a case. The cases do not name it, but they bind `x.y` and read `y`.
fn container(ast: &crate::Ast, names: &[&str]) -> Option<String> {
    let roots: Vec<&str> = ast.roots().map(|(name, _)| name).collect();
    names.iter().find_map(|bound| {
        bound.match_indices('.').find_map(|(at, _)| {
            let (container, name) = (bound.get(..at)?, bound.get(at.saturating_add(1)..)?);
            let first = name.split('.').next()?;
            let reads_inside = roots.contains(&first);
            let reads_outside = container.split('.').next().is_some_and(|first| roots.contains(&first));
            (is_identifier(first) && reads_inside && !reads_outside).then(|| container.to_owned())
        })
    })
}

//! Expressions in scenarios: compiles them and provides the values of the run that they can read.

use charter_expr::{
    CompileError, Env, ErrorKind, EvalError, Fuel, FunctionId, Object, Program, RootId, Scope, Span, Str, Type, Value,
};
use charter_format::scenario::{Act, Computed, Expectation, ScenarioFile, ScenarioStep, What};
use charter_format::{Diagnostic, Diagnostics, Severity};
use charter_kernel::definition::Template;
use charter_kernel::{Actor, Digest, Snapshot, Timestamp};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::codes;

/// The root names of expressions, by `RootId`.
const ROOTS: [&str; 8] = ["context", "input", "actors", "ledger", "run", "now", "output", "effects"];
/// The fuel limit of one expression: enough to read a whole run.
const FUEL: u64 = 1_000_000;

/// The compiled expressions of a scenario file, by address.
pub struct Expressions {
    programs: FxHashMap<String, Program>,
    functions: Functions,
}

#[derive(Clone, Copy)]
struct Functions {
    digest: FunctionId,
    is_in: FunctionId,
}

/// The values that an expression can read.
#[derive(Clone, Copy)]
pub(crate) struct EvalView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The actor whose `context` and `input` are read.
    pub(crate) actor: Option<&'a Actor>,
    pub(crate) now: Timestamp,
    pub(crate) effects: &'a Json,
    pub(crate) run: &'a Json,
    pub(crate) none: &'a Json,
}

/// Why the evaluation of an expression failed, and where.
pub(crate) struct EvalFailure {
    pub(crate) at: String,
    pub(crate) span: Option<(usize, usize)>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Compiles all expressions of a file.
///
/// # Errors
/// Returns a diagnostic for every expression that does not compile.
pub fn compile_expressions(file: &ScenarioFile) -> Result<Expressions, Box<Diagnostics>> {
    let mut env = Env::new();
    for root in ROOTS {
        env.root(root, Type::Dyn);
    }
    let functions = Functions {
        digest: env.function("digest", vec![Type::Dyn], Type::String),
        is_in: env.function("in", vec![Type::String], Type::Bool),
    };
    let mut all = Vec::new();
    for scenario in &file.scenarios {
        all.extend(&scenario.input);
        steps(&scenario.steps, &mut all);
    }
    let (mut programs, mut errors) = (FxHashMap::default(), Vec::new());
    for computed in all {
        texts(&computed.template, &computed.at, &mut |at, text| {
            if programs.contains_key(at) {
                return;
            }
            match Program::compile(text, &env) {
                Ok(program) => drop(programs.insert(at.to_owned(), program)),
                Err(error) => errors.push(diagnostic(file, at, &error)),
            }
        });
    }
    if errors.is_empty() {
        return Ok(Expressions { programs, functions });
    }
    errors.sort_by_key(|d| d.span.start);
    // The steps of `before` are part of every scenario, so their errors occur several times.
    errors.dedup();
    Err(Box::new(Diagnostics { name: file.name.clone(), source: file.source.clone(), list: errors, omitted: 0 }))
}

fn diagnostic(file: &ScenarioFile, at: &str, error: &CompileError) -> Diagnostic {
    let Span { start, end } = error.span;
    let span = file.span_within(at, (start, end));
    file.diagnostic(Severity::Error, codes::SCENARIO, span, error.message.clone(), error.help.clone())
}

fn steps<'f>(list: &'f [ScenarioStep], all: &mut Vec<&'f Computed>) {
    for step in list {
        match &step.act {
            Act::Send(sending) | Act::Refused(sending, _) => all.extend(match &sending.what {
                What::Event { data, .. } => data,
                What::Done { output, .. } => output,
                What::Failed { error, .. } => error,
            }),
            Act::Expect(expect) => expectation(expect, all),
            Act::Repeat { steps: inner, .. } => steps(inner, all),
            Act::Tick(_) | Act::Restore => {}
        }
    }
}

fn expectation<'f>(expect: &'f Expectation, all: &mut Vec<&'f Computed>) {
    all.extend(expect.context.values());
    all.extend(&expect.output);
    all.extend(&expect.ledger);
    all.extend(expect.effects.iter().flatten());
    all.extend(&expect.assert);
}

/// Calls `found` with the address and text of every expression in a template.
fn texts(template: &Template, at: &str, found: &mut impl FnMut(&str, &str)) {
    match template {
        Template::Literal(_) => {}
        Template::Cel(text) => found(at, text),
        Template::List(items) => {
            for (i, item) in items.iter().enumerate() {
                texts(item, &format!("{at}/list/{i}"), found);
            }
        }
        Template::Object(fields) => {
            for (key, item) in fields {
                texts(item, &below(at, key), found);
            }
        }
    }
}

fn below(at: &str, key: &str) -> String {
    charter_expr::pointer::join(&format!("{at}/object"), key)
}

impl Expressions {
    /// Evaluates a value of a scenario.
    pub(crate) fn value(&self, computed: &Computed, view: EvalView<'_>) -> Result<Json, EvalFailure> {
        self.template(&computed.template, &computed.at, view)
    }

    /// Returns the paths that a condition reads, with their values.
    pub(crate) fn reads(&self, computed: &Computed, view: EvalView<'_>) -> Vec<(String, Json)> {
        let scope = ScenarioScope { view, actors: ActorMap(view.snapshot), functions: self.functions };
        let program = self.programs.get(&computed.at);
        let paths = program.map(Program::reads).unwrap_or_default();
        let value = |path: &charter_expr::Path| {
            let scope = scope.by_reference();
            let value = path.eval(&scope).and_then(|v| v.to_json());
            value.ok().map(|value| (path.text().to_string(), value))
        };
        paths.iter().filter_map(value).collect()
    }

    fn template(&self, template: &Template, at: &str, view: EvalView<'_>) -> Result<Json, EvalFailure> {
        Ok(match template {
            Template::Literal(value) => value.clone(),
            Template::Cel(_) => self.cel(at, view)?,
            Template::List(items) => {
                let items = items.iter().enumerate();
                let values = items.map(|(i, item)| self.template(item, &format!("{at}/list/{i}"), view));
                Json::Array(values.collect::<Result<_, _>>()?)
            }
            Template::Object(fields) => {
                let values =
                    fields.iter().map(|(key, item)| Ok((key.clone(), self.template(item, &below(at, key), view)?)));
                Json::Object(values.collect::<Result<_, _>>()?)
            }
        })
    }

    fn cel(&self, at: &str, view: EvalView<'_>) -> Result<Json, EvalFailure> {
        let failed = |error: EvalError| EvalFailure {
            at: at.to_owned(),
            span: error.span().map(|s| (s.start, s.end)),
            message: error.message().into_owned(),
            help: error.help().map(str::to_owned),
        };
        let missing = || failed(EvalError::new(ErrorKind::Unbound, "unknown expression"));
        let program = self.programs.get(at).ok_or_else(missing)?;
        let scope = ScenarioScope { view, actors: ActorMap(view.snapshot), functions: self.functions };
        let value = program.eval(&scope.by_reference(), &mut Fuel::new(FUEL));
        value.and_then(|value| value.to_json()).map_err(failed)
    }
}

/// The root name `actors`: the machines of the run, by id.
#[derive(Debug)]
struct ActorMap<'a>(&'a Snapshot);

impl Object for ActorMap<'_> {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.0.actor(key).map(|actor| Value::object(actor))
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let mut ids: Vec<&str> = self.0.actors().map(Actor::id).collect();
        ids.sort_unstable();
        ids.into_iter().map(Str::from).collect()
    }
    fn len(&self) -> usize {
        self.0.actors().count()
    }
}

struct ScenarioScope<'a> {
    view: EvalView<'a>,
    actors: ActorMap<'a>,
    functions: Functions,
}

struct ScopeRef<'r>(&'r ScenarioScope<'r>);

impl<'a> ScenarioScope<'a> {
    fn by_reference<'r>(&'r self) -> ScopeRef<'r>
    where
        'a: 'r,
    {
        ScopeRef(self)
    }
}

impl<'r> Scope<'r> for ScopeRef<'r> {
    fn root(&self, id: RootId) -> Option<Value<'r>> {
        let view = &self.0.view;
        match ROOTS.get(usize::from(id.0)).copied()? {
            "context" => (view.actor? as &dyn Object).get("context"),
            "input" => Some(view.actor?.input_value()),
            "actors" => Some(Value::object(&self.0.actors)),
            "ledger" => view.snapshot.ledger().map(|ledger| Value::object(ledger)),
            "run" => Some(Value::from_json(view.run)),
            "now" => Some(Value::timestamp_millis(view.now.0)),
            "output" => Some(Value::from_json(view.snapshot.output().unwrap_or(view.none))),
            "effects" => Some(Value::from_json(view.effects)),
            _ => None,
        }
    }

    fn call(&self, f: FunctionId, args: &[Value<'r>], fuel: &mut Fuel) -> Result<Value<'r>, EvalError> {
        match args {
            [value] if f == self.0.functions.digest => Ok(Value::string(Digest::of_json(&value.to_json()?).hex())),
            [Value::String(state)] if f == self.0.functions.is_in => {
                fuel.spend(1)?;
                let active = self.0.view.actor.into_iter().flat_map(Actor::active);
                let mut active = active;
                Ok(Value::Bool(active.any(|path| path == state.as_str())))
            }
            _ => Err(EvalError::new(ErrorKind::NoSuchOverload, "wrong arguments")),
        }
    }
}

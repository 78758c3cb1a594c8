//! `charter eval`: evaluates an expression, or a file of expressions.

use charter_expr::{
    Env, ErrorKind, EvalError, Fuel, FunctionId, Numbers, Program, RootId, Scope, Span, Type, Value, typed,
};
use charter_format::{Diagnostic, Diagnostics};
use charter_kernel::Digest;
use serde_json::{Value as Json, json};

use crate::input::{json_or_file, open};
use crate::io::{Exit, Failure, Io};
use charter_scenario::lines::{Lines, RawLine};

/// Evaluates an expression, or a file of expressions.
#[derive(Debug, clap::Args)]
#[command(override_usage = "charter eval EXPR [--with JSON]\n       charter eval --batch F.jsonl")]
pub struct Args {
    /// The expression (CEL)
    #[arg(required_unless_present = "batch", conflicts_with = "batch", allow_hyphen_values = true)]
    expr: Option<String>,
    /// Variables of the expression: a JSON object, or `@file`
    #[arg(long, value_name = "JSON", conflicts_with = "batch")]
    with: Option<String>,
    /// Evaluate a file of expressions with typed variables, one JSON object per line; `-` reads
    /// standard input
    #[arg(long, value_name = "F.jsonl")]
    batch: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A file or an argument cannot be read.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match (&args.batch, &args.expr) {
        (Some(batch), _) => run_batch(batch, io),
        (None, expr) => {
            let with = match &args.with {
                Some(text) => json_or_file("--with", text)?,
                None => json!({}),
            };
            // The limits of event data; the numbers keep the type they are written with.
            charter_expr::json::canonical(&mut with.clone()).map_err(|e| Failure::new(format!("`--with`: {e}")))?;
            one(expr.as_deref().unwrap_or_default(), &with, machine_output, io)
        }
    }
}

/// Evaluates one expression: prints its value to standard output, or a diagnostic to standard
/// error.
fn one(source: &str, with: &Json, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let Json::Object(fields) = with else {
        return Err(Failure::with_help(
            "`--with` is not a JSON object",
            "its keys are the variables of the expression, e.g. `--with '{\"x\": 1}'`",
        ));
    };
    let mut env = Env::new();
    for name in fields.keys() {
        env.root(name, Type::Dyn);
    }
    // The variables have no schema, so their numbers have the types they are written with.
    let types = Numbers::of_example(with);
    let of = |name: &str| types.as_ref().and_then(|types| types.field(name));
    let scope = EvalScope {
        values: fields.iter().map(|(name, value)| Value::typed(value, of(name))).collect(),
        digest: env.function("digest", vec![Type::Dyn], Type::String),
    };
    let program = match Program::compile(source, &env) {
        Ok(program) => program,
        Err(e) => return Err(failure(source, "expression", e.span, &e.message, e.help.as_deref())),
    };
    let value = program.eval(&scope, &mut Fuel::default());
    match value.and_then(|value| value.to_json()) {
        Ok(json) => {
            writeln!(io.out, "{json}")?;
            Ok(Exit::Yes)
        }
        Err(e) => {
            let all = Span::new(0, source.len());
            let span = e.span().unwrap_or(all);
            let failure = failure(source, e.kind().code(), span, &e.message(), e.help());
            match machine_output {
                true => writeln!(io.err, "{}", failure.json())?,
                false => failure.show(io.err, io.color_err)?,
            }
            Ok(Exit::No)
        }
    }
}

/// The failure of an expression, with the place in it.
fn failure(source: &str, code: &'static str, span: Span, message: &str, help: Option<&str>) -> Failure {
    let span = charter_format::Span { start: span.start, end: span.end };
    let diagnostic = Diagnostic {
        message: message.to_owned(),
        help: help.map(str::to_owned),
        ..Diagnostic::error(code, span, "").located(source)
    };
    Failure::Source(Box::new(Diagnostics {
        name: "expression".into(),
        source: source.into(),
        list: vec![diagnostic],
        omitted: 0,
    }))
}

/// The variables of one expression, and the functions that charters add to CEL.
struct EvalScope<'j> {
    values: Vec<Value<'j>>,
    digest: FunctionId,
}

impl<'a, 'j: 'a> Scope<'a> for EvalScope<'j> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        self.values.get(usize::from(id.0)).cloned()
    }
    fn call(&self, f: FunctionId, args: &[Value<'a>], _: &mut Fuel) -> Result<Value<'a>, EvalError> {
        match args {
            [value] if f == self.digest => Ok(Value::string(Digest::of_json(&value.to_json()?).hex())),
            _ => Err(EvalError::new(ErrorKind::Unbound, "unknown function")),
        }
    }
}

/// Prints one line per line of input: `{"value": TYPED}` or `{"error": "..."}`.
fn run_batch(batch: &str, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let input = open(batch, "expressions", io)?;
    let mut lines = Lines::new(input);
    let mut exit = Exit::Yes;
    while let Some((number, line)) = lines.advance()? {
        let answer = match case(&line) {
            Ok(case) => match typed::run(&case) {
                Ok(value) => json!({"value": value}),
                Err(error) => {
                    exit = exit.and(Exit::No);
                    json!({"error": error.to_string()})
                }
            },
            Err(failure) => {
                exit = Exit::CouldNot;
                json!({"error": format!("line {number}: {failure}"), "line": number})
            }
        };
        writeln!(io.out, "{answer}")?;
    }
    Ok(exit)
}

fn case(line: &RawLine<'_>) -> Result<Json, Failure> {
    let RawLine::Bytes(bytes) = line else {
        return Err(Failure::new("the line is too long"));
    };
    let case: Json =
        charter_expr::strict_json::from_slice(bytes).map_err(|e| Failure::new(format!("invalid JSON: {e}")))?;
    match case.get("expr") {
        Some(Json::String(_)) => Ok(case),
        _ => Err(Failure::new("expected a JSON object with the string `expr`")),
    }
}

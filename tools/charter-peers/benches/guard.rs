//! Evaluates one guard over a context of 40 leaves with `charter-expr`, native code and the `cel`
//! crate in the same run: `cargo bench -p charter-peers --bench guard`.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value, check, parse};
use divan::{Bencher, black_box};
use serde_json::{Value as Json, json};

fn main() {
    // Each sample has many iterations, because one guard takes less time than the resolution of the
    // clock.
    divan::Divan::from_args().sample_size(1000).sample_count(100).main();
}

const GUARD: &str = "event.output.confidence >= 0.85 && event.output.requiresHumanApproval == false";
const LIST: &str = "context.items.exists(i, i.id == 'item-7') && context.items.all(i, i.amount >= 0)";

fn event() -> Json {
    json!({"type": "done.invoke.decide", "output": {
        "confidence": 0.91, "requiresHumanApproval": false, "rationale": "as before", "risk": "low"}})
}

fn context() -> Json {
    let items: Vec<Json> = (0..10).map(|i| json!({"id": format!("item-{i}"), "amount": i * 10})).collect();
    let mut context = json!({"userId": "u1", "retryCount": 1, "spent": 12.5, "budget": 100, "items": items});
    for i in 0..16 {
        context[format!("field{i:02}")] = json!(format!("value {i}"));
    }
    context
}

/// Two roots over JSON, as in the kernel.
struct Data<'d> {
    event: &'d Json,
    context: &'d Json,
}

impl<'a> Scope<'a> for Data<'a> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        match id.0 {
            0 => Some(Value::from_json(self.event)),
            1 => Some(Value::from_json(self.context)),
            _ => None,
        }
    }
}

fn env() -> Env {
    let mut env = Env::new();
    env.root("event", Type::of_json(&event()));
    env.root("context", Type::of_json(&context()));
    env
}

fn ours(bencher: Bencher, source: &str) {
    let program = Program::compile(source, &env()).unwrap();
    let (event, context) = (event(), context());
    let data = Data { event: &event, context: &context };
    bencher.bench_local(|| {
        let mut fuel = Fuel::default();
        black_box(&program).eval(black_box(&data), &mut fuel).unwrap().as_bool()
    });
}

#[divan::bench]
fn guard_charter(bencher: Bencher) {
    ours(bencher, GUARD);
}

#[divan::bench]
fn guard_native(bencher: Bencher) {
    let event = event();
    bencher.bench_local(|| {
        let output = &black_box(&event)["output"];
        output["confidence"].as_f64().unwrap() >= 0.85 && output["requiresHumanApproval"] == false
    });
}

#[divan::bench]
fn guard_charter_missing_field(bencher: Bencher) {
    let program = Program::compile("event.output.absent == 1", &env()).unwrap();
    let (event, context) = (event(), context());
    let data = Data { event: &event, context: &context };
    bencher.bench_local(|| black_box(&program).eval(black_box(&data), &mut Fuel::default()).unwrap_err().kind());
}

#[divan::bench]
fn guard_cel_values_ready(bencher: Bencher) {
    let program = cel::Program::compile(GUARD).unwrap();
    let mut scope = cel::Context::default();
    scope.add_variable("event", event()).unwrap();
    scope.add_variable("context", context()).unwrap();
    bencher.bench_local(|| black_box(&program).execute(black_box(&scope)).unwrap());
}

#[divan::bench]
fn guard_cel_values_converted(bencher: Bencher) {
    let program = cel::Program::compile(GUARD).unwrap();
    let (event, context) = (event(), context());
    bencher.bench_local(|| {
        let mut scope = cel::Context::default();
        scope.add_variable("event", black_box(&event)).unwrap();
        scope.add_variable("context", black_box(&context)).unwrap();
        black_box(&program).execute(&scope).unwrap()
    });
}

#[divan::bench]
fn list_charter(bencher: Bencher) {
    ours(bencher, LIST);
}

#[divan::bench]
fn list_cel_values_ready(bencher: Bencher) {
    let program = cel::Program::compile(LIST).unwrap();
    let mut scope = cel::Context::default();
    scope.add_variable("context", context()).unwrap();
    bencher.bench_local(|| black_box(&program).execute(black_box(&scope)).unwrap());
}

#[divan::bench]
fn compile_charter() -> Program {
    Program::compile(black_box(GUARD), &env()).unwrap()
}

#[divan::bench]
fn parse_and_check_charter(bencher: Bencher) {
    let env = env();
    bencher.bench_local(|| check(&parse(black_box(GUARD)).unwrap(), &env).1.len());
}

#[divan::bench]
fn compile_cel() -> cel::Program {
    cel::Program::compile(black_box(GUARD)).unwrap()
}

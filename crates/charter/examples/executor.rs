//! An executor of your own: actors of the kind `upper` return their input in capitals.
//!
//! `cargo run -p charter --example executor`

use std::error::Error;
use std::sync::Arc;

use charter::actors::{BoxFuture, Call, Executor, Fault, Folder, Outcome};
use charter::journal::MemoryStore;
use charter::kernel::Principal;
use charter::runtime::{Charter, Options, Runtime, Start};
use serde_json::{Value, json};

const SOURCE: &str = "
charter: 1
id: shout
input: {type: object, required: [text], properties: {text: {type: string}}}
actors: {shout: {kind: upper, output: {type: string}}}
context: {text: = input.text, result: null}
output: = context.result
states:
  working:
    invoke: {src: shout, input: = context.text, onDone: {target: done, actions: {assign: {result: '= event.output'}}}, onError: failed}
  done: {type: final}
  failed: {type: final}
";

struct Upper;

impl Executor for Upper {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        // The record that requests the effect is already committed. After a crash, the same effect
        // may be requested again: `call.effect` is the key that makes a request to another service
        // idempotent.
        Box::pin(async move {
            match call.input.as_ref() {
                Value::String(text) => Ok(Outcome::Done(text.to_uppercase().into())),
                _ => Err(Fault::new("input", "the input is not a string")),
            }
        })
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::default().executor("upper", Upper);
    let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), options).await?;
    let document = charter::format::read(SOURCE, "shout.yaml", &Default::default())?;
    let charter = runtime.add(Charter::new(&document, Folder::None)?).await?;
    let by = Principal::new("ana", &[]);
    let start = Start { charter: charter.digest(), run: Some("run-1".into()), input: json!({"text": "hello"}), by };
    runtime.start(start).await?;
    let view = runtime.ended("run-1").await?;
    assert_eq!(view.snapshot.output(), Some(&json!("HELLO")));
    println!("{:?}", view.snapshot.output());
    Ok(())
}

//! Steps the kernel directly: no journal, no clock, no threads.
//!
//! `cargo run -p charter --example step`

use std::error::Error;

use charter::kernel::{Code, EffectKind, Envelope, Event, Machine, Principal};
use serde_json::json;

const SOURCE: &str = "
charter: 1
id: errand
roles: {boss: {}}
events: {GO: {by: boss}}
actors: {walk: {kind: exec, command: [walk]}}
context: {bag: null}
states:
  waiting: {on: {GO: walking}}
  walking:
    invoke: {src: walk, onDone: {target: home, actions: {assign: {bag: '= event.output'}}}}
  home: {type: final}
";

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let document = charter::format::read(SOURCE, "errand.yaml", &Default::default())?;
    let machine = Machine::compile(document.definition).map_err(|problems| format!("{problems:?}"))?;

    // The envelope has everything that the kernel knows: the position, the event, its sender and
    // the time.
    let started = machine.start("run-1", &Envelope::host(0, Event::Start { input: json!({}) }, 1_000));
    let waiting = started.map_err(|refusal| format!("{refusal:?}"))?.snapshot;

    // A refusal is a value, and the snapshot is unchanged.
    let eve = Envelope::event(1, "GO", json!({}), Principal::new("eve", &[]), 2_000);
    assert_eq!(machine.step(&waiting, &eve).map_err(|refusal| refusal.code).err(), Some(Code::Authority));

    // A step returns a new snapshot and the effects to execute.
    let boss = Envelope::event(2, "GO", json!({}), Principal::new("ana", &["boss"]), 3_000);
    let step = machine.step(&waiting, &boss).map_err(|refusal| format!("{refusal:?}"))?;
    let effect = step.effects.first().ok_or("no effect")?;
    let EffectKind::Invoke { invocation, src, .. } = &effect.kind else { return Err("no invocation".into()) };
    println!("{}: execute `{src}`", effect.id.text("run-1"));

    // The result of an effect is sent to the machine as an event.
    let done = Event::answer(&**invocation, effect.id, Ok(json!({"milk": 2})));
    let home = machine.step(&step.snapshot, &Envelope::host(3, done, 4_000));
    let home = home.map_err(|refusal| format!("{refusal:?}"))?.snapshot;
    println!("{:?}, context {}", home.status(), home.actor("root").ok_or("no root actor")?.context());
    Ok(())
}

//! Embeds the runtime: a charter, a journal in memory, one event, one timer.
//!
//! `cargo run -p charter --example embed`

use std::error::Error;
use std::sync::Arc;

use charter::actors::{Folder, VirtualClock};
use charter::journal::MemoryStore;
use charter::kernel::{Auth, Principal, PrincipalKind};
use charter::runtime::{Charter, Options, Runtime, SendEvent, Start};
use serde_json::json;

const SOURCE: &str = "
charter: 1
id: reminder
roles: {owner: {}}
events: {DONE: {by: owner}}
states:
  waiting:
    on: {DONE: {target: closed}}
    after: {24h: overdue}
  overdue: {on: {DONE: {target: closed}}}
  closed: {type: final}
";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // `SqliteStore::open("charter.db")` keeps the journal in a file; `Options::default()` uses the
    // system clock.
    let clock = VirtualClock::new(1_795_255_200_000);
    let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), Options::default().clock(clock.clone())).await?;

    let document = charter::format::read(SOURCE, "reminder.yaml", &Default::default())?;
    let charter = runtime.add(Charter::new(&document, Folder::None)?).await?;

    // A host says what the sender is and how it knows: approvals are for persons.
    let ana = Principal::new("ana", &["owner"]).of_kind(PrincipalKind::Person).authenticated(Auth::Session);
    let start = Start { charter: charter.digest(), run: Some("run-1".into()), input: json!({}), by: ana.clone() };
    runtime.start(start).await?;

    // A day passes, the timer fires, then the event arrives.
    clock.run(24 * 3_600_000).await;
    println!("{:?}", runtime.view("run-1").await?.snapshot.actor("root").map(|a| a.state().collect::<Vec<_>>()));
    let receipt = runtime.send(SendEvent::new("run-1", "DONE", json!({}), ana)).await?;
    assert!(!receipt.is_refused());
    println!("{:?}", runtime.ended("run-1").await?.snapshot.status());
    Ok(())
}

//! The embedded host, in memory and on SQLite, stores and answers the same as the other hosts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use charter_actors::{ActivityGuard, BoxFuture, Call, Clock, Executor, Fault, Folder, Human, Outcome, VirtualClock};
use charter_equivalence::{
    Answer, AttemptInput, OTHER, RUN, Setup, Sources, Subject, TaskAnswer, TraceInput, answer_code, compare,
};
use charter_journal::{MemoryStore, SqliteStore, Store};
use charter_kernel::{EffectId, Timestamp};
use charter_run::{Denied, EventInput};
use charter_runtime::{Charter, Limits, Options, Receipt, Runtime, RuntimeError, SendEvent, Start};
use charter_test_support::cases;
use serde_json::Value as Json;
use tokio::sync::oneshot;

/// Shows a time from the moment it is set; what sleeps until then wakes up one after the other and
/// sees that time.
#[derive(Clone)]
struct LateClock {
    virtual_clock: VirtualClock,
    shown: Arc<Mutex<Timestamp>>,
}

impl Clock for LateClock {
    fn now(&self) -> Timestamp {
        self.virtual_clock.now().max(*self.shown.lock().unwrap())
    }
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        self.virtual_clock.sleep_until(at)
    }
    fn alarm_at(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        self.virtual_clock.alarm_at(at)
    }
    fn turn(&self) -> BoxFuture<'static, ()> {
        self.virtual_clock.turn()
    }
    fn work(&self) -> ActivityGuard {
        self.virtual_clock.work()
    }
}

type HeldResult = (Result<Json, Fault>, ActivityGuard);
type Attempts = BTreeMap<(EffectId, u32), oneshot::Sender<HeldResult>>;

/// An executor whose attempts end when the test says so.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Attempts>>);

impl Executor for Held {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let held = self.0.clone();
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            held.lock().unwrap().insert((call.effect_id, call.attempt), sender);
            // While it waits, the attempt does not count as an activity.
            let asleep = call.clock().sleep_until(Timestamp::MAX);
            let result = receiver.await;
            drop(asleep);
            match result {
                Ok((result, _activity)) => result.map(Outcome::Done),
                Err(_) => std::future::pending().await,
            }
        })
    }
}

/// From the start of the host to its end.
struct Life {
    runtime: Runtime,
    clock: LateClock,
    held: Held,
    // Dropped last.
    tokio: tokio::runtime::Runtime,
}

struct Embedded {
    setup: Setup,
    open: Box<dyn Fn() -> Arc<dyn Store>>,
    life: Option<Life>,
}

impl Embedded {
    fn new(setup: &Setup, open: impl Fn() -> Arc<dyn Store> + 'static) -> Embedded {
        let mut embedded = Embedded { setup: setup.clone(), open: Box::new(open), life: None };
        embedded.begin(Timestamp(0));
        let life = embedded.life.as_ref().unwrap();
        life.tokio.block_on(life.begin_other(setup));
        embedded
    }

    fn in_memory(setup: &Setup) -> Embedded {
        let store = Arc::new(MemoryStore::new());
        Embedded::new(setup, move || store.clone())
    }

    fn on_sqlite(setup: &Setup) -> Embedded {
        let folder = charter_test_support::Folder::new();
        Embedded::new(setup, move || Arc::new(SqliteStore::open(&folder.file("journal.db")).unwrap()))
    }

    fn begin(&mut self, at: Timestamp) {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let clock = LateClock { virtual_clock: VirtualClock::new(at), shown: Arc::new(Mutex::new(at)) };
        let held = Held::default();
        let limits = Limits {
            records_per_run: self.setup.bounds.records,
            data_bytes: self.setup.bounds.data_bytes,
            events_per_second: 0,
            calls_at_once: 0,
            ..Limits::default()
        };
        // The runs of a case may be from any time.
        let mut options = Options { limits, accept_clock: true, ..Options::default().clock(clock.clone()) };
        let definition = self.setup.machine.definition();
        for decl in definition.actors.values().filter(|d| d.kind != "human") {
            options = options.executor(&decl.kind, held.clone());
        }
        options = options.executor("human", Human);
        let store = (self.open)();
        let runtime = tokio.block_on(async {
            let (runtime, recovery) = Runtime::open(store, options).await.unwrap();
            assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
            let charter =
                Charter::compiled(self.setup.machine.clone(), &self.setup.stored.name, "", Folder::None).unwrap();
            runtime.add(charter).await.unwrap();
            clock.virtual_clock.settle().await;
            runtime
        });
        self.life = Some(Life { runtime, clock, held, tokio });
    }
}

impl Life {
    /// Lets everything happen that is due.
    async fn pass_time(&self, at: Timestamp) {
        let clock = &self.clock.virtual_clock;
        clock.advance(at.since(clock.now())).await;
    }

    /// Starts the run that has unique keys.
    async fn begin_other(&self, setup: &Setup) {
        let Some(first) = setup.others.first() else {
            return;
        };
        let (charter, input, by) = (setup.stored.digest, Json::Null, first.by.clone());
        self.runtime.start(Start { charter, run: Some(OTHER.into()), input, by }).await.unwrap();
        for event in &setup.others {
            assert!(matches!(self.send(OTHER, event).await, Answer::Made(_)));
        }
    }

    async fn send(&self, run: &str, event: &EventInput) -> Answer {
        let EventInput { to, r#type, data, by, id, expected_seq, .. } = event.clone();
        answer(self.runtime.send(SendEvent { run: run.into(), to, r#type, data, by, id, expected_seq }).await)
    }

    async fn give(&self, setup: &Setup, at: Timestamp, input: &TraceInput) -> Vec<Answer> {
        *self.clock.shown.lock().unwrap() = at;
        let answers = match input {
            TraceInput::Start { input, by } => {
                let start =
                    Start { charter: setup.stored.digest, run: Some(RUN.into()), input: input.clone(), by: by.clone() };
                vec![answer(self.runtime.start(start).await)]
            }
            TraceInput::Batch(events, ended) => {
                if ended.is_some() {
                    // The attempt may begin only now.
                    self.pass_time(at).await;
                }
                // The result wakes the task of the call, which runs after the events are in the
                // mailbox and before the task of the mailbox.
                if let Some(AttemptInput { effect, attempt, result }) = ended {
                    let waits = self.held.0.lock().unwrap().remove(&(*effect, *attempt));
                    if let Some(waits) = waits {
                        let _ = waits.send((result.clone(), self.clock.work()));
                    }
                }
                match &events[..] {
                    [] => Vec::new(),
                    [one] => vec![self.send(RUN, one).await],
                    [one, two] => {
                        let (one, two) = tokio::join!(self.send(RUN, one), self.send(RUN, two));
                        vec![one, two]
                    }
                    more => panic!("{} events at once", more.len()),
                }
            }
            TraceInput::Task { effect, answer: TaskAnswer::Done(output), by } => {
                vec![answer(self.runtime.complete(&effect.text(RUN), output.clone(), by.clone()).await)]
            }
            TraceInput::Task { effect, answer: TaskAnswer::Declined(reason), by } => {
                vec![answer(self.runtime.decline(&effect.text(RUN), reason, by.clone()).await)]
            }
            TraceInput::Due => Vec::new(),
        };
        self.pass_time(at).await;
        answers
    }
}

fn answer(result: Result<Receipt, RuntimeError>) -> Answer {
    let denied = match result {
        Ok(receipt) if receipt.repeated => return Answer::Repeated(receipt.record.seq),
        Ok(receipt) => return Answer::Made(receipt.record.seq),
        Err(RuntimeError::NotAwaited(_)) => return Answer::NotAwaited,
        Err(RuntimeError::NeverStarted(_)) => Denied::NeverStarted,
        Err(RuntimeError::RunExists(_)) => Denied::RunExists,
        Err(RuntimeError::IdTaken { id, seq, .. }) => Denied::IdTaken { id, seq },
        Err(RuntimeError::IdReserved { prefix, .. }) => Denied::IdReserved { prefix },
        Err(RuntimeError::Limit { limit: "data_bytes", value, .. }) => {
            Denied::DataTooLarge { event: String::new(), limit: value }
        }
        Err(RuntimeError::Limit { limit: "records_per_run", value, .. }) => Denied::TooManyRecords { limit: value },
        Err(RuntimeError::NoTask { task, .. }) => Denied::NoTask { task },
        Err(RuntimeError::NotYours { task, by, .. }) => Denied::NotYours { task, roles: Vec::new(), by },
        Err(RuntimeError::PersonsOnly { task, by, kind, .. }) => Denied::PersonsOnly { task, by, kind },
        Err(other) => panic!("{other}"),
    };
    Answer::Denied(answer_code(&denied))
}

impl Subject for Embedded {
    fn give(&mut self, at: Timestamp, input: &TraceInput) -> Vec<Answer> {
        let life = self.life.as_ref().unwrap();
        life.tokio.block_on(life.give(&self.setup, at, input))
    }

    fn kill(&mut self, at: Timestamp) {
        // Tasks end where they are; the store is dropped with the last of them.
        self.life = None;
        self.begin(at);
    }

    fn records(&mut self, from: u64) -> Vec<String> {
        let life = self.life.as_ref().unwrap();
        let records = life.runtime.store().records(RUN, from, usize::MAX >> 1).unwrap();
        records.iter().map(|r| r.text().to_owned()).collect()
    }
}

#[test]
fn the_embedded_host_stores_the_same_as_the_other_hosts_in_memory() {
    compare(cases(40, 3_000), Sources::All, &[("in memory", &|setup| Some(Box::new(Embedded::in_memory(setup))))]);
}

#[test]
fn the_embedded_host_reserves_the_same_keys_as_the_other_hosts() {
    let shop = Sources::Only("shop");
    compare(cases(10, 500), shop, &[("in memory", &|setup| Some(Box::new(Embedded::in_memory(setup))))]);
    compare(cases(4, 100), shop, &[("SQLite", &|setup| Some(Box::new(Embedded::on_sqlite(setup))))]);
}

#[test]
fn the_embedded_host_stores_the_same_as_the_other_hosts_on_sqlite() {
    compare(cases(10, 500), Sources::All, &[("SQLite", &|setup| Some(Box::new(Embedded::on_sqlite(setup))))]);
}

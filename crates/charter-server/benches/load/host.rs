//! The server in a process of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use charter_actors::{BoxFuture, Call, Executor, Fault, Folder, Outcome};
use charter_journal::SqliteStore;
use charter_kernel::PrincipalKind;
use charter_runtime::backend::Backend;
use charter_runtime::{Charter, Limits, Options, Runtime};
use charter_server::Server;
use charter_server::identity::{NewKey, Office};
use serde_json::json;

use crate::client::{Connection, Target};

/// A charter with a timer in each state, and a small context.
pub(crate) const EVENTS: &str = "
charter: 1
id: bench
context: {count: 0}
events: {NEXT: {data: {type: object, required: [message], properties: {message: {type: string}}}}}
initial: one
states:
  one: {on: {NEXT: {target: two, actions: {assign: {count: '= context.count + 1'}}}}, after: {24h: two}}
  two: {on: {NEXT: one}}
";

/// Six steps one after the other, each done by an actor.
pub(crate) fn six_steps() -> String {
    let mut text =
        String::from("charter: 1\nid: six\ncontext: {done: 0}\nactors: {work: {kind: work}}\ninitial: s0\nstates:\n");
    for step in 0..6 {
        let next = step + 1;
        text.push_str(&format!(
            "  s{step}: {{invoke: {{src: work, input: {{n: '= context.done'}}, onDone: {{target: s{next}, actions: {{assign: {{done: '= context.done + 1'}}}}}}}}}}\n"
        ));
    }
    text + "  s6: {type: final}\n"
}

/// The work of a step: next to nothing.
struct Work;

impl Executor for Work {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async move { Ok(Outcome::Done(json!({"did": call.input.as_ref()["n"]}))) })
    }
}

pub(crate) fn charter(source: &str) -> Charter {
    let document = charter_format::read(source, "bench.yaml", &Default::default()).unwrap();
    Charter::new(&document, Folder::None).unwrap()
}

/// A host without a limit on the events of a principal.
pub(crate) async fn host(file: &Path) -> Runtime {
    let store = Arc::new(SqliteStore::open(file).unwrap());
    let limits = Limits { events_per_second: 0, ..Limits::default() };
    let options = Options { limits, ..Options::default() }.executor("work", Work);
    Runtime::open(store, options).await.unwrap().0
}

/// Serves until standard input ends. Prints the address, and the key of a person.
pub(crate) fn serve(file: &Path) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    threads.block_on(async {
        let host: Arc<dyn Backend> = Arc::new(host(file).await);
        let office = Office::open(host.clone(), "uid:0").await.unwrap();
        let grants = vec!["bench/clerk".parse().unwrap(), "six/clerk".parse().unwrap()];
        let key = NewKey { id: "ann".into(), kind: PrincipalKind::Person, grants, expires: None, note: None };
        let secret = office.add(key, Office::owner("uid:0")).await.unwrap();
        let charters = vec![charter(EVENTS), charter(&six_steps())];
        let options = charter_server::Options::local("127.0.0.1:0".parse().unwrap(), "uid:0");
        let server = Server::start(host, charters, options).await.unwrap();
        println!("{} {}", server.address(), secret.reveal());
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = end.await;
        server.close(std::time::Duration::from_secs(1)).await;
    });
}

/// A server in another process, which ends when this is dropped.
pub(crate) struct Hosted {
    child: Child,
    target: Target,
}

impl Hosted {
    pub(crate) fn start(file: &Path) -> Hosted {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("serve").arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, secret) = line.trim().split_once(' ').unwrap();
        let target = Target { address: address.parse().unwrap(), secret: secret.to_owned() };
        Hosted { child, target }
    }

    pub(crate) fn target(&self) -> Target {
        self.target.clone()
    }

    pub(crate) async fn start_run(&self, run: &str) {
        let body = json!({"charter": "bench", "run": run}).to_string();
        assert_eq!(Connection::open(&self.target).await.post("/v1/runs", &body).await, 201);
    }

    pub(crate) async fn reader(&self, path: &str) -> tokio::task::JoinHandle<()> {
        Connection::open(&self.target).await.follow(path).await
    }

    fn memory(&self, line: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let found = text.lines().find_map(|l| l.strip_prefix(line)).and_then(|l| l.split_whitespace().next());
        found.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default() / 1_024
    }

    pub(crate) fn resident_mb(&self) -> u64 {
        self.memory("VmRSS:")
    }

    pub(crate) fn peak_mb(&self) -> u64 {
        self.memory("VmHWM:")
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

//! `charter serve` killed with SIGKILL at random moments, while clients send events with ids,
//! actors run and timers fire: nothing that was acknowledged is lost, nothing is done twice, and
//! readers resume without a gap or a repetition. `CHARTER_KILLS=300` sets the number of kills.
#![cfg(all(unix, feature = "serve"))]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use charter_test_support::cases;
use serde_json::{Value as Json, json};

use crate::support::{Scratch, charter};

const SOURCE: &str = "
charter: 1
id: load
roles: {worker: {}}
events:
  ADD: {by: worker, data: {type: object, required: [n], properties: {n: {type: integer}}}}
context: {sum: 0, ticks: 0}
actors:
  note: {kind: exec, command: [sh, -c, 'echo $CHARTER_EFFECT >> notes'], timeout: 10s}
initial: both
states:
  both:
    type: parallel
    states:
      counting:
        initial: on
        states:
          on:
            on: {ADD: {actions: {assign: {sum: '= context.sum + event.n'}}}}
      working:
        initial: idle
        states:
          idle: {after: {100ms: busy}}
          busy:
            entry: {assign: {ticks: '= context.ticks + 1'}}
            invoke: {id: note, src: note, onDone: idle, onError: idle}
";

const CLIENTS: usize = 16;

/// A server; it is killed at the end.
struct Server(Child);

impl Server {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Site {
    folder: Scratch,
    port: u16,
    key: String,
}

impl Site {
    fn serve(&self) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
        let listen = format!("127.0.0.1:{}", self.port);
        command
            .args(["serve", "--offer", "load", "--listen", &listen])
            .current_dir(&self.folder.0)
            .env_remove("CHARTER_DB");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http://"), "it does not start again");
        Server(child)
    }

    fn connect(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        Some(stream)
    }

    /// Sends a request; `None` if there is no whole answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, Json)> {
        let mut stream = self.connect()?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.key,
            body.len()
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
    }

    /// Repeats a request until it is answered.
    fn insist(&self, path: &str, body: &Json) -> (u16, Json) {
        let begin = Instant::now();
        loop {
            match self.ask("POST", path, &body.to_string()) {
                Some((503, _)) | None => std::thread::sleep(Duration::from_millis(10)),
                Some(answer) => return answer,
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no answer to {body}");
        }
    }

    /// Follows the journal through all kills, until it is `over` and no record comes for a while.
    fn follow(&self, over: &AtomicBool) -> Vec<(String, u64)> {
        let (mut seen, mut last) = (Vec::new(), String::from("0"));
        'connect: loop {
            let Some(mut stream) = self.connect() else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            let head = format!(
                "GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: {last}\r\n\r\n",
                self.port, self.key
            );
            if stream.write_all(head.as_bytes()).is_err() {
                continue;
            }
            let _ = stream.set_read_timeout(Some(Duration::from_millis(2_000)));
            let (mut id, mut lines) = (String::new(), BufReader::new(stream));
            loop {
                let mut line = String::new();
                match lines.read_line(&mut line) {
                    Ok(0) => continue 'connect,
                    Ok(_) => {}
                    Err(_) if over.load(Ordering::SeqCst) => return seen,
                    Err(_) => continue 'connect,
                }
                if let Some(text) = line.strip_prefix("id: ") {
                    id = text.trim().to_owned();
                } else if let Some(data) = line.strip_prefix("data: ")
                    && line.ends_with('\n')
                    && let Ok(data) = serde_json::from_str::<Json>(data)
                    && !id.is_empty()
                {
                    if let (Some(run), Some(seq)) = (data["run"].as_str(), data["seq"].as_u64()) {
                        seen.push((run.to_owned(), seq));
                    }
                    last = std::mem::take(&mut id);
                }
            }
        }
    }
}

/// A number below `n`, from a seed (SplitMix64).
fn below(seed: &mut u64, n: u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % n
}

fn site() -> Site {
    let folder = Scratch::new("serve-killed");
    std::fs::create_dir(folder.0.join("charters")).unwrap();
    folder.file("charters/load.yaml", SOURCE);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let db = folder.0.join("charter.db").display().to_string();
    let added = charter(&["key", "add", "ana", "--role", "load/worker", "--db", &db]);
    assert_eq!(added.code, 0, "{}", added.err);
    Site { folder, port, key: added.out.trim().to_owned() }
}

fn file(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_done_twice() {
    let kills = std::env::var("CHARTER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(u64::from(cases(1, 12)));
    let (site, mut seed) = (site(), 20_261_123);
    let (done, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut child = site.serve();
    for client in 0..CLIENTS {
        let (status, said) = site.insist("/v1/runs", &json!({"charter": "load", "run": format!("r{client}")}));
        assert!(matches!(status, 200 | 201), "{said}");
    }
    let (acknowledged, seen) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (site, done) = (&site, &done);
                scope.spawn(move || {
                    let mut acknowledged: BTreeMap<u64, u64> = BTreeMap::new();
                    for n in 1.. {
                        // On a busy machine a kill may come before the first answers.
                        if done.load(Ordering::SeqCst) && n > 2 {
                            break;
                        }
                        let body = json!({"type": "ADD", "id": format!("c{client}-{n}"), "data": {"n": n}});
                        let (status, record) = site.insist(&format!("/v1/runs/r{client}/events"), &body);
                        assert_eq!(status, 200, "{record}");
                        acknowledged.insert(n, record["seq"].as_u64().unwrap());
                    }
                    acknowledged
                })
            })
            .collect();
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| site.follow(&over))).collect();
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(100 + below(&mut seed, 500)));
            child.kill();
            child = site.serve();
        }
        std::thread::sleep(Duration::from_millis(200));
        done.store(true, Ordering::SeqCst);
        let acknowledged: Vec<_> = clients.into_iter().map(|c| c.join().unwrap()).collect();
        // Readers end after a while without a record, so the timers must stop.
        for client in 0..CLIENTS {
            let db = site.folder.0.join("charter.db").display().to_string();
            let run = format!("r{client}");
            charter(&["send", &run, "charter.cancel", "--as", "op", "--role", "operator", "--db", &db]);
        }
        over.store(true, Ordering::SeqCst);
        let seen: Vec<_> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        (acknowledged, seen)
    });
    let mut all: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut sent = 0;
    for (client, acknowledged) in acknowledged.iter().enumerate() {
        sent += acknowledged.len();
        let (mut records, mut after) = (Vec::new(), String::new());
        loop {
            let (_, page) = site.ask("GET", &format!("/v1/runs/r{client}/records?limit=1000{after}"), "").unwrap();
            records.extend(page["records"].as_array().unwrap().clone());
            match page["after"].as_u64() {
                Some(last) => after = format!("&after={last}"),
                None => break,
            }
        }
        let of = |record: &Json| (record["event"]["data"]["n"].as_u64().unwrap(), record["seq"].as_u64().unwrap());
        let added: Vec<(u64, u64)> = records.iter().filter(|r| r["event"]["type"] == "ADD").map(of).collect();
        assert_eq!(added, acknowledged.clone().into_iter().collect::<Vec<_>>(), "run r{client}");
        all.extend(records.iter().map(|r| (format!("r{client}"), r["seq"].as_u64().unwrap())));
    }
    for seen in seen {
        assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>().len(), seen.len(), "a record was read twice");
        let missed: Vec<_> = all.difference(&seen.into_iter().collect()).cloned().collect();
        assert!(missed.is_empty(), "a reader has missed {} records, such as {:?}", missed.len(), missed.first());
    }
    // No command was started twice.
    let notes = file(&site.folder.0, "charters/notes");
    let keys: Vec<&str> = notes.lines().collect();
    assert!(!keys.is_empty());
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "an actor did its work twice");
    child.kill();
    let db = site.folder.0.join("charter.db").display().to_string();
    let verified = charter(&["verify", &db]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    assert!(sent > CLIENTS, "only {sent} events were sent");
    eprintln!("{kills} kills, {sent} events acknowledged, {} records, {} commands", all.len(), keys.len());
}

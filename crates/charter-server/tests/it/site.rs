//! A server for tests, on a journal in memory or in a file, and its clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use charter_actors::Folder;
use charter_journal::{MemoryStore, Store};
use charter_kernel::PrincipalKind;
use charter_runtime::backend::Backend;
use charter_runtime::{Charter, Runtime};
use charter_server::identity::{NewKey, Office, Secret};
use charter_server::{Options, Server};
use serde_json::{Value as Json, json};

/// A payment that one person proposes and another approves.
pub(crate) const PAYMENT: &str = "
charter: 1
id: payment
roles: {clerk: {}, boss: {}}
context: {amount: 0, proposer: null}
events:
  PROPOSE:
    by: clerk
    data: {type: object, required: [amount], properties: {amount: {type: integer, minimum: 1}}}
  APPROVE: {by: boss, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
  NOTE: {data: {type: object}}
initial: draft
states:
  draft:
    on:
      PROPOSE: {target: review, actions: {assign: {amount: '= event.amount', proposer: '= by.id'}}}
  review:
    on:
      APPROVE: {target: paid, approves: {value: context.amount, not_by: context.proposer}}
      NOTE: {}
  paid: {type: final}
";

/// A server, and the threads that it runs on.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) host: Runtime,
    server: Option<Server>,
    threads: tokio::runtime::Runtime,
}

pub(crate) fn charter(source: &str) -> Charter {
    let document = charter_format::read(source, "charter", &Default::default()).unwrap();
    Charter::new(&document, Folder::None).unwrap()
}

impl Site {
    pub(crate) fn new() -> Site {
        Site::with(Arc::new(MemoryStore::new()), |_| {})
    }

    pub(crate) fn with(store: Arc<dyn Store>, change: impl FnOnce(&mut Options)) -> Site {
        Site::offering(&[PAYMENT], store, change)
    }

    /// A server with charters that it does not accept over HTTP.
    pub(crate) fn offering(charters: &[&str], store: Arc<dyn Store>, change: impl FnOnce(&mut Options)) -> Site {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut options = Options::local("127.0.0.1:0".parse().unwrap(), "uid:1000");
        options.private_hooks = true;
        change(&mut options);
        let charters = charters.iter().map(|source| charter(source)).collect();
        let (host, server) = threads.block_on(async {
            let mut of_host = charter_runtime::Options::default();
            if let Some(workspaces) = options.workspaces.clone() {
                of_host = of_host.executor("workspace", workspaces);
            }
            let (host, _) = Runtime::open(store, of_host).await.unwrap();
            let server = Server::start(Arc::new(host.clone()), charters, options).await.unwrap();
            (host, server)
        });
        Site { address: server.address(), host, server: Some(server), threads }
    }

    /// Why a server does not start.
    #[cfg(feature = "oidc")]
    pub(crate) fn refused(change: impl FnOnce(&mut Options)) -> String {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut options = Options::local("127.0.0.1:0".parse().unwrap(), "uid:1000");
        change(&mut options);
        threads.block_on(async {
            let (host, _) = Runtime::open(Arc::new(MemoryStore::new()), Default::default()).await.unwrap();
            Server::start(Arc::new(host), Vec::new(), options).await.unwrap_err().to_string()
        })
    }

    /// Adds a key at the command line, beside the server.
    pub(crate) fn key(&self, id: &str, kind: PrincipalKind, roles: &[&str]) -> Secret {
        let grants = roles.iter().map(|role| role.parse().unwrap()).collect();
        let key = NewKey { id: id.into(), kind, grants, expires: None, note: None };
        let backend: Arc<dyn Backend> = Arc::new(self.host.clone());
        self.threads.block_on(async {
            let office = Office::open(backend, "uid:1000").await.unwrap();
            office.add(key, Office::owner("uid:1000")).await.unwrap()
        })
    }

    pub(crate) fn person(&self, id: &str, roles: &[&str]) -> Client<'_> {
        Client { site: self, bearer: format!("Bearer {}", self.key(id, PrincipalKind::Person, roles).reveal()) }
    }

    pub(crate) fn agent(&self, id: &str, roles: &[&str]) -> Client<'_> {
        Client { site: self, bearer: format!("Bearer {}", self.key(id, PrincipalKind::Agent, roles).reveal()) }
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, None)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                text.push_str("Content-Type: application/json\r\n");
            }
            text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        } else {
            text.push_str("\r\n");
        }
        self.raw(text.as_bytes())
    }

    /// Sends bytes, and reads an answer until the connection is closed.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        Answer::read(&String::from_utf8_lossy(&all))
    }

    /// Opens a stream of server-sent events.
    pub(crate) fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        self.stream_of("GET", path, headers, "")
    }

    fn stream_of(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Events {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body);
        stream.write_all(text.as_bytes()).unwrap();
        let mut events = Events(BufReader::new(stream));
        let head = events.until_blank();
        assert!(head[0].contains(" 200 "), "{head:?}");
        events
    }

    /// Waits for something that happens on the threads of the server.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.threads.block_on(work)
    }

    /// Offers a charter from now on.
    pub(crate) fn put(&self, charter: Charter) {
        self.wait(self.server.as_ref().unwrap().put_charter(charter)).unwrap();
    }

    pub(crate) fn login_link(&self) -> String {
        self.server.as_ref().unwrap().login_link().unwrap()
    }

    pub(crate) fn close(mut self) {
        let server = self.server.take().unwrap();
        self.threads.block_on(server.close(Duration::from_secs(5)));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.threads.block_on(server.close(Duration::from_secs(2)));
        }
    }
}

/// Somebody with a key.
pub(crate) struct Client<'s> {
    site: &'s Site,
    pub(crate) bearer: String,
}

impl Client<'_> {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.site.get(path, &[("Authorization", &self.bearer)])
    }

    pub(crate) fn post(&self, path: &str, body: &Json) -> Answer {
        self.post_with(path, body, &[])
    }

    pub(crate) fn post_with(&self, path: &str, body: &Json, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![("Authorization", self.bearer.as_str())];
        all.extend(headers);
        self.site.ask("POST", path, &all, Some(&body.to_string()))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.site.ask("DELETE", path, &[("Authorization", &self.bearer)], None)
    }

    pub(crate) fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut all = vec![("Authorization", self.bearer.as_str())];
        all.extend(headers);
        self.site.stream(path, &all)
    }

    /// Opens a stream with a request that has a body.
    pub(crate) fn post_stream(&self, path: &str, body: &Json, headers: &[(&str, &str)]) -> Events {
        let mut all = vec![("Authorization", self.bearer.as_str())];
        all.extend(headers);
        self.site.stream_of("POST", path, &all, &body.to_string())
    }

    /// Starts a run of the charter.
    pub(crate) fn start(&self, charter: &str, run: &str) -> Answer {
        self.post("/v1/runs", &json!({"charter": charter, "run": run}))
    }
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    fn read(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            chunks(body)
        } else {
            body.to_owned()
        };
        Answer { status, head: head.to_owned(), body }
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        assert_eq!(json["status"], self.status);
        json["code"].as_str().unwrap().to_owned()
    }
}

fn chunks(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        out.push_str(rest.get(..size).unwrap_or(rest));
        body = rest.get(size + 2..).unwrap_or_default();
    }
    out
}

/// The memory that this process uses, in MB.
pub(crate) fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0").to_owned();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// A stream of server-sent events.
pub(crate) struct Events(BufReader<TcpStream>);

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sse {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: Json,
}

impl Events {
    fn until_blank(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap_or(0) == 0 {
                return lines;
            }
            let line = line.trim_end().to_owned();
            // The sizes of chunks stand between the lines.
            let is_size = !line.is_empty() && line.chars().all(|c| c.is_ascii_hexdigit()) && !line.contains(':');
            match (line.is_empty(), lines.is_empty()) {
                (true, true) => {}
                (true, false) => return lines,
                (false, _) if is_size => {}
                (false, _) => lines.push(line),
            }
        }
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Sse> {
        loop {
            let lines = self.until_blank();
            if lines.is_empty() {
                return None;
            }
            let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
            let Some(data) = field("data: ") else { continue };
            return Some(Sse {
                id: field("id: ").map(|id| id.parse().unwrap()),
                event: field("event: ").unwrap_or("message").to_owned(),
                data: serde_json::from_str(data).unwrap(),
            });
        }
    }

    /// The next record.
    pub(crate) fn record(&mut self) -> Option<Sse> {
        loop {
            match self.next() {
                Some(event) if event.event != "record" => {}
                other => return other,
            }
        }
    }
}

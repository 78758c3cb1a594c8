//! A host in memory with a run, and agents that work in it.

use std::sync::Arc;

use charter_actors::{Folder, SystemClock};
use charter_journal::{MemoryStore, Record};
use charter_kernel::{Auth, Principal, PrincipalKind};
use charter_mcp::{Connection, Endpoint, Message, Request, ToolSet, Version};
use charter_runtime::backend::Backend as _;
use charter_runtime::{Charter, Options, Runtime, SendEvent, Start};
use serde_json::{Value as Json, json};

/// A payment that an agent proposes and a person approves.
pub(crate) const PAYMENT: &str = "
charter: 1
id: payment
description: Payments that a person approves.
roles: {clerk: {}, boss: {}}
context: {amount: 0, proposer: null}
events:
  PROPOSE:
    by: clerk
    description: Proposes an amount.
    data: {type: object, required: [amount], properties: {amount: {type: integer, minimum: 1}}}
  APPROVE: {by: boss, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
  note.it: {data: {type: object}}
  TAG: {by: clerk, data: {type: string, maxLength: 5}}
initial: draft
states:
  draft:
    on:
      PROPOSE: {target: review, actions: {assign: {amount: '= event.amount', proposer: '= by.id'}}}
  review:
    on:
      APPROVE: {target: paid, approves: {value: context.amount, not_by: context.proposer}}
      note.it: {}
      TAG: {}
  paid: {type: final}
";

pub(crate) struct Place {
    pub(crate) host: Runtime,
}

impl Place {
    /// A host with a run `r` of the payment.
    pub(crate) async fn new() -> Place {
        Place::with(PAYMENT).await
    }

    pub(crate) async fn with(text: &str) -> Place {
        let (host, _) = Runtime::open(Arc::new(MemoryStore::new()), Options::default()).await.unwrap();
        let document = charter_format::read(text, "charter.yaml", &Default::default()).unwrap();
        let charter = host.add(Charter::new(&document, Folder::None).unwrap()).await.unwrap();
        let by = person("ana", &[]);
        let start = Start { charter: charter.digest(), run: Some("r".into()), input: json!({}), by };
        assert!(!host.start(start).await.unwrap().is_refused());
        Place { host }
    }

    pub(crate) async fn agent(&self, roles: &[&str]) -> Agent {
        self.agent_with("agent:a", roles, ToolSet::Both).await
    }

    pub(crate) async fn agent_with(&self, id: &str, roles: &[&str], tools: ToolSet) -> Agent {
        let by = Principal::new(id, roles).of_kind(PrincipalKind::Agent).authenticated(Auth::Key);
        Agent { endpoint: self.endpoint(by, tools).await, connection: Connection::default(), last: 0 }
    }

    pub(crate) async fn endpoint(&self, by: Principal, tools: ToolSet) -> Endpoint {
        Endpoint::open(Arc::new(self.host.clone()), Arc::new(SystemClock), "r", by, tools).await.unwrap()
    }

    pub(crate) async fn records(&self) -> Vec<Record> {
        self.host.records("r".into(), 0, 1_000).await.unwrap()
    }

    /// A person sends an event.
    pub(crate) async fn person_sends(&self, kind: &str, data: Json) {
        let done = self.host.send(SendEvent::new("r", kind, data, person("boss", &["boss", "clerk"]))).await.unwrap();
        assert!(!done.is_refused(), "{:?}", done.explanation(None));
    }
}

pub(crate) fn person(id: &str, roles: &[&str]) -> Principal {
    Principal::new(id, roles).of_kind(PrincipalKind::Person).authenticated(Auth::Key)
}

/// A client with a connection.
pub(crate) struct Agent {
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Connection,
    last: u64,
}

impl Agent {
    /// Begins a session.
    pub(crate) async fn hello(&mut self, version: Version) -> Json {
        let hello =
            json!({"protocolVersion": version.text(), "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.ask("initialize", hello).await["result"].clone()
    }

    /// Sends a request; returns the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        let text = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).to_string();
        let answers = self.connection.receive(&self.endpoint, text.as_bytes()).await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        let answer: Json = serde_json::from_str(&answers[0]).unwrap();
        assert!(answer["id"] == self.last || answer.get("method").is_some(), "{answer}");
        answer
    }

    /// A request without a session.
    pub(crate) async fn ask_alone(&mut self, method: &str, params: Json) -> Json {
        self.ask(method, alone(params)).await
    }

    /// Calls a tool of a session that was begun; returns its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Json) -> Json {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    pub(crate) async fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let list = answer["result"]["tools"].as_array().unwrap();
        list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn news(&mut self) -> Vec<Json> {
        let news = self.connection.news(&self.endpoint).await.unwrap();
        news.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }
}

/// Parameters of a request of 2026-07-28.
pub(crate) fn alone(mut params: Json) -> Json {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

pub(crate) fn request(text: &Json) -> Request {
    match charter_mcp::read(text.to_string().as_bytes()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

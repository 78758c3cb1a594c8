//! What one agent sees of one run: the methods of the protocol.

use std::str::FromStr;
use std::sync::Arc;

use charter_actors::Clock;
use charter_kernel::{Machine, Principal, PrincipalKind};
use charter_runtime::backend::Backend;
use charter_runtime::{Charter, RuntimeError};
use serde_json::{Map, Value as Json, json};

use crate::message::{META_SERVER, Request, RpcError};
use crate::tools::ToolNames;
use crate::version::Version;
use crate::{prompts, resources, tools};

/// The tools that an agent gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolSet {
    /// `send`, `legal`, `status` and `why_not`, which are always there.
    Static,
    /// One tool for each event that is legal now.
    Events,
    /// Both.
    #[default]
    Both,
}

impl FromStr for ToolSet {
    type Err = String;

    fn from_str(word: &str) -> Result<ToolSet, String> {
        match word {
            "static" => Ok(ToolSet::Static),
            "events" => Ok(ToolSet::Events),
            "both" => Ok(ToolSet::Both),
            other => Err(format!("unknown set of tools `{}`: use static, events or both", other.escape_debug())),
        }
    }
}

impl ToolSet {
    pub(crate) fn has_static(self) -> bool {
        self != ToolSet::Events
    }

    pub(crate) fn has_events(self) -> bool {
        self != ToolSet::Static
    }
}

/// What one agent sees of one run.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) charter: Arc<Charter>,
    pub(crate) run: String,
    pub(crate) by: Principal,
    pub(crate) tools: ToolSet,
    pub(crate) names: ToolNames,
}

impl Endpoint {
    /// An endpoint for a run of `charter`, for the agent `by`. What arrives through MCP was decided
    /// by a model, so a principal that is a person counts as an agent here.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        clock: Arc<dyn Clock>,
        charter: Arc<Charter>,
        run: &str,
        by: Principal,
        tools: ToolSet,
    ) -> Endpoint {
        let names = ToolNames::new(charter.machine().definition());
        let by = if by.kind() == PrincipalKind::Person { by.of_kind(PrincipalKind::Agent) } else { by };
        Endpoint { backend, clock, charter, run: run.to_owned(), by, tools, names }
    }

    /// The same for a run whose charter is looked up.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    pub async fn open(
        backend: Arc<dyn Backend>,
        clock: Arc<dyn Clock>,
        run: &str,
        by: Principal,
        tools: ToolSet,
    ) -> Result<Endpoint, RuntimeError> {
        let info = backend.run(run.to_owned()).await?.ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
        let charter = backend.charter(info.charter).await?;
        Ok(Endpoint::new(backend, clock, charter, run, by, tools))
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    pub(crate) fn machine(&self) -> &Machine {
        self.charter.machine()
    }

    /// The result of `initialize`.
    pub(crate) fn initialized(&self, version: Version) -> Json {
        json!({
            "protocolVersion": version.text(),
            "capabilities": self.capabilities(),
            "serverInfo": server_info(),
            "instructions": prompts::instructions(self),
        })
    }

    fn capabilities(&self) -> Json {
        json!({
            "tools": {"listChanged": self.tools.has_events()},
            "resources": {"subscribe": true, "listChanged": false},
            "prompts": {"listChanged": false},
        })
    }

    /// Answers a request that every connection can have.
    ///
    /// # Errors
    /// The method is unknown, its parameters are wrong, or the host failed.
    pub async fn answer(&self, version: Version, request: &Request) -> Result<Json, RpcError> {
        let params = &request.params;
        // How long the answer may be kept, in milliseconds; `None` if it may not be kept.
        let (result, keep) = match request.method.as_str() {
            "ping" if !version.is_stateless() => (Map::new(), None),
            "server/discover" if version.is_stateless() => (self.discovered(), Some(0)),
            "tools/list" => (tools::list(self, params).await?, Some(0)),
            "tools/call" => (tools::call(self, params).await?, None),
            "resources/list" => (resources::list(self), Some(60_000)),
            "resources/templates/list" => (resources::templates(self), Some(60_000)),
            "resources/read" => (resources::read(self, params, version).await?, Some(0)),
            "prompts/list" => (prompts::list(), Some(60_000)),
            "prompts/get" => (prompts::get(self, params).await?, None),
            other => return Err(RpcError::method(other)),
        };
        Ok(completed(version, result, keep))
    }

    fn discovered(&self) -> Map<String, Json> {
        object(json!({
            "supportedVersions": Version::texts(),
            "capabilities": self.capabilities(),
            "instructions": prompts::instructions(self),
        }))
    }
}

/// The name of this program.
fn server_info() -> Json {
    json!({"name": "charter", "title": "Charter", "version": env!("CARGO_PKG_VERSION")})
}

/// A result with what its generation adds to each.
pub(crate) fn completed(version: Version, mut result: Map<String, Json>, keep_ms: Option<u64>) -> Json {
    if version.is_stateless() {
        result.insert("resultType".to_owned(), "complete".into());
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(META_SERVER.to_owned(), server_info());
        }
        if let Some(keep_ms) = keep_ms {
            result.insert("ttlMs".to_owned(), keep_ms.into());
            result.insert("cacheScope".to_owned(), "private".into());
        }
    }
    Json::Object(result)
}

/// The members of an object.
pub(crate) fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(members) => members,
        _ => Map::new(),
    }
}

/// An error of the host that prevents an answer.
pub(crate) fn failed(error: &RuntimeError) -> RpcError {
    RpcError::new(RpcError::INTERNAL, error.to_string())
}

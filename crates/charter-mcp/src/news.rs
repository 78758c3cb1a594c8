//! News of a run: what has changed since a client was told last.

use std::collections::BTreeSet;

use charter_runtime::RuntimeError;
use serde_json::{Map, Value as Json, json};

use crate::endpoint::{Endpoint, completed, object};
use crate::look::Look;
use crate::message::{META_SUBSCRIPTION, Request, RpcError, notification, result};
use crate::version::Version;

/// Resources of a subscription.
pub(crate) const MAX_RESOURCES: usize = 16;

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Other events are legal.
    pub(crate) tools: bool,
    /// The run has changed; a record of a refused event changes nothing.
    pub(crate) run: bool,
}

/// What a client knows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    seq: u64,
    tools: Vec<String>,
}

impl Known {
    pub(crate) fn new(look: &Look) -> Known {
        Known { seq: look.snapshot().seq(), tools: look.event_tools() }
    }

    /// What has changed since; from now on, that is known.
    pub(crate) fn changes(&mut self, look: &Look) -> Changes {
        let now = Known::new(look);
        let changes = Changes { tools: now.tools != self.tools, run: now.seq != self.seq };
        *self = now;
        changes
    }
}

/// Writes the notifications of a connection with a session.
#[derive(Debug, Clone, Default)]
pub struct Notifier {
    known: Option<Known>,
    resources: BTreeSet<String>,
}

impl Notifier {
    /// Takes note of what the client can know, if it is new.
    pub(crate) fn begin(&mut self, look: &Look) {
        self.known.get_or_insert_with(|| Known::new(look));
    }

    pub(crate) fn subscribe(&mut self, uri: &str) -> Result<(), RpcError> {
        if self.resources.len() >= MAX_RESOURCES && !self.resources.contains(uri) {
            return Err(RpcError::params(format!("at most {MAX_RESOURCES} resources can be subscribed to")));
        }
        self.resources.insert(uri.to_owned());
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        self.resources.remove(uri);
    }

    /// The notifications that are due.
    pub(crate) fn notifications(&mut self, look: &Look) -> Vec<String> {
        let Some(known) = &mut self.known else { return Vec::new() };
        let changes = known.changes(look);
        let mut all = Vec::new();
        if changes.tools {
            all.push(notification("notifications/tools/list_changed", Map::new()));
        }
        if changes.run {
            all.extend(self.resources.iter().map(|uri| updated(uri, None)));
        }
        all
    }
}

fn updated(uri: &str, subscription: Option<&Json>) -> String {
    let mut params = object(json!({"uri": uri}));
    if let Some(id) = subscription {
        params.insert("_meta".to_owned(), json!({META_SUBSCRIPTION: id}));
    }
    notification("notifications/resources/updated", params)
}

/// A subscription of a client without a session: the request `subscriptions/listen`.
#[derive(Debug, Clone)]
pub struct Listen {
    id: Json,
    tools: bool,
    resources: BTreeSet<String>,
    known: Known,
}

impl Listen {
    /// Reads the request.
    ///
    /// # Errors
    /// Its filter cannot be read or names too many resources, or the host failed.
    pub async fn new(endpoint: &Endpoint, request: &Request) -> Result<Listen, RpcError> {
        let Some(Json::Object(filter)) = request.params.get("notifications") else {
            return Err(RpcError::params("`params.notifications` must say what to tell of"));
        };
        let wants = |name: &str| match filter.get(name) {
            None => Ok(false),
            Some(Json::Bool(wanted)) => Ok(*wanted),
            Some(_) => Err(RpcError::params(format!("`{name}` must be true or false"))),
        };
        let tools = wants("toolsListChanged")? && endpoint.tools.has_events();
        // These never change here, so they are not promised.
        for never in ["promptsListChanged", "resourcesListChanged"] {
            wants(never)?;
        }
        let mut resources = BTreeSet::new();
        match filter.get("resourceSubscriptions") {
            None => {}
            Some(Json::Array(uris)) if uris.len() <= MAX_RESOURCES => {
                for uri in uris {
                    let uri = uri.as_str().ok_or_else(|| RpcError::params("the address of a resource is text"))?;
                    if endpoint.is_live(uri) {
                        resources.insert(uri.to_owned());
                    }
                }
            }
            Some(_) => {
                let what = format!("`resourceSubscriptions` must be a list of at most {MAX_RESOURCES} addresses");
                return Err(RpcError::params(what));
            }
        }
        let look = endpoint.look().await.map_err(|e| crate::endpoint::failed(&e))?;
        Ok(Listen { id: request.id.clone(), tools, resources, known: Known::new(&look) })
    }

    /// The id of the request.
    #[must_use]
    pub fn id(&self) -> &Json {
        &self.id
    }

    /// The first message: what will be told.
    #[must_use]
    pub fn acknowledged(&self) -> String {
        let mut told = Map::new();
        if self.tools {
            told.insert("toolsListChanged".to_owned(), true.into());
        }
        if !self.resources.is_empty() {
            told.insert("resourceSubscriptions".to_owned(), json!(self.resources));
        }
        let params = object(json!({"notifications": told, "_meta": {META_SUBSCRIPTION: self.id}}));
        notification("notifications/subscriptions/acknowledged", params)
    }

    /// The notifications that are due now.
    ///
    /// # Errors
    /// The run cannot be read.
    pub async fn news(&mut self, endpoint: &Endpoint) -> Result<Vec<String>, RuntimeError> {
        Ok(self.notifications(&endpoint.look().await?))
    }

    pub(crate) fn notifications(&mut self, look: &Look) -> Vec<String> {
        let changes = self.known.changes(look);
        let mut all = Vec::new();
        if changes.tools && self.tools {
            let params = object(json!({"_meta": {META_SUBSCRIPTION: self.id}}));
            all.push(notification("notifications/tools/list_changed", params));
        }
        if changes.run {
            all.extend(self.resources.iter().map(|uri| updated(uri, Some(&self.id))));
        }
        all
    }

    /// The last message: the answer to the request.
    #[must_use]
    pub fn ended(&self) -> String {
        let meta = object(json!({"_meta": {META_SUBSCRIPTION: self.id}}));
        result(&self.id, &completed(Version::V2026, meta, None))
    }
}

//! The setup of a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use charter_actors::{SystemClock, Workspaces};
use charter_guard::gate::Here;

use crate::query::SharedFile;

/// A source of time.
#[derive(Clone)]
pub struct Clock(pub Arc<dyn charter_actors::Clock>);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// The setup of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens. Port 0: any free port.
    pub listen: SocketAddr,
    /// The address under which clients reach it, if it is another one: behind a proxy.
    pub public_url: Option<String>,
    /// Further origins whose pages may use the API, such as `https://tools.example`.
    pub origins: Vec<String>,
    /// Whether administrators may add webhooks over HTTP whose addresses are not public. Without
    /// it, only the owner can, on the machine.
    pub private_hooks: bool,
    /// The provider whose tokens name people; needs the feature `oidc`.
    pub oidc: Option<OidcOptions>,
    /// The user of the machine who owns the run `host`.
    pub owner: String,
    /// The source of time.
    pub clock: Clock,
    /// Limits.
    pub limits: Limits,
    /// The version of the program.
    pub version: String,
    /// The page of a code (a refusal, an error), as Markdown.
    pub code_page: fn(&str) -> Option<&'static str>,
    /// Where the contents of files lie that runs with workspaces name, if they can be read.
    pub workspaces: Option<Workspaces>,
    /// The file of the journal, if administrators may query it.
    pub journal: Option<SharedFile>,
    /// What the machine is like, for calls of agents: their paths are resolved on it.
    pub here: Here,
}

impl Options {
    /// The setup of a server that listens at `listen`, with the clock of the machine, without
    /// pages of codes and contents of workspaces. `owner` is the user of the machine, such as
    /// `uid:1000`.
    #[must_use]
    pub fn local(listen: SocketAddr, owner: &str) -> Options {
        Options {
            listen,
            public_url: None,
            origins: Vec::new(),
            private_hooks: false,
            oidc: None,
            owner: owner.to_owned(),
            clock: Clock(Arc::new(SystemClock)),
            limits: Limits::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            code_page: |_| None,
            workspaces: None,
            journal: None,
            here: Here::default(),
        }
    }
}

/// An `OpenID` provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcOptions {
    /// Its address, exactly as it stands in its tokens (`iss`).
    pub issuer: String,
    /// For whom tokens have to be (`aud`): the id that the server has as a client of the provider.
    pub client: String,
    /// The claim that is the id of the principal; `None`: `sub`.
    pub id_claim: Option<String>,
    /// The claim with roles; `None`: tokens give no roles.
    pub roles_claim: Option<String>,
}

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time; further ones wait to be accepted.
    pub connections: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Time for the head of a request to arrive, and an idle connection to be used again.
    pub head_time: Duration,
    /// Time for the body of a request to arrive.
    pub body_time: Duration,
    /// Time in which a client takes something of what is sent to it; then the connection is closed.
    pub write_time: Duration,
    /// Live streams at the same time.
    pub streams: usize,
    /// Live streams of one principal at the same time.
    pub streams_of_one: usize,
    /// Failed attempts to authenticate per second, of all clients; further ones are refused unseen.
    pub failures_per_second: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 4_096,
            body_bytes: 8 << 20,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            streams: 2_048,
            streams_of_one: 1_024,
            failures_per_second: 100,
        }
    }
}

//! The endpoint: what a Restate server calls.

use std::future::Future;
use std::sync::Arc;

use restate_sdk::prelude::{Endpoint as Services, HttpServer};
use tokio::net::TcpListener;

use crate::actor::Actors;
use crate::actor_host::ActorHost;
use crate::charters::Charters;
use crate::client::Engine;
use crate::object::Runs;
use crate::shelf::Shelf;

/// What an endpoint needs.
#[derive(Debug)]
pub struct Endpoint {
    /// Its charters.
    pub charters: Arc<Charters>,
    /// The server that calls it, for events of actors.
    pub engine: Engine,
}

/// Serves runs to a Restate server until `end`.
pub async fn serve(endpoint: Endpoint, listener: TcpListener, end: impl Future) {
    let Endpoint { charters, engine } = endpoint;
    let host = Arc::new(ActorHost::new(engine, charters.clone()));
    let services = Services::builder()
        .bind(Runs { charters: charters.clone() })
        .bind(Actors::new(charters, host))
        .bind(Shelf)
        .build();
    HttpServer::new(services).serve_with_cancel(listener, end).await;
}

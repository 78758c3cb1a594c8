//! A session with a server: one call, its progress, and its end, also if nobody waits for it any
//! more (MCP specification, "Progress" and "Cancellation").

use std::time::Duration;

use charter_actors::{Call, Shown};
use charter_process::Tree;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError};
use tokio::runtime::Handle;

use super::post::Post;

/// How long the cancellation of a call may take.
const CANCEL: Duration = Duration::from_secs(2);

/// Shows the progress of a call. It offers a server nothing: no sampling, no elicitation, no roots.
pub(super) struct Follower {
    call: Call,
    shown: Shown,
}

impl Follower {
    pub(super) fn new(call: &Call) -> Follower {
        Follower { call: call.clone(), shown: Shown::default() }
    }
}

impl ClientHandler for Follower {
    fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        let total = params.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = params.message.map(|message| format!(": {message}")).unwrap_or_default();
        let text = format!("{}{total}{message}", params.progress);
        self.shown.replace(&self.call, &text, &Handle::current());
        std::future::ready(())
    }
}

/// A session with a server. If it is dropped, the server is told that an open call is not wanted
/// any more, and a program is killed with everything it started.
pub(super) struct Connection {
    pub(super) server: RunningService<RoleClient, Follower>,
    /// How requests are sent, if the server has a URL.
    pub(super) post: Option<Post>,
    /// The processes of the server, if it is a program.
    pub(super) tree: Option<Tree>,
}

impl Connection {
    /// Calls a tool and ends the session; `None`: the tool asks for input.
    pub(super) async fn call(self, params: CallToolRequestParams) -> Result<Option<CallToolResult>, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.server.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let result = match sent {
            Ok(handle) => {
                let mut open = OpenCall(Some((self, handle)));
                let result = open.answer().await;
                if let Some((connection, _)) = open.0.take() {
                    connection.end().await;
                }
                result
            }
            Err(error) => {
                self.end().await;
                Err(error)
            }
        };
        match result? {
            ServerResult::CallToolResult(result) => Ok(Some(result)),
            _ => Ok(None),
        }
    }

    /// Asks the server to end, then kills what is left of it.
    async fn end(self) {
        drop(self.server.cancel().await);
        let tree = self.tree;
        // If the host is shutting down, dropping the tree kills it.
        let _ = tokio::task::spawn_blocking(move || drop(tree)).await;
    }
}

/// A call that is cancelled if it is dropped before its answer.
struct OpenCall(Option<(Connection, RequestHandle<RoleClient>)>);

impl OpenCall {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.0 {
            Some((_, handle)) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let (Some((connection, handle)), Ok(threads)) = (self.0.take(), Handle::try_current()) else { return };
        threads.spawn(async move {
            let why = "the run no longer waits for the answer".to_owned();
            let _ = tokio::time::timeout(CANCEL, handle.cancel(Some(why))).await;
            connection.end().await;
        });
    }
}

//! The API: routes, and what every request goes through.

mod agents;
mod app;
mod body;
mod caller;
mod charters;
mod contents;
mod events;
mod expired;
mod hooks;
mod inbox;
mod journal;
mod keys;
mod marks;
mod mcp;
mod meta;
mod named;
mod page;
mod problem;
mod records;
mod runs;
mod session;
mod stream;
mod tasks;
mod tools;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};

pub(crate) use app::{App, Peer};
use caller::one;
pub(crate) use charters::is_known_to;
pub use charters::reaches_machine;
pub(crate) use mcp::AgentSessions;
use problem::Problem;

/// The routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page::home))
        .route("/page/{*path}", get(page::one_file))
        .route("/healthz", get(meta::health))
        .route("/readyz", get(meta::ready))
        .route("/metrics", get(meta::metrics))
        .route("/openapi.json", get(meta::openapi))
        .route("/codes/{code}", get(meta::code))
        .route("/v1/me", get(session::me))
        .route("/v1/session", post(session::open).delete(session::close))
        .route("/v1/keys", get(keys::list).post(keys::add))
        .route("/v1/keys/{key}", delete(keys::revoke))
        .route("/v1/hooks", get(hooks::list).post(hooks::add))
        .route("/v1/hooks/{hook}", delete(hooks::remove))
        .route("/v1/hooks/{hook}/dead", get(hooks::dead))
        .route("/v1/hooks/{hook}/retry", post(hooks::retry))
        .route("/v1/charters", get(charters::list).post(charters::add))
        .route("/v1/charters/{id}", get(charters::one))
        .route("/v1/charters/{id}/graph.svg", get(charters::graph))
        .route("/v1/runs", get(runs::list).post(runs::start))
        .route("/v1/runs/{run}", get(runs::one))
        .route("/v1/runs/{run}/events", post(events::send))
        .route("/v1/runs/{run}/answers", post(tasks::answer))
        .route("/v1/runs/{run}/legal", get(events::legal))
        .route("/v1/runs/{run}/records", get(records::list))
        .route("/v1/runs/{run}/stream", get(stream::of_run))
        .route("/v1/runs/{run}/at/{seq}", get(records::at))
        .route("/v1/runs/{run}/explain/{seq}", get(records::explain))
        .route("/v1/runs/{run}/graph.svg", get(runs::graph))
        .route("/v1/runs/{run}/blobs/{digest}", get(contents::one))
        .route("/v1/runs/{run}/hook/{client}", post(agents::hook))
        .route("/v1/runs/{run}/fork", post(runs::fork))
        .route("/v1/stream", get(stream::of_journal))
        .route("/v1/journal", get(journal::one))
        .route("/v1/sql", post(journal::select))
        .route("/v1/inbox", get(inbox::list).post(marks::mark))
        .route("/v1/tasks", get(tasks::list))
        .route("/v1/check", post(tools::check))
        .route("/v1/step", post(tools::step))
        .merge(mcp::routes())
        .fallback(|| async {
            Problem::new(
                StatusCode::NOT_FOUND,
                "no-such-page",
                "there is nothing at this address; `/openapi.json` lists what there is",
            )
        })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "this address does not accept this method; `/openapi.json` lists what it accepts",
            )
        })
        .layer(from_fn_with_state(app.clone(), guarded))
        .with_state(app)
}

/// Checks the site of every request, measures it, and sets the headers of its answer.
async fn guarded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let origin = one(request.headers(), header::ORIGIN.as_str()).ok().flatten().map(str::to_owned);
    let preflight = request.method() == Method::OPTIONS;
    let mut response = match of_this_site(&app, &request) {
        Err(problem) => problem.into_response(),
        Ok(()) if preflight => StatusCode::NO_CONTENT.into_response(),
        Ok(()) => next.run(request).await,
    };
    let mut set = |name: HeaderName, value: &'static str| {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CACHE_CONTROL, "no-store");
    set(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    // Pages of other origins that the operator has named.
    if let Some(origin) = origin.filter(|origin| app.sites.is_origin(origin))
        && let Ok(origin) = HeaderValue::from_str(&origin)
    {
        set(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE");
        set(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-CSRF-Token, \
             Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name",
        );
        set(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "ETag, Link, Retry-After, Charter-Repeated, Mcp-Session-Id, WWW-Authenticate",
        );
        response.headers_mut().append(header::VARY, HeaderValue::from_static("Origin"));
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    app.metrics.request(response.status().as_u16(), began.elapsed());
    response
}

/// Refuses requests that name another host, and those of pages of other sites.
fn of_this_site(app: &App, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let host = one(headers, header::HOST.as_str())?.unwrap_or_default();
    if !app.sites.is_host(host) {
        let other = format!(
            "this server is not `{}`; behind a proxy, name its address with `--public-url`",
            host.escape_debug()
        );
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "other-host", other));
    }
    if let Some(authority) = request.uri().authority()
        && !app.sites.is_host(authority.as_str())
    {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "other-host",
            "the address of the request is not this server",
        ));
    }
    match one(headers, header::ORIGIN.as_str())? {
        Some(origin) if !app.sites.is_origin(origin) => Err(Problem::forbidden(
            "pages of this origin may not use this server; `charter serve --origin ORIGIN` allows one",
        )),
        Some(_) => Ok(()),
        None if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site")
            && !request.method().is_safe() =>
        {
            Err(Problem::forbidden("pages of other sites may not change anything here"))
        }
        None => Ok(()),
    }
}

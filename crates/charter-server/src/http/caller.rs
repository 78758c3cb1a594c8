//! Who sends a request: a key, a session that was opened with one, or, on a server without keys, a
//! claimed name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use charter_kernel::{Auth, PrincipalKind};

use super::app::{App, Peer};
use super::problem::Problem;
use crate::identity::{Caller, Grant, NotKnown, Subject};
use crate::peer::is_own_user;

/// The cookie of a session.
pub(crate) const COOKIE: &str = "charter_session";
/// The header of the token that requests of a session repeat.
const CSRF: &str = "x-csrf-token";
/// Headers of a server without keys.
const AS: &str = "charter-as";
const ROLE: &str = "charter-role";
const KIND: &str = "charter-kind";
/// Maximum length of a claimed name.
const MAX_NAME: usize = 200;

/// Returns the value of a header, if it is there once and is text.
pub(crate) fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Problem::request(format!("the header `{name}` is not text")))?;
            Ok(Some(text))
        }
        _ => Err(Problem::request(format!("the header `{name}` is there more than once"))),
    }
}

/// The value of the session's cookie.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

impl App {
    /// The answer to somebody who could not be authenticated: the problem, unless there are too
    /// many such attempts.
    pub(crate) fn denied(&self, problem: Problem) -> Problem {
        self.metrics.failures.fetch_add(1, Ordering::Relaxed);
        match self.too_many_failures() {
            true => Problem {
                retry_after: Some(1),
                ..Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "too-many",
                    "too many requests could not be authenticated; try again in a second",
                )
            },
            false => problem,
        }
    }

    /// Finds out who sends a request.
    pub(crate) async fn authenticate(
        &self,
        method: &Method,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<Caller, Problem> {
        let now = self.now();
        let mut directory = self.office.directory();
        if !directory.has_keys() {
            // The first key ends the time of claimed names at once.
            let _ = self.office.refresh().await;
            directory = self.office.directory();
        }
        let denied = |problem: Problem| self.denied(problem);
        if let Some(value) = one(headers, header::AUTHORIZATION.as_str())? {
            let secret = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let Some((_, secret)) = secret else {
                return Err(denied(Problem::unauthenticated("send the key as `Authorization: Bearer chk_...`")));
            };
            let mut found = directory.authenticate(secret.trim(), now);
            if found == Err(NotKnown::Unknown) && !self.has_too_many_failures() {
                // A key that was added at the command line is read a moment later.
                let _ = self.office.refresh().await;
                directory = self.office.directory();
                found = directory.authenticate(secret.trim(), now);
            }
            return found.map_err(|e| denied(Problem::unauthenticated(e.to_string())));
        }
        if let Some(value) = cookie(headers) {
            let session = self.sessions.find(value, now).ok_or_else(|| {
                denied(Problem::unauthenticated("the session has ended; log in again with `POST /v1/session`"))
            })?;
            if !method.is_safe() && one(headers, CSRF)? != Some(session.csrf.as_str()) {
                return Err(Problem::forbidden(
                    "the header `X-CSRF-Token` is missing or wrong; it must have the token of the session",
                ));
            }
            return match session.subject {
                Subject::Known(caller) => Ok(caller),
                Subject::Key(key) => directory
                    .caller(&key, Auth::Session, now)
                    .map_err(|e| denied(Problem::unauthenticated(e.to_string()))),
            };
        }
        if directory.has_keys() || self.options.oidc.is_some() {
            return Err(denied(Problem::unauthenticated("send a key as `Authorization: Bearer chk_...`")));
        }
        match peer.is_some_and(|Peer(peer)| is_own_user(peer, self.address)) {
            true => claimed(headers),
            false => Err(denied(Problem::unauthenticated(
                "without keys, this server is for processes of its own user; `charter key add` adds a key",
            ))),
        }
    }
}

#[cfg(feature = "oidc")]
impl App {
    /// Who a token of the provider names; `None` if there is no provider, or no token.
    async fn with_token(&self, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        let Some(provider) = &self.oidc else { return Ok(None) };
        let bearer = one(headers, header::AUTHORIZATION.as_str())?.and_then(|value| value.split_once(' '));
        let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let Some(token) = token.filter(|token| crate::oidc::is_token(token)) else { return Ok(None) };
        let directory = self.office.directory();
        match provider.caller(token, &directory, self.now()).await {
            Ok(caller) => Ok(Some(caller)),
            Err(e @ crate::oidc::Refused::Token(_)) => Err(self.denied(Problem::unauthenticated(e.to_string()))),
            Err(e @ crate::oidc::Refused::Provider(_)) => Err(self.denied(Problem {
                retry_after: Some(60),
                ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", e.to_string())
            })),
        }
    }
}

/// A claimed name, on a server without keys.
fn claimed(headers: &HeaderMap) -> Result<Caller, Problem> {
    let Some(id) = one(headers, AS)? else {
        return Err(Problem::unauthenticated(
            "this server has no keys: say who you are with `Charter-As: NAME`, or add a key with `charter key add`",
        )
        .with("claim", true));
    };
    let kind = match one(headers, KIND)? {
        Some(word) => word.parse().map_err(|e| Problem::request(format!("`Charter-Kind`: {e}")))?,
        None => PrincipalKind::Person,
    };
    let names: Option<Vec<&str>> = one(headers, ROLE)?.map(|roles| roles.split(',').map(str::trim).collect());
    let is_name = |name: &str| {
        !name.is_empty() && name.len() <= MAX_NAME && !name.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    for name in names.iter().flatten().chain([&id]) {
        if !is_name(name) {
            return Err(Problem::request(format!("`{}` cannot be a name", name.escape_debug())));
        }
        charter_kernel::check_name(name).map_err(|e| Problem::request(e.to_string()))?;
    }
    let grant = |role: &&str| Grant { role: (*role).to_owned(), charter: None, run: None };
    let grants = names.map(|roles| roles.iter().map(grant).collect());
    Ok(Caller { id: id.to_owned(), kind, auth: Auth::None, grants, key: None, token: None })
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Caller, Problem> {
        #[cfg(feature = "oidc")]
        if let Some(caller) = app.with_token(&parts.headers).await? {
            return Ok(caller);
        }
        let peer = parts.extensions.get::<Peer>().copied();
        let caller = app.authenticate(&parts.method, &parts.headers, peer).await?;
        if let Some(key) = &caller.key {
            app.used.note(key, app.now());
        }
        Ok(caller)
    }
}

/// The owner, or a caller with the role `admin`; not an agent, whatever roles it has.
pub(crate) struct Admin(pub(crate) Caller);

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Admin, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        match caller.administers() {
            true => Ok(Admin(caller)),
            false => Err(Problem::forbidden("this needs the key of a person or a service with the role `admin`")),
        }
    }
}

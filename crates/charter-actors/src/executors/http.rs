//! Kind `http`: posts the input as JSON; the response is JSON, within limits. Redirects are not
//! followed.

use std::sync::Arc;
use std::time::Duration;

use charter_expr::strict_json;
use charter_kernel::Millis;
use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;
use ureq::http::Uri;

use super::exec::max_output;
use crate::call::Call;
use crate::client::{ClientOptions, client_in, http_client, is_refused_certificate, unreachable_through};
use crate::clock::BoxFuture;
use crate::error::ConfigError;
use crate::executor::{Executor, Fault, FindSecret, Outcome};
use crate::folder::Folder;
use crate::network::{Network, is_this_machine};
use crate::retry_after::retry_after;
use crate::secret::{Secret, Secrets};

/// Kind `http`. Configuration: `url`, `headers` (a string, or `{secret: NAME}`), `maxOutput`
/// (bytes).
///
/// The id of the effect is sent as `Idempotency-Key`. `https` URLs may have any host; `http` URLs
/// only this machine, unless the host allows more.
#[derive(Clone)]
pub struct Http {
    /// Whether `http`, which is not encrypted, may be used for other machines.
    pub plain_anywhere: bool,
    /// Looks up the secrets that headers name.
    pub secret: FindSecret,
    agent: ureq::Agent,
}

impl Default for Http {
    fn default() -> Http {
        Http { plain_anywhere: false, secret: Arc::new(|_| None), agent: http_client(ClientOptions::default()) }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Http(plain_anywhere: {})", self.plain_anywhere)
    }
}

impl Executor for Http {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), ConfigError> {
        super::check_keys(actor, &["url", "headers", "maxOutput"])?;
        self.url(actor)?;
        self.headers(actor)?;
        max_output(actor).map(drop)
    }

    fn secrets_of(&self, actor: &ActorDecl) -> Secrets {
        let headers = actor.config.get("headers").and_then(Json::as_object);
        let named = |value| Secret::named(value, &self.secret, "headers", "header").ok().flatten();
        let secrets: Vec<Secret> = headers.into_iter().flatten().filter_map(|(_, value)| named(value)).collect();
        secrets.iter().collect()
    }

    fn attempt_timeout(&self) -> Option<Millis> {
        Some(super::ATTEMPT)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let request = self.request(&call);
        let agent = self.agent.clone();
        Box::pin(async move {
            let request = request?;
            // If the run no longer waits, the thread still finishes the request, and its answer is
            // dropped.
            super::blocking(move || request.post(&agent)).await
        })
    }
}

/// A request. The thread that sends it holds no reference to the host.
struct Request {
    url: String,
    headers: Vec<(String, String)>,
    body: String,
    max_output: u64,
    timeout: Duration,
    /// Removed from a response before it is shortened.
    secrets: Arc<Secrets>,
}

impl Http {
    /// Sets the function that looks up the secrets that headers name.
    #[must_use]
    pub fn secrets(self, secret: FindSecret) -> Http {
        Http { secret, ..self }
    }

    /// Sets the proxy and the roots, and whether plain `http` may leave this machine.
    #[must_use]
    pub fn network(self, network: &Network) -> Http {
        let agent = client_in(network, ClientOptions::default());
        Http { agent, plain_anywhere: network.plain_anywhere, ..self }
    }

    fn url(&self, actor: &ActorDecl) -> Result<String, ConfigError> {
        let expected = "a URL that begins with `https://`";
        let value = actor.config.get("url").ok_or_else(|| ConfigError::missing("url", expected))?;
        let invalid = || ConfigError::invalid("url", expected, value);
        let text = value.as_str().ok_or_else(invalid)?;
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let host = uri.host().unwrap_or_default();
        let local = is_this_machine(host);
        let refused = |why: &str| Err(ConfigError::Other(format!("`url`: `{text}`: {why}")));
        match uri.scheme_str() {
            Some("https") if cfg!(feature = "tls") => Ok(text.to_owned()),
            Some("https") => refused("this program was built without `https`"),
            Some("http") if local || self.plain_anywhere => Ok(text.to_owned()),
            Some("http") => refused("`http` is not encrypted and is allowed only to this machine; use `https`"),
            Some(_) => refused("the scheme must be `https`, or `http` to this machine"),
            None => Err(invalid()),
        }
    }

    fn headers(&self, actor: &ActorDecl) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(headers) = actor.config.get("headers") else {
            return Ok(Vec::new());
        };
        let invalid =
            || ConfigError::invalid("headers", "an object with a string or `{secret: NAME}` for each header", headers);
        let pair = |(name, value): (&String, &Json)| {
            let secret = Secret::named(value, &self.secret, "headers", &format!("header `{name}`"))?;
            let value = match (value, &secret) {
                (_, Some(secret)) => secret.expose(),
                (Json::String(value), None) => value,
                _ => return Err(invalid()),
            };
            // The error message must not contain a secret.
            let valid = ureq::http::HeaderName::try_from(name.as_str()).is_ok()
                && ureq::http::HeaderValue::try_from(value).is_ok();
            match valid {
                true => Ok((name.clone(), value.to_owned())),
                false => Err(ConfigError::Other(format!(
                    "`headers`: the header `{name}` has a name or value that HTTP does not allow"
                ))),
            }
        };
        headers.as_object().ok_or_else(invalid)?.iter().map(pair).collect()
    }

    fn request(&self, call: &Call) -> Result<Request, Fault> {
        let mut headers = self.headers(call.actor())?;
        headers.push(("idempotency-key".into(), call.effect.to_string()));
        headers.push(("charter-run".into(), call.run.to_string()));
        Ok(Request {
            url: self.url(call.actor())?,
            headers,
            body: call.input.to_string(),
            max_output: max_output(call.actor())?,
            timeout: call.left().max(Duration::from_millis(1)),
            secrets: call.secrets.clone(),
        })
    }
}

impl Request {
    fn post(&self, agent: &ureq::Agent) -> Result<Outcome, Fault> {
        let limit = self.max_output;
        let mut request =
            agent.post(&self.url).header("content-type", "application/json").header("accept", "application/json");
        request = request.header("accept-encoding", "identity");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(self.timeout)).build();
        let response = request.send(&self.body);
        let mut response = response.map_err(|e| failure(agent, &self.url, &e))?;
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let wait = retry_after(header("retry-after").as_deref(), header("date").as_deref());
        if let Some(encoding) = header("content-encoding").filter(|e| !e.eq_ignore_ascii_case("identity")) {
            let message = format!(
                "the response is compressed (`content-encoding: {}`), although the request asked for an uncompressed one",
                self.secrets.redact(&encoding)
            );
            return Err(Fault::new("malformed", message).retryable().with("status", status.as_u16()));
        }
        let body = response.body_mut().with_config().limit(limit).read_to_vec().map_err(|e| match e {
            ureq::Error::BodyExceedsLimit(_) => {
                Fault::new("too-large", format!("the response has more than {limit} bytes (`maxOutput`)"))
            }
            e => failure(agent, &self.url, &e),
        })?;
        if !status.is_success() {
            let shown: String =
                self.secrets.redact_document(&String::from_utf8_lossy(&body)).chars().take(500).collect();
            let fault = Fault::new("failed", format!("the server responded with {status}"))
                .with("status", status.as_u16())
                .with("body", shown);
            let temporary = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
            let fault = match wait {
                Some(wait) => fault.with("retryAfterMs", u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
                None => fault,
            };
            return Err(if temporary { fault.retryable() } else { fault });
        }
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Outcome::Done(Json::Null));
        }
        strict_json::from_slice(&body).map(Outcome::Done).map_err(|e| {
            // The message quotes a part of the response, which must not have a secret.
            let text = String::from_utf8_lossy(&body);
            let e = strict_json::from_str(&self.secrets.redact(&text)).err().unwrap_or(e);
            Fault::new("malformed", format!("the response is not valid JSON: {e}")).retryable()
        })
    }
}

fn failure(agent: &ureq::Agent, url: &str, e: &ureq::Error) -> Fault {
    match e {
        ureq::Error::Timeout(_) => Fault::new("timeout", "the server did not respond in time").retryable(),
        e => {
            let fault = Fault::new("start", format!("cannot reach {}", unreachable_through(agent, url, e)));
            if is_refused_certificate(e) { fault } else { fault.retryable() }
        }
    }
}

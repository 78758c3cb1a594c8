//! Kind `http`: the input is posted as JSON, the answer is JSON, within limits; redirects are not followed.

use std::time::Duration;

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;
use ureq::http::Uri;

use crate::call::{Call, Executor, Fault, Outcome};
use crate::charter::Folder;
use crate::clock::BoxFuture;
use crate::options::FindSecret;
use crate::runtime::blocking;

/// Bytes of an answer, unless the actor says less: 1 MiB.
const MOST: u64 = 1 << 20;

/// Kind `http`. Configuration: `url`, `headers` (a text, or `{secret: NAME}`), `maxOutput` (bytes).
///
/// The effect's id goes along as `Idempotency-Key`. `https` may go anywhere, `http` only to this machine, unless the host says
/// otherwise.
#[derive(Clone)]
pub struct Http {
    /// Whether `http` (not encrypted) may leave this machine.
    pub plain_anywhere: bool,
    /// Who knows the secrets that headers name.
    pub secret: FindSecret,
    agent: ureq::Agent,
}

impl Default for Http {
    fn default() -> Http {
        let config = ureq::Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None)
            .user_agent(concat!("charter/", env!("CARGO_PKG_VERSION")))
            .build();
        Http { plain_anywhere: false, secret: std::sync::Arc::new(|_| None), agent: config.into() }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Http(plain_anywhere: {})", self.plain_anywhere)
    }
}

impl Executor for Http {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), String> {
        super::known(&actor.config, &["url", "headers", "maxOutput"])?;
        self.url(actor)?;
        self.headers(actor)?;
        most(actor).map(drop)
    }

    fn attempt_timeout(&self) -> Option<i64> {
        Some(super::ATTEMPT)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let request = self.request(&call);
        let agent = self.agent.clone();
        Box::pin(async move {
            let request = request?;
            // The thread goes on for a while if nobody waits any more; its answer is dropped then.
            let result = blocking(move || request.post(&agent)).await;
            result.unwrap_or_else(|_| Err(Fault::new("failed", "the call was broken off").retryable()))
        })
    }
}

/// What is sent, taken from the call before: the thread that sends it holds nothing of the host.
struct Request {
    url: String,
    headers: Vec<(String, String)>,
    body: String,
    most: u64,
    limit: Duration,
}

impl Http {
    /// With somebody who knows the secrets that headers name.
    #[must_use]
    pub fn secrets(self, secret: FindSecret) -> Http {
        Http { secret, ..self }
    }

    fn url(&self, actor: &ActorDecl) -> Result<String, String> {
        let text = match actor.config.get("url") {
            Some(Json::String(url)) => url,
            Some(other) => return Err(format!("`url` is a text, not `{other}`")),
            None => return Err("`url` is missing".into()),
        };
        let uri: Uri = text.parse().map_err(|e| format!("`url` is no URL: `{text}` ({e})"))?;
        let host = uri.host().unwrap_or_default();
        let here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        match uri.scheme_str() {
            Some("https") if cfg!(feature = "tls") => Ok(text.clone()),
            Some("https") => Err(format!("`{text}`: this program was built without `https`")),
            Some("http") if here || self.plain_anywhere => Ok(text.clone()),
            Some("http") => {
                Err(format!("`{text}`: `http` is not encrypted and may only go to this machine; use `https`"))
            }
            Some(other) => {
                Err(format!("`{text}`: the scheme `{other}` is not allowed; `https` is, and `http` to this machine"))
            }
            None => Err(format!("`url` is no whole URL: `{text}`; it begins with `https://`")),
        }
    }

    fn headers(&self, actor: &ActorDecl) -> Result<Vec<(String, String)>, String> {
        let Some(headers) = actor.config.get("headers") else {
            return Ok(Vec::new());
        };
        let wrong = || format!("`headers` gives a text or `{{secret: NAME}}` for each header, not `{headers}`");
        let pair = |(name, value): (&String, &Json)| {
            let value = match value {
                Json::String(value) => value.clone(),
                Json::Object(map) => {
                    let secret =
                        map.get("secret").and_then(Json::as_str).filter(|_| map.len() == 1).ok_or_else(wrong)?;
                    (self.secret)(secret)
                        .ok_or_else(|| format!("this host has no secret `{secret}` (header `{name}`)"))?
                }
                _ => return Err(wrong()),
            };
            // What is wrong with a secret must not show it.
            let fine = ureq::http::HeaderName::try_from(name.as_str()).is_ok()
                && ureq::http::HeaderValue::try_from(&value).is_ok();
            if fine {
                Ok((name.clone(), value))
            } else {
                Err(format!("the header `{name}` has a name or value that HTTP does not allow"))
            }
        };
        headers.as_object().ok_or_else(wrong)?.iter().map(pair).collect()
    }

    fn request(&self, call: &Call) -> Result<Request, Fault> {
        let config = |why: String| Fault::new("config", &why);
        let mut headers = self.headers(call.actor()).map_err(config)?;
        headers.push(("idempotency-key".into(), call.effect.to_string()));
        headers.push(("charter-run".into(), call.run.to_string()));
        Ok(Request {
            url: self.url(call.actor()).map_err(config)?,
            headers,
            body: call.input.to_string(),
            most: most(call.actor()).map_err(config)?,
            limit: Duration::from_millis(call.left().max(1)),
        })
    }
}

impl Request {
    fn post(&self, agent: &ureq::Agent) -> Result<Outcome, Fault> {
        let most = self.most;
        let mut request =
            agent.post(&self.url).header("content-type", "application/json").header("accept", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(self.limit)).build();
        let response = request.send(&self.body);
        let mut response = response.map_err(|e| failure(&e))?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(most).read_to_vec().map_err(|e| match e {
            ureq::Error::BodyExceedsLimit(_) => {
                Fault::new("too-large", &format!("the answer has more than {most} bytes (`maxOutput`)"))
            }
            e => failure(&e),
        })?;
        if !status.is_success() {
            let shown: String = String::from_utf8_lossy(&body).chars().take(500).collect();
            let fault = Fault::new("failed", &format!("the server answered {status}"))
                .with("status", status.as_u16())
                .with("body", shown);
            let passes = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
            return Err(if passes { fault.retryable() } else { fault });
        }
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Outcome::Done(Json::Null));
        }
        let value = serde_json::from_slice(&body);
        value
            .map(Outcome::Done)
            .map_err(|e| Fault::new("malformed", &format!("the server answered no JSON: {e}")).retryable())
    }
}

fn most(actor: &ActorDecl) -> Result<u64, String> {
    match actor.config.get("maxOutput") {
        None => Ok(MOST),
        Some(n) => n.as_u64().ok_or_else(|| format!("`maxOutput` is a number of bytes, not `{n}`")),
    }
}

fn failure(e: &ureq::Error) -> Fault {
    match e {
        ureq::Error::Timeout(_) => Fault::new("timeout", "the server has not answered in time").retryable(),
        e => Fault::new("start", &format!("the server cannot be reached: {e}")).retryable(),
    }
}

//! One attempt: a request, and what its answer means.

use std::time::Duration;

use charter_actors::{ClientOptions, NOT_PUBLIC, http_client, unreachable_server};
use charter_kernel::{Millis, Timestamp};
use tokio::sync::oneshot;

use super::schedule::retry_after;
use super::sign::HookSecret;

/// Time limits of an attempt: to connect, and until the head of the answer is there.
const CONNECT_TIME: Duration = Duration::from_secs(5);
const ATTEMPT_TIME: Duration = Duration::from_secs(15);

/// The clients of all hooks.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    public: ureq::Agent,
    any: ureq::Agent,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The receiver has it.
    Delivered,
    /// The receiver wants nothing any more (410).
    Gone,
    /// It failed.
    Failed {
        /// Why, without anything that the receiver has written.
        why: String,
        /// How long the receiver asks to wait.
        wait: Option<Millis>,
        /// Whether the receiver answered for this message: the next one may be accepted.
        answered: bool,
    },
}

/// What is sent, and where.
pub(super) struct Post {
    pub(super) url: String,
    pub(super) private: bool,
    pub(super) secret: HookSecret,
    pub(super) id: String,
    pub(super) body: String,
    pub(super) now: Timestamp,
}

impl Sender {
    pub(crate) fn new() -> Sender {
        let client = |public_only: bool| {
            http_client(ClientOptions { connect: Some(CONNECT_TIME), request: Some(ATTEMPT_TIME), public_only })
        };
        Sender { public: client(true), any: client(false) }
    }

    /// Sends a message. The body of the answer is not read. The thread that sends ends by itself:
    /// neither a hook that is removed nor the end of the server waits for a receiver.
    pub(super) async fn send(&self, post: Post) -> Attempt {
        let agent = if post.private { self.any.clone() } else { self.public.clone() };
        let failed = |why: &str| Attempt::Failed { why: why.to_owned(), wait: None, answered: false };
        let (answer, answered) = oneshot::channel();
        let send = move || drop(answer.send(attempt(&agent, &post)));
        if std::thread::Builder::new().name("webhook".into()).spawn(send).is_err() {
            return failed("this machine has no thread for it");
        }
        answered.await.unwrap_or_else(|_| failed("the attempt was interrupted"))
    }
}

fn attempt(agent: &ureq::Agent, post: &Post) -> Attempt {
    let failed = |why: String, wait, answered| Attempt::Failed { why, wait, answered };
    let seconds = post.now.0.div_euclid(1_000);
    let Some(signature) = post.secret.signature(&post.id, seconds, &post.body) else {
        return failed("the secret of the hook cannot be used".to_owned(), None, false);
    };
    let request = agent
        .post(&post.url)
        .header("content-type", "application/cloudevents+json")
        .header("webhook-id", &post.id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", signature);
    match request.send(&post.body) {
        Err(ureq::Error::Timeout(_)) => failed("no answer in time".to_owned(), None, false),
        Err(ureq::Error::Io(e)) if e.to_string() == NOT_PUBLIC => {
            failed(format!("{NOT_PUBLIC}: such a hook needs `--allow-private`"), None, false)
        }
        Err(e) => failed(unreachable_server(&post.url, &e), None, false),
        Ok(response) => match response.status().as_u16() {
            200..=299 => Attempt::Delivered,
            410 => Attempt::Gone,
            status => {
                let asked = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
                let wait = asked.and_then(|text| retry_after(text, post.now));
                failed(format!("the receiver answered {status}"), wait, !matches!(status, 429 | 503))
            }
        },
    }
}

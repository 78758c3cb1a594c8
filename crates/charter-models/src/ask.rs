//! A question, from the prompt to a checked answer: retries on a busy server, one repair of an answer that does not fit, budgets.
//!
//! Synchronous, because everything it does is waiting; the caller gives it a thread, and stops it through [`Watcher::go_on`].

use std::time::{Duration, Instant};

use charter_kernel::Schema;
use serde_json::Value as Json;

use crate::answer::{self, MAX_BYTES};
use crate::codes;
use crate::exchange::{Exchange, Usage};
use crate::model::Model;
use crate::prompt::Prompt;
use crate::retry_after;
use crate::schema::wanted;
use crate::trace;
use crate::transport::{Request, Response, Transport, TransportError};
use crate::wire::{self, Conversation, End};
use charter_actors::Fault;

/// Pause before the second attempt, unless the server names one; doubled each time.
const PAUSE: Duration = Duration::from_millis(1_000);
/// How often a pause looks whether anybody still waits.
const SLICE: Duration = Duration::from_millis(50);
/// An answer of fewer tokens is not worth asking for.
const LEAST_TOKENS: u64 = 16;

/// What a question may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Tokens read and written, over all requests for it.
    pub tokens: u64,
    /// Time, with all retries and the repair.
    pub time: Duration,
}

/// Sees how a question goes, and may stop it.
pub trait Watcher {
    /// The run that asks, for whoever watches the host.
    fn run(&self) -> &str {
        ""
    }
    /// Whether somebody still waits for the answer.
    fn go_on(&self) -> bool {
        true
    }
    /// So many bytes of the answer have come.
    fn received(&self, bytes: usize) {
        let _ = bytes;
    }
    /// Something happens that costs time: a retry, a repair.
    fn note(&self, sentence: &str) {
        let _ = sentence;
    }
}

/// Nobody watches.
impl Watcher for () {}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Whom to ask.
    pub model: &'a Model,
    /// What.
    pub prompt: &'a Prompt,
    /// JSON Schema of the answer; none: any JSON.
    pub schema: Option<&'a Json>,
    /// What it may cost.
    pub budget: Budget,
}

/// Asks; gives the answer that fits the schema, or why there is none, and all that was said.
pub fn ask(
    question: &Question<'_>,
    transport: &dyn Transport,
    watcher: &dyn Watcher,
) -> (Result<Json, Fault>, Exchange) {
    let mut asking = Asking {
        question,
        transport,
        watcher,
        begun: Instant::now(),
        exchange: Exchange {
            model: question.model.title(),
            base_url: question.model.base_url.clone(),
            prompt: question.prompt.digest().hex(),
            ..Exchange::default()
        },
    };
    let span = trace::chat(question.model, watcher.run());
    let answer = span.in_scope(|| asking.run());
    trace::answered(&span, &answer, &asking.exchange);
    (answer, asking.exchange)
}

struct Asking<'a> {
    question: &'a Question<'a>,
    transport: &'a dyn Transport,
    watcher: &'a dyn Watcher,
    begun: Instant,
    exchange: Exchange,
}

impl Asking<'_> {
    fn run(&mut self) -> Result<Json, Fault> {
        let any = Json::Object(serde_json::Map::new());
        let wanted = wanted(self.question.schema.unwrap_or(&any));
        let schema = match self.question.schema.map(Schema::compile).transpose() {
            Ok(schema) => schema,
            Err(why) => {
                return Err(Fault::new(codes::CONFIG, format!("the schema of the answer is none: {why}")));
            }
        };
        let mut turns = vec![self.question.prompt.user.clone()];
        let mut first: Option<Vec<String>> = None;
        loop {
            let text = self.reply(&turns, &wanted.schema)?;
            let problems = match answer::read(&text, wanted.wrapped, schema.as_ref()) {
                Ok(answer) => return Ok(answer),
                Err(problems) => problems,
            };
            if let Some(first) = first {
                let message = format!(
                    "the answer does not fit its schema, and neither did the first one: {}",
                    problems.join("; ")
                );
                let list = |problems: Vec<String>| Json::Array(problems.into_iter().map(Json::from).collect());
                return Err(Fault::new(codes::INVALID_ANSWER, message)
                    .retryable()
                    .with("problems", list(problems))
                    .with("problemsOfFirst", list(first)));
            }
            self.watcher.note("the answer does not fit its schema; asking again with what is wrong");
            turns.push(text);
            turns.push(answer::repair(&problems));
            first = Some(problems);
        }
    }

    /// The text of a whole answer to these turns.
    fn reply(&mut self, turns: &[String], schema: &Json) -> Result<String, Fault> {
        let (system, model) = (&self.question.prompt.system, self.question.model);
        let asked = turns.iter().map(String::len).fold(system.len(), usize::saturating_add);
        let asked = estimate(asked.saturating_add(schema.to_string().len()));
        let left = self.question.budget.tokens.saturating_sub(self.exchange.usage.total());
        let room = left.saturating_sub(asked);
        if room < LEAST_TOKENS {
            return Err(Fault::new(
                codes::BUDGET,
                format!(
                    "the tokens are used up: {} of {} are left, and the question alone takes about {asked}",
                    left, self.question.budget.tokens
                ),
            )
            .with("tokens", self.exchange.usage.total()));
        }
        let most_tokens = model.most_tokens.min(u32::try_from(room).unwrap_or(u32::MAX));
        let talk = Conversation { system, turns, schema, most_tokens };
        let request = wire::request(model, &talk);
        let response = self.send(&request)?;
        let reply = wire::reply(model.provider, &response)?;
        if reply.model.is_some() {
            self.exchange.answered_as = reply.model;
        }
        self.exchange.usage.add(reply.usage.unwrap_or(Usage {
            input: asked,
            output: estimate(reply.text.len()),
            estimated: true,
        }));
        match reply.end {
            End::Whole => {}
            End::CutOff => {
                return Err(Fault::new(
                    codes::CUT_OFF,
                    format!("the answer is longer than the {most_tokens} tokens it may have"),
                ));
            }
            End::Declined(why) => {
                return Err(Fault::new(codes::DECLINED, format!("the model does not answer: {why}")));
            }
            End::Broken => {
                return Err(Fault::new(codes::UNAVAILABLE, "the stream of the answer broke off").retryable());
            }
        }
        if reply.text.len() > MAX_BYTES {
            return Err(Fault::new(
                codes::TOO_LARGE,
                format!("the answer has {} bytes; the most is {MAX_BYTES}", reply.text.len()),
            ));
        }
        Ok(reply.text)
    }

    /// A successful response, after as many attempts as there is time for.
    fn send(&mut self, request: &Request) -> Result<Response, Fault> {
        let mut pause = PAUSE;
        let mut attempt = 1u32;
        loop {
            let left = self.time_left()?;
            let watcher = self.watcher;
            let mut received = 0usize;
            let sent = self.transport.send(request, left, &mut |line| {
                received = received.saturating_add(line.len());
                watcher.received(received);
                watcher.go_on()
            });
            let (fault, wait) = match sent {
                Ok(response) => {
                    self.keep(request, Some(response.status), &response.body);
                    if (200..300).contains(&response.status) {
                        return Ok(response);
                    }
                    let fault = wire::refusal(self.question.model, &response);
                    (fault, retry_after::parse(response.retry_after.as_deref(), response.date.as_deref()))
                }
                Err(error) => {
                    self.keep(request, None, &error.to_string());
                    (fault_of(&error), None)
                }
            };
            if !fault.retryable || attempt >= self.question.model.attempts {
                return Err(fault.with("attempts", attempt));
            }
            let wait = wait.unwrap_or(pause);
            if wait >= self.time_left()? {
                return Err(fault
                    .with("attempts", attempt)
                    .with("retryAfterMs", u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
            }
            self.watcher.note(&format!("{}; trying again in {} s", fault.message, wait.as_secs_f32()));
            self.pause(wait)?;
            pause = pause.saturating_mul(2);
            attempt = attempt.saturating_add(1);
        }
    }

    fn keep(&mut self, request: &Request, status: Option<u16>, response: &str) {
        // Servers quote keys in their errors; nothing that is kept holds one.
        let response = match &self.question.model.key {
            Some(key) => key.redact(response),
            None => response.to_owned(),
        };
        self.exchange.said(&request.body, status, &response);
    }

    fn time_left(&self) -> Result<Duration, Fault> {
        let left = self.question.budget.time.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            let seconds = self.question.budget.time.as_secs_f32();
            return Err(Fault::new(codes::BUDGET, format!("the time is used up: {seconds} s")).retryable());
        }
        Ok(left)
    }

    fn pause(&self, wait: Duration) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            if !self.watcher.go_on() {
                return Err(fault_of(&TransportError::Cancelled));
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}

fn fault_of(error: &TransportError) -> Fault {
    let message = error.to_string();
    match error {
        TransportError::Unreachable(_) => Fault::new(codes::UNAVAILABLE, message).retryable(),
        TransportError::Timeout(_) => Fault::new(codes::BUDGET, message).retryable(),
        TransportError::TooLarge(_) => Fault::new(codes::TOO_LARGE, message),
        TransportError::Cancelled => Fault::new(codes::CANCELLED, message),
        TransportError::NotRecorded(_) => Fault::new(codes::CASSETTE, message),
    }
}

/// Tokens of a text, roughly.
fn estimate(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

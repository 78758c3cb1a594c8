//! Asks a question: from the prompt to a validated answer, with retries when the server is busy,
//! one repair of an answer that does not match its schema, and budgets.
//!
//! The functions are synchronous: the caller provides a thread, and stops it through
//! [`Watcher::go_on`].

mod faults;
mod rounds;
mod waits;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_actors::{Fault, Secrets, retry_after};
use charter_kernel::Schema;
use serde_json::Value as Json;

use self::faults::{Failed, broken_off, fault_of, is_rejected};
use self::waits::Limit;
pub(crate) use self::waits::{SECONDS, Share};
use crate::answer::{self, MAX_BYTES};
use crate::codes;
use crate::exchange::{Exchange, Usage};
use crate::kept_round::Earlier;
use crate::model::Model;
use crate::open::OpenRequest;
use crate::pause;
use crate::prompt::Prompt;
use crate::redact::redact;
use crate::schema::wire_schema;
use crate::settings::{OutputMode, Settings};
use crate::tools::Tool;
use crate::trace;
use crate::transport::{Request, Transport, TransportError};
use crate::watcher::Watcher;
pub(crate) use crate::wire::tokens as estimate;
use crate::wire::{self, Conversation, Dialect, End, MAX_USAGE, Received, Reply, Turn};

/// How often a pause checks whether the answer is still wanted.
pub(crate) const POLL: Duration = Duration::from_millis(50);
/// Minimum number of tokens left for an answer; with fewer, no request is sent.
pub(crate) const MIN_TOKENS: u64 = 16;
/// Detail of a fault: every output mode was refused.
pub(crate) const REFUSED_MODES: &str = "refusedModes";

/// Limits of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Tokens read and written, across all requests.
    pub tokens: u64,
    /// Time, including retries and repair.
    pub time: Duration,
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The model.
    pub model: &'a Model,
    /// The prompt.
    pub prompt: &'a Prompt,
    /// JSON Schema of the answer; `None`: any JSON.
    pub schema: Option<&'a Json>,
    /// How the actor wants to be answered.
    pub settings: &'a Settings,
    /// Limits.
    pub budget: Budget,
    /// Tools that the model may call.
    pub tools: &'a [Tool],
    /// How many times it may call some before it must answer.
    pub rounds: u32,
}

/// Asks a question. Returns the answer, which matches the schema, or why there is none, together
/// with the exchange.
pub fn ask(
    question: &Question<'_>,
    transport: &dyn Transport,
    watcher: &dyn Watcher,
) -> (Result<Json, Fault>, Exchange) {
    let time = question.budget.time;
    ask_after(&Earlier::default(), Share { time, all: time, raise: "`budget.seconds`" }, question, transport, watcher)
}

/// Asks a question that has had rounds of tools before, within a part of its time.
pub(crate) fn ask_after(
    earlier: &Earlier,
    share: Share,
    question: &Question<'_>,
    transport: &dyn Transport,
    watcher: &dyn Watcher,
) -> (Result<Json, Fault>, Exchange) {
    let mut asking = Asking {
        earlier,
        share,
        acted: Duration::ZERO,
        told: false,
        dialect: Dialect::default(),
        question,
        transport,
        watcher,
        begun: Instant::now(),
        mode: OutputMode::first(question.settings.mode, question.model.provider, !question.tools.is_empty()),
        secrets: question.model.secrets(),
        exchange: Exchange {
            model: question.model.title(),
            base_url: question.model.base_url.clone(),
            prompt: question.prompt.digest().hex(),
            ..Exchange::default()
        },
    };
    let span = trace::chat(question.model, watcher.run());
    let answer = span.in_scope(|| asking.run());
    let secrets = &asking.secrets;
    let answer = answer.map(|value| secrets.redact_json(value)).map_err(|fault| secrets.redact_fault(fault));
    trace::answered(&span, &answer, &asking.exchange);
    let mut exchange = asking.exchange;
    exchange.millis = u64::try_from(asking.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    exchange.fault = answer.as_ref().err().map(|fault| fault.code.clone());
    exchange.cost = question.model.price.map(|price| price.cost(exchange.spent));
    let written = watcher.keep(question.model, &mut exchange, true);
    (written.and(answer), exchange)
}

struct Asking<'a> {
    earlier: &'a Earlier,
    share: Share,
    /// How long tools took.
    acted: Duration,
    /// Whether it was told that `effort` is not sent.
    told: bool,
    dialect: Dialect,
    question: &'a Question<'a>,
    transport: &'a dyn Transport,
    watcher: &'a dyn Watcher,
    begun: Instant,
    mode: OutputMode,
    secrets: Secrets,
    exchange: Exchange,
}

impl Asking<'_> {
    fn run(&mut self) -> Result<Json, Fault> {
        let any = Json::Object(serde_json::Map::new());
        let wire = wire_schema(self.question.schema.unwrap_or(&any));
        let schema = match self.question.schema.map(Schema::compile).transpose() {
            Ok(schema) => schema,
            Err(why) => {
                return Err(Fault::new(codes::CONFIG, format!("invalid schema of the answer: {why}")));
            }
        };
        if let Some(wanted) = self.question.settings.mode.filter(|wanted| *wanted != self.mode) {
            let (wanted, mode, title) = (wanted.word(), self.mode.word(), self.question.model.title());
            self.watcher.note(&format!(
                "`{title}` is asked with `outputMode: {mode}`, because it does not take `{wanted}` here"
            ));
        }
        let mut turns = vec![Turn::Task(self.question.prompt.user.clone(), self.question.prompt.attachments.clone())];
        let mut attached = self.question.prompt.attachments.iter();
        if let Some(why) = attached.find_map(|one| wire::refuses(self.question.model.provider, one)) {
            return Err(Fault::new(codes::REQUEST, why));
        }
        let mut first: Option<Vec<String>> = None;
        let mut round = self.go_on_after(&mut turns)?;
        let mut before = self.earlier.rounds.last().and_then(|(digest, _)| *digest);
        loop {
            let reply = self.reply(&turns, &wire.schema, round >= self.question.rounds)?;
            if !reply.calls.is_empty() {
                self.write_down()?;
                let results = self.round(round, &reply, &mut before)?;
                turns.extend([Turn::Calls(reply.message), Turn::Results(results)]);
                round = round.saturating_add(1);
                continue;
            }
            let text = reply.text;
            let problems = match answer::read(&text, wire.wrapped, schema.as_ref()) {
                Ok(answer) => return Ok(answer),
                Err(problems) => problems,
            };
            if let Some(first) = first {
                let message = format!("neither the answer nor its repair matches the schema: {}", problems.join("; "));
                let list = |problems: Vec<String>| Json::Array(problems.into_iter().map(Json::from).collect());
                return Err(Fault::new(codes::INVALID_ANSWER, message)
                    .retryable()
                    .with("problems", list(problems))
                    .with("problemsOfFirst", list(first)));
            }
            self.watcher.note("the answer does not match its schema; asking again with the problems");
            turns.extend([Turn::Model(text), Turn::User(answer::repair(&problems))]);
            first = Some(problems);
        }
    }

    /// Returns a complete reply to these turns. Asks repeatedly, if the server is busy or its
    /// response is broken, within the limits of attempts, tokens and time.
    fn reply(&mut self, turns: &[Turn], schema: &Json, last: bool) -> Result<Reply, Fault> {
        let mut next = self.question.model.first_pause;
        let mut attempt = 1u32;
        loop {
            let failed = match self.attempt(turns, schema, last) {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let fault = failed.fault;
            let other = self.dialect.next(self.question.model, &fault.message).filter(|_| is_rejected(&fault));
            if let Some((dialect, refused)) = other {
                self.watcher.note(&format!("the server does not take `{refused}`; asking again without it"));
                self.dialect = dialect;
                continue;
            }
            if let Some(mode) = self.other_mode(&fault) {
                let refused = self.mode.word();
                self.watcher.note(&format!("the server refuses the output mode `{refused}`; trying `{}`", mode.word()));
                self.mode = mode;
                continue;
            }
            if !fault.retryable || fault.code == codes::BUDGET {
                let fault = if self.refuses_every_mode(&fault) { fault.with(REFUSED_MODES, true) } else { fault };
                return Err(fault.with("attempts", attempt));
            }
            let wait = failed.wait.map_or_else(|| pause::shorter(next), pause::longer);
            // What the server requests decides, so that the outcome does not depend on chance.
            if attempt >= self.question.model.max_attempts || failed.wait.unwrap_or(wait) >= self.time_left()? {
                let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let fault = fault.with("attempts", attempt);
                return Err(failed.wait.iter().fold(fault, |fault, wait| fault.with("retryAfterMs", millis(*wait))));
            }
            let why = self.secrets.redact(&fault.message);
            self.watcher.note(&format!("{why}; trying again in {:.1} s", wait.as_secs_f32()));
            self.pause(wait)?;
            next = next.saturating_mul(2);
            attempt = attempt.saturating_add(1);
        }
    }

    /// The mode to try next, if the server has refused the present one.
    fn other_mode(&self, fault: &Fault) -> Option<OutputMode> {
        let blamed = is_rejected(fault) && self.mode.is_blamed(&fault.message);
        self.mode.next(self.question.model.provider).filter(|_| blamed)
    }

    /// Whether the server has refused one mode after another, and the last one for their sake, too:
    /// not the prompt, the model or the address.
    fn refuses_every_mode(&self, fault: &Fault) -> bool {
        let tools = !self.question.tools.is_empty();
        let first = OutputMode::first(self.question.settings.mode, self.question.model.provider, tools);
        self.mode != first && is_rejected(fault) && OutputMode::ALL.iter().any(|mode| mode.is_blamed(&fault.message))
    }

    /// Has what was taken so far written down, so that it counts even if the process ends.
    fn write_down(&mut self) -> Result<(), Fault> {
        self.exchange.millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.watcher.keep(self.question.model, &mut self.exchange, false)
    }

    /// Sends one request.
    fn attempt(&mut self, turns: &[Turn], schema: &Json, last: bool) -> Result<Reply, Failed> {
        self.write_down()?;
        let (model, system) = (self.question.model, &self.question.prompt.system);
        let tools = self.question.tools;
        let sizes = turns.iter().map(Turn::size).chain(tools.iter().map(Tool::size));
        let size = sizes.fold(system.len(), usize::saturating_add);
        let attached = turns.iter().map(Turn::attached).fold(0, u64::saturating_add);
        let question = estimate(size.saturating_add(schema.to_string().len())).saturating_add(attached);
        let limit = self.limit(question)?;
        if let Some(why) = self.question.settings.lacks_thoughts(model, limit.tokens)
            && !std::mem::replace(&mut self.told, true)
        {
            self.watcher.note(&format!("asking without `effort`: {why}"));
        }
        let stated = self.mode.in_prompt().then(|| format!("{system}\n\nThe JSON Schema of your answer:\n{schema}"));
        let system = stated.as_deref().unwrap_or(system);
        let (settings, mode) = (self.question.settings, self.mode);
        let (max_tokens, dialect) = (limit.tokens, self.dialect);
        let talk = Conversation { system, turns, schema, max_tokens, settings, mode, tools, last, dialect };
        let request = Request { asker: self.watcher.asker(), ..wire::request(model, &talk) };
        let _permit = self.permit()?;
        let left = self.time_left()?;
        let watcher = self.watcher;
        if !watcher.go_on() {
            return Err(fault_of(&TransportError::Cancelled).into());
        }
        let open = Arc::new(OpenRequest::new(model.provider, question));
        watcher.sends(model, &open);
        // Before the next model is asked, there is no time beyond the part of this one.
        let slack = if self.share.time < self.question.budget.time { Duration::ZERO } else { watcher.slack() };
        let sent = self.transport.send(&request, left.saturating_add(slack), &mut |line| {
            open.arrived(line);
            watcher.received(line.len(), &wire::piece(model.provider, line));
            watcher.go_on()
        });
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => {
                let taken = open.taken();
                // A recording that fails has been sent.
                let sent = taken.is_some() || !matches!(error, TransportError::NotRecorded(_));
                self.exchange.sent = self.exchange.sent.saturating_add(sent.into());
                self.keep(&request, None, &error.to_string());
                self.exchange.count(taken.unwrap_or_default(), sent);
                return Err(match (error, taken) {
                    (TransportError::Timeout(_), None) => self.time_is_up("the server did not answer"),
                    (TransportError::Timeout(_), Some(_)) => self.time_is_up("the answer was not complete"),
                    (error, _) => fault_of(&error),
                }
                .into());
            }
        };
        // Before anything reads, shortens or stores it.
        redact(&request.secrets(), &mut response);
        let sent = !response.replayed;
        self.exchange.sent = self.exchange.sent.saturating_add(sent.into());
        self.keep(&request, Some(response.status), &response.body);
        let wait = retry_after(response.retry_after.as_deref(), response.date.as_deref());
        let arrived = || Received::read(model.provider, &response.body);
        if !(200..300).contains(&response.status) {
            let arrived = arrived();
            if arrived.says_anything() {
                self.exchange.count(arrived.taken(question), sent);
            }
            return Err(Failed { fault: wire::refusal(model, &response), wait });
        }
        let reply = match wire::reply(model.provider, &response, tools) {
            Ok(Reply { end: End::Broken, model, .. }) => {
                self.answered_as(model.as_deref());
                Err(broken_off())
            }
            other => other,
        };
        match reply {
            Ok(reply) => Ok(self.finish(reply, question, limit, sent)?),
            // The server has accepted the request, and the model may have worked.
            Err(fault) => {
                self.exchange.count(arrived().taken(question), sent);
                Err(Failed { fault, wait })
            }
        }
    }

    /// Counts the tokens of a reply, and returns it if it is complete.
    fn finish(&mut self, mut reply: Reply, question: u64, limit: Limit, sent: bool) -> Result<Reply, Fault> {
        self.answered_as(reply.model.as_deref());
        // The parts of a stream can contain a key in pieces, so that it is not found in them.
        if let Cow::Owned(redacted) = self.secrets.redact(&reply.text) {
            self.exchange.replace_last_response(&redacted);
            reply.text = redacted;
        }
        self.redact_calls(&mut reply);
        let written =
            estimate(reply.calls.iter().map(|c| c.arguments.len()).fold(reply.text.len(), usize::saturating_add));
        let estimated = Usage { input: question, output: written, estimated: true, ..Usage::default() };
        let usage = reply.counts.usage_or(question, written).plausible();
        if usage.total() > MAX_USAGE {
            self.exchange.count(estimated, sent);
            let message = format!("the server reports {} tokens for one request, which cannot be", usage.total());
            return Err(Fault::new(codes::PROTOCOL, message));
        }
        self.exchange.count(usage, sent);
        match reply.end {
            End::Complete if reply.text.len() > MAX_BYTES => Err(Fault::new(
                codes::TOO_LARGE,
                format!("the answer has {} bytes; the limit is {MAX_BYTES}", reply.text.len()),
            )),
            End::Complete => Ok(reply),
            End::CutOff => Err(Fault::new(
                codes::CUT_OFF,
                format!("the answer exceeds the limit of {} tokens: {}", limit.tokens, limit.advice),
            )),
            End::NoRoom => Err(Fault::new(
                codes::CUT_OFF,
                "the answer is cut off, because the context window of the model is full: shorten the prompt or its data, or ask a model with a larger one",
            )),
            End::Declined(why) => Err(Fault::new(codes::DECLINED, format!("the model declined to answer: {why}"))),
            End::Broken => Err(broken_off()),
        }
    }

    fn answered_as(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            self.exchange.answered_as = Some(self.secrets.redact(model).into_owned());
        }
    }

    fn keep(&mut self, request: &Request, status: Option<u16>, response: &str) {
        // Servers quote keys in their errors, and an input may have one; the exchange must not.
        let response = self.secrets.redact(response);
        self.exchange.push(&request.kept_body(), status, &response);
    }
}

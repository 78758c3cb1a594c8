//! What must never happen in an OMEN stream, decided only from the items and their results.

use std::collections::{BTreeMap, BTreeSet};

use charter_expr::ExprTimestamp;
use charter_scenario::conform::Judgment;
use serde_json::Value as Json;

/// How many times the monitor has seen each situation that it checks.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) writes: u64,
    pub(super) loops: u64,
    pub(super) escalations: u64,
    pub(super) safe_modes: u64,
    pub(super) cleared: u64,
    pub(super) overdue: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Seen) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.writes += other.writes;
        self.loops += other.loops;
        self.escalations += other.escalations;
        self.safe_modes += other.safe_modes;
        self.cleared += other.cleared;
        self.overdue += other.overdue;
    }
}

#[derive(Debug)]
struct Token {
    expiry: i64,
    left: i64,
    tools: Vec<String>,
    dead: bool,
}

#[derive(Debug)]
struct Directive {
    task: String,
    due: i64,
}

#[derive(Debug, Default)]
struct Episode {
    state: Option<String>,
    ids: BTreeSet<String>,
    tokens: BTreeMap<String, Token>,
    open: BTreeMap<String, Directive>,
    outcome: Option<String>,
    /// The budgets of the last decision, and what has been spent: tokens, calls, milliseconds.
    budget: [f64; 3],
    spent: [f64; 3],
    bound: bool,
    options: Vec<String>,
    beliefs: bool,
    plan: bool,
    read: bool,
    observed: bool,
    evidence: BTreeSet<String>,
    at: i64,
}

#[derive(Debug, Default)]
pub(super) struct Monitor {
    episodes: BTreeMap<String, Episode>,
    pub(super) seen: Seen,
}

fn text<'j>(json: &'j Json, pointer: &str) -> &'j str {
    json.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

fn number(json: &Json, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(Json::as_f64).unwrap_or(0.0)
}

fn time(text: &str) -> i64 {
    ExprTimestamp::parse(text).unwrap().millis()
}

macro_rules! must {
    ($holds:expr, $($message:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($message)+));
        }
    };
}

impl Monitor {
    /// Checks one item and its result. Returns an error that describes the violation, if there is
    /// one.
    pub(super) fn look(&mut self, item: &Json, line: &Judgment) -> Result<(), String> {
        let Some(name) = &line.episode else {
            must!(!line.valid, "a line without an episode was accepted");
            return Ok(());
        };
        let episode = self.episodes.entry(name.clone()).or_default();
        let from = line.from.clone().unwrap_or_default();
        let to = line.to.clone().unwrap_or_default();
        let before = episode.state.clone().unwrap_or_else(|| "S0_IDLE".into());
        must!(from.is_empty() || from == before, "it stood in {before}, not in {from}");
        if !line.valid {
            self.seen.refused += 1;
            must!(from == to, "a refused line moved from {from} to {to}");
            must!(line.code.is_some() && line.message.is_some(), "a refusal without a reason");
            return Ok(());
        }
        self.seen.accepted += 1;
        episode.state = Some(to.clone());
        match item.get("control") {
            Some(control) => episode.control(control, &from, &to)?,
            None => episode.packet(item, &from, &to, &mut self.seen)?,
        }
        if to == "S9_SAFEMODE" && from != to {
            self.seen.safe_modes += 1;
            episode.halt();
        }
        Ok(())
    }
}

impl Episode {
    fn halt(&mut self) {
        self.open.clear();
        self.tokens.values_mut().for_each(|t| t.dead = true);
        self.outcome = None;
        self.options.clear();
    }

    fn control(&mut self, control: &Json, from: &str, to: &str) -> Result<(), String> {
        let actor = text(control, "/actor");
        let human = actor.starts_with("human:");
        // R32: nobody closes, and nothing else.
        must!(!actor.is_empty() || text(control, "/type") == "episode_close", "accepted from nobody");
        match text(control, "/type") {
            "user_input" => {
                must!(human, "{actor} answered for a person");
                must!(from == "S8_ESCALATED" && to == "S3_DECIDE", "an answer in {from}");
                let option = text(control, "/option_id");
                must!(self.options.iter().any(|o| o == option), "`{option}` was not presented");
                self.outcome = None;
            }
            "episode_close" => {
                must!(from == "S7_REVIEW" && to == "S0_IDLE", "closed in {from}");
                self.halt();
                (self.bound, self.beliefs) = (false, false);
            }
            "token_revoke" => {
                must!(human || actor == "integrity", "{actor} revoked a token");
                must!(from == to, "revoking moved");
                let token = self.tokens.get_mut(text(control, "/token_id"));
                must!(token.is_some(), "a token was revoked that was not issued");
                token.unwrap().dead = true;
            }
            "episode_open" => {
                must!(human || actor == "integrity", "{actor} opened with beliefs");
                must!(from == "S0_IDLE" && to == "S2_MODEL", "opened in {from}");
                self.beliefs = true;
            }
            other => return Err(format!("a control event `{other}` was accepted")),
        }
        Ok(())
    }

    fn packet(&mut self, item: &Json, from: &str, to: &str, seen: &mut Seen) -> Result<(), String> {
        let (id, kind) = (text(item, "/header/packet_id"), text(item, "/header/packet_type"));
        must!(self.ids.insert(id.to_owned()), "{id} was accepted twice");
        let at = time(text(item, "/header/created_at"));
        if self.open.values().any(|d| d.due < at) && !self.bound {
            self.bound = true;
            seen.overdue += 1;
        }
        self.at = at;
        let payload = &item["payload"];
        self.ways_out(item, kind, from, to, seen)?;
        match kind {
            "ObservationPacket" => {
                if observed(item) {
                    self.observed = true;
                }
                // R33: what was not observed is no evidence.
                if observed(item) {
                    self.evidence.insert(id.to_owned());
                }
            }
            "BeliefUpdatePacket" => self.beliefs = true,
            "DecisionPacket" => self.decision(item, to)?,
            "VerificationPlanPacket" => self.plan = true,
            "ToolAuthorizationToken" => self.token(payload, at)?,
            "TaskDirectivePacket" => self.directive(item, id, from, at, seen)?,
            "TaskResultPacket" => self.result(payload, to)?,
            "EscalationPacket" => {
                let options = payload["top_options"].as_array().unwrap();
                must!((2..=3).contains(&options.len()), "{} options", options.len());
                self.options = options.iter().map(|o| text(o, "/option_id").to_owned()).collect();
            }
            "IntegrityAlertPacket" => {
                let clear =
                    text(payload, "/alert_type") == "clear" && text(item, "/header/layer_source") == "Integrity";
                if text(payload, "/severity") == "CRITICAL" && !(from == "S9_SAFEMODE" && clear) {
                    must!(to == "S9_SAFEMODE", "a critical alert led to {to}");
                }
            }
            other => return Err(format!("a `{other}` was accepted")),
        }
        Ok(())
    }

    /// Checks the gates: safe mode, people, verification, execution.
    fn ways_out(&mut self, item: &Json, kind: &str, from: &str, to: &str, seen: &mut Seen) -> Result<(), String> {
        if from == to {
            return Ok(());
        }
        let critical = kind == "IntegrityAlertPacket" && to == "S9_SAFEMODE";
        match from {
            "S9_SAFEMODE" => {
                must!(to == "S7_REVIEW" && kind == "IntegrityAlertPacket", "{kind} led out of safe mode to {to}");
                must!(text(item, "/payload/alert_type") == "clear", "no clear, but out of safe mode");
                must!(text(item, "/header/layer_source") == "Integrity", "safe mode was left without integrity");
                seen.cleared += 1;
            }
            "S8_ESCALATED" => {
                must!(critical, "{kind} led out of an escalation, without a person");
            }
            "S4_VERIFY" if to == "S2_MODEL" => {
                must!(self.open.is_empty(), "verification was left with open directives");
                must!(self.plan && self.read && self.observed, "verification was left too early");
                let named = item.pointer("/payload/evidence_integration").and_then(Json::as_array);
                let named = named.filter(|list| !list.is_empty());
                must!(named.is_some(), "verification was left without evidence");
                let inside = |e: &Json| e.as_str().is_some_and(|e| self.evidence.contains(e));
                must!(named.unwrap().iter().all(inside), "evidence from outside the loop");
                seen.loops += 1;
            }
            "S6_EXECUTE" if to != "S9_SAFEMODE" => {
                must!(kind == "BeliefUpdatePacket", "{kind} led out of execution");
                must!(self.open.is_empty(), "execution was left with open directives");
            }
            _ => {}
        }
        if to == "S4_VERIFY" {
            (self.plan, self.read, self.observed) = (false, false, false);
            self.evidence.clear();
        }
        if to == "S8_ESCALATED" {
            seen.escalations += 1;
        }
        Ok(())
    }

    fn decision(&mut self, item: &Json, to: &str) -> Result<(), String> {
        let outcome = text(item, "/payload/decision_outcome");
        must!(self.beliefs, "a decision without a belief");
        let safe = ["ESCALATE", "CANCEL", "DEFER"].contains(&outcome);
        must!(!self.bound || safe, "{outcome} although a directive was overdue");
        // ESCALATE leads to a person or back to verification.
        if self.outcome.as_deref() == Some("ESCALATE") && self.options.is_empty() {
            must!(outcome == "VERIFY_FIRST", "{outcome} after ESCALATE without a person");
        }
        let check = item.pointer("/payload/constraints_satisfied/constitutional_check");
        if check == Some(&Json::Bool(false)) {
            must!(to == "S9_SAFEMODE", "a constitutional violation led to {to}");
        }
        self.bound = false;
        self.outcome = Some(outcome.to_owned());
        self.options.clear();
        self.budget = [
            number(item, "/mcp/budgets/token_budget"),
            number(item, "/mcp/budgets/tool_call_budget"),
            number(item, "/mcp/budgets/time_budget_seconds") * 1000.0,
        ];
        self.spent = [0.0; 3];
        Ok(())
    }

    fn token(&mut self, payload: &Json, at: i64) -> Result<(), String> {
        let id = text(payload, "/token_id").to_owned();
        let expiry = time(text(payload, "/expiry"));
        must!(self.outcome.as_deref() == Some("ACT"), "a token without a decision to act");
        must!(!self.tokens.contains_key(&id), "{id} was issued twice");
        must!(at < expiry, "{id} was expired when it was issued");
        must!(payload["revoked"] != true, "{id} was revoked when it was issued");
        let left = number(payload, "/max_usage_count") - number(payload, "/usage_count");
        must!(left > 0.0, "{id} was used up when it was issued");
        let tools = payload["authorized_scope"]["tool_ids"].as_array().unwrap();
        let tools = tools.iter().map(|t| t.as_str().unwrap().to_owned()).collect();
        #[allow(clippy::cast_possible_truncation)]
        let left = left as i64;
        self.tokens.insert(id, Token { expiry, left, tools, dead: false });
        Ok(())
    }

    fn directive(&mut self, item: &Json, id: &str, from: &str, at: i64, seen: &mut Seen) -> Result<(), String> {
        let payload = &item["payload"];
        let class = text(payload, "/tool_safety_class");
        if from == "S4_VERIFY" {
            must!(class == "READ", "{class} while verifying");
            must!(self.plan, "a directive before the plan");
            self.read = true;
        } else {
            must!(self.outcome.as_deref() == Some("ACT"), "a directive without a decision to act");
        }
        if class != "READ" {
            let name = text(payload, "/authorization_token_id");
            let Some(token) = self.tokens.get_mut(name) else {
                return Err(format!("{class} without a token"));
            };
            must!(!token.dead, "{class} under a token that was revoked");
            must!(at < token.expiry, "{class} under an expired token");
            must!(token.left > 0, "{class} under a token that is used up");
            let tool = text(payload, "/execution_method/tool_id");
            must!(token.tools.iter().any(|t| t == tool), "{class} with `{tool}`, out of scope");
            token.left -= 1;
            seen.writes += 1;
        }
        let seconds = [payload.get("timeout_seconds"), item.pointer("/mcp/budgets/time_budget_seconds")];
        let least = seconds.iter().flatten().filter_map(|s| s.as_i64()).min().unwrap();
        let task = text(payload, "/task_id").to_owned();
        self.open.insert(id.to_owned(), Directive { task, due: at + least * 1000 });
        Ok(())
    }

    fn result(&mut self, payload: &Json, to: &str) -> Result<(), String> {
        let Some(directive) = self.open.remove(text(payload, "/directive_packet_id")) else {
            return Err("a result for no open directive".into());
        };
        must!(directive.task == text(payload, "/task_id"), "a result of another task");
        for (i, key) in ["tokens_used", "tool_calls_used", "execution_time_ms"].iter().enumerate() {
            self.spent[i] += number(payload, &format!("/execution_metadata/{key}"));
        }
        let over = self.spent.iter().zip(&self.budget).any(|(spent, budget)| spent > budget);
        must!(over == (to == "S9_SAFEMODE"), "spent {:?} of {:?}, and is in {to}", self.spent, self.budget);
        Ok(())
    }
}

fn observed(item: &Json) -> bool {
    text(item, "/mcp/epistemics/status") == "OBSERVED"
}

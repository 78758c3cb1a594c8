//! Generates random packets: mostly the next legal step of one of two interleaved episodes, often
//! mutated.

use charter_scenario::conform::Judgment;
use serde_json::{Value as Json, json};

/// Generates random numbers from a seed.
struct Random(u64);

impl Random {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let sides = of.len() as u64;
        if sides == 0 { None } else { of.get(self.roll(sides) as usize) }
    }
    fn word(&mut self, of: &[&'static str]) -> &'static str {
        self.one(of).copied().unwrap_or("")
    }
}

/// What the generator remembers about an episode in order to guess the next legal packet.
#[derive(Default)]
struct Guess {
    state: String,
    open: Vec<(String, String)>,
    tokens: Vec<String>,
    evidence: Vec<String>,
    outcome: String,
    sent: Vec<Json>,
    at: i64,
    count: u64,
}

pub(super) struct Stream {
    dice: Random,
    guesses: [Guess; 2],
}

const TYPES: [&str; 10] = [
    "ObservationPacket",
    "BeliefUpdatePacket",
    "DecisionPacket",
    "VerificationPlanPacket",
    "ToolAuthorizationToken",
    "TaskDirectivePacket",
    "TaskResultPacket",
    "EscalationPacket",
    "IntegrityAlertPacket",
    "QueueUpdatePacket",
];

impl Stream {
    pub(super) fn new(seed: u64) -> Stream {
        let mut stream =
            Stream { dice: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), guesses: Default::default() };
        for _ in 0..10 {
            stream.dice.roll(2);
        }
        stream
    }

    fn which(name: &str) -> usize {
        usize::from(name == "corr_b")
    }

    /// Learns the verdict of a packet, to guess the next one better.
    pub(super) fn told(&mut self, item: &Json, line: &Judgment) {
        let Some(name) = &line.episode else { return };
        let guess = &mut self.guesses[Self::which(name)];
        if !line.valid {
            return;
        }
        guess.state = line.to.clone().unwrap_or_default();
        let text = |p: &str| item.pointer(p).and_then(Json::as_str).unwrap_or_default().to_owned();
        guess.sent.push(item.clone());
        match text("/header/packet_type").as_str() {
            "TaskDirectivePacket" => guess.open.push((text("/header/packet_id"), text("/payload/task_id"))),
            "TaskResultPacket" => {
                let id = text("/payload/directive_packet_id");
                guess.open.retain(|(open, _)| *open != id);
            }
            "ToolAuthorizationToken" => guess.tokens.push(text("/payload/token_id")),
            "ObservationPacket" => guess.evidence.push(text("/header/packet_id")),
            "DecisionPacket" => guess.outcome = text("/payload/decision_outcome"),
            _ => {}
        }
        if guess.state == "S9_SAFEMODE" {
            guess.open.clear();
        }
    }

    /// Generates the next line.
    pub(super) fn next(&mut self) -> Json {
        let episode = self.dice.roll(2) as usize;
        let name = ["corr_a", "corr_b"][episode];
        if self.dice.roll(25) == 0
            && let Some(again) = self.dice.one(&self.guesses[episode].sent)
        {
            return again.clone();
        }
        let state = self.guesses[episode].state.clone();
        if state == "S8_ESCALATED" && self.dice.roll(2) == 0 || self.dice.roll(14) == 0 {
            return self.control(name, episode, &state);
        }
        let mut item = self.packet(name, episode, &state);
        if self.dice.roll(5) == 0 {
            self.mutate(&mut item);
        }
        item
    }

    fn control(&mut self, name: &str, episode: usize, state: &str) -> Json {
        let actor = self.dice.word(&["human:ana", "human:ana", "integrity", "agent:5", ""]);
        let kind = match state {
            "S8_ESCALATED" => "user_input",
            "S7_REVIEW" => "episode_close",
            "" | "S0_IDLE" => self.dice.word(&["episode_open", "episode_close"]),
            _ => self.dice.word(&["token_revoke", "token_revoke", "user_input", "episode_close", "party"]),
        };
        let token = self.dice.one(&self.guesses[episode].tokens).cloned().unwrap_or_default();
        let mut control = json!({"type": kind, "correlation_id": name,
            "option_id": self.dice.word(&["a", "b", "c"]), "token_id": token, "prior_packets": ["pkt_prior"]});
        if !actor.is_empty() {
            control["actor"] = actor.into();
        }
        json!({"control": control})
    }

    fn kind(&mut self, episode: usize, state: &str) -> &'static str {
        if self.dice.roll(8) == 0 {
            return self.dice.word(&TYPES);
        }
        let guess = &self.guesses[episode];
        let (idle, outcome) = (guess.open.is_empty(), guess.outcome.clone());
        let likely: &[&str] = match state {
            "S1_SENSE" => &["ObservationPacket", "BeliefUpdatePacket", "BeliefUpdatePacket"],
            "S2_MODEL" => &["BeliefUpdatePacket", "DecisionPacket", "DecisionPacket"],
            "S3_DECIDE" => match outcome.as_str() {
                "ACT" => &["ToolAuthorizationToken", "ToolAuthorizationToken", "TaskDirectivePacket"],
                "ESCALATE" => &["EscalationPacket", "DecisionPacket"],
                "" => &["DecisionPacket"],
                _ => &["BeliefUpdatePacket", "DecisionPacket"],
            },
            "S4_VERIFY" | "S6_EXECUTE" if !idle => &[
                "TaskResultPacket",
                "TaskResultPacket",
                "ObservationPacket",
                "TaskDirectivePacket",
                "BeliefUpdatePacket",
            ],
            "S4_VERIFY" => {
                &["VerificationPlanPacket", "TaskDirectivePacket", "ObservationPacket", "BeliefUpdatePacket"]
            }
            "S5_AUTHORIZE" => &["TaskDirectivePacket", "TaskDirectivePacket", "ToolAuthorizationToken"],
            "S6_EXECUTE" => &["TaskDirectivePacket", "BeliefUpdatePacket", "ObservationPacket"],
            "S7_REVIEW" => &["ObservationPacket", "BeliefUpdatePacket"],
            "S8_ESCALATED" => &["EscalationPacket", "DecisionPacket"],
            "S9_SAFEMODE" => {
                &["IntegrityAlertPacket", "IntegrityAlertPacket", "BeliefUpdatePacket", "TaskDirectivePacket"]
            }
            _ => &["ObservationPacket"],
        };
        self.dice.one(likely).copied().unwrap_or("ObservationPacket")
    }

    fn packet(&mut self, name: &str, episode: usize, state: &str) -> Json {
        let kind = self.kind(episode, state);
        let dice = &mut self.dice;
        let guess = &mut self.guesses[episode];
        guess.count += 1;
        // Sometimes the packet is dated much later, sometimes earlier.
        guess.at += match dice.roll(20) {
            0 => 400,
            1 => -30,
            _ => dice.roll(5) as i64,
        };
        let stamp =
            |seconds: i64| charter_expr::ExprTimestamp::from_millis(1_767_225_600_000 + seconds * 1000).to_string();
        let now = guess.at;
        let (open, task) = match dice.one(&guess.open) {
            Some((id, task)) => (id.clone(), task.clone()),
            None => ("pkt_none".to_owned(), "task_none".to_owned()),
        };
        let evidence: Vec<&String> = match dice.roll(6) {
            0 => guess.evidence.iter().take(2).collect(),
            _ => guess.evidence.iter().rev().take(1).collect(),
        };
        let payload = match kind {
            "ObservationPacket" => {
                json!({"observation_type": "tool_output", "data": {"x": 1}, "reliability_metadata": {"partial_result": dice.roll(5) == 0}})
            }
            "BeliefUpdatePacket" => {
                json!({"update_type": "revision", "evidence_integration": evidence,
                "belief_changes": [{"domain": "d", "key": "k", "new_value": 1, "prior_value": null}]})
            }
            "DecisionPacket" => {
                json!({"decision_outcome": dice.word(&["VERIFY_FIRST", "ACT", "ACT", "ACT", "ESCALATE", "DEFER", "CANCEL"]), "decision_summary": "s",
                "constraints_satisfied": {"constitutional_check": dice.roll(30) != 0, "budget_check": true, "tier_check": true}})
            }
            "VerificationPlanPacket" => {
                json!({"plan_id": "p", "triggering_decision_id": "d", "plan_summary": "s", "max_verification_time_seconds": 1, "max_tool_calls": 1,
                "targets": [{"target_id": "t", "description": "d", "assumption_text": "a", "verification_method": "m", "success_criteria": "c"}]})
            }
            "ToolAuthorizationToken" => {
                json!({"token_id": format!("token_{}", dice.roll(40)), "expiry": stamp(now + dice.roll(40) as i64 - 4),
                "authorized_scope": {"tool_ids": ["valve"], "operation_types": ["write"]}, "issuer_layer": 5,
                "max_usage_count": 1 + dice.roll(3), "usage_count": dice.roll(2), "revoked": dice.roll(8) == 0})
            }
            "TaskDirectivePacket" => {
                let class = match state {
                    "S5_AUTHORIZE" => dice.word(&["WRITE", "WRITE", "MIXED", "READ"]),
                    _ => dice.word(&["READ", "READ", "READ", "WRITE", "MIXED"]),
                };
                let token = match dice.roll(4) {
                    0 => dice.one(&guess.tokens).cloned(),
                    _ => guess.tokens.last().cloned(),
                };
                json!({"task_id": format!("task_{}", dice.roll(9)), "task_type": "tool_read", "tool_safety_class": class, "timeout_seconds": 1 + dice.roll(60),
                    "execution_method": {"method": "tool", "tool_id": dice.word(&["valve", "valve", "valve", "pump"])},
                    "authorization_token_id": token.unwrap_or_else(|| "token_none".into())})
            }
            "TaskResultPacket" => {
                json!({"task_id": task, "directive_packet_id": open, "result_status": dice.word(&["SUCCESS", "SUCCESS", "FAILURE", "CANCELLED"]),
                "execution_metadata": {"tokens_used": dice.roll(40), "tool_calls_used": dice.roll(2), "execution_time_ms": dice.roll(900)}})
            }
            "EscalationPacket" => {
                json!({"escalation_trigger": "budget_insufficient", "evidence_gaps": [{"gap": "g", "impact_if_unknown": "i"}],
                "recommended_next_step": {"step": "s", "rationale": "r"},
                "top_options": [{"option_id": "a", "description": "d", "pros": [], "cons": []}, {"option_id": "b", "description": "d", "pros": [], "cons": []}]})
            }
            "IntegrityAlertPacket" => {
                json!({"alert_id": "a", "alert_type": dice.word(&["clear", "drift"]), "severity": dice.word(&["INFO", "INFO", "ERROR", "CRITICAL"]), "summary": "s",
                "detected_at": stamp(now), "detection_method": "m", "affected_components": [], "recommended_actions": [], "related_packet_ids": []})
            }
            _ => json!({}),
        };
        let layer = match dice.roll(3) {
            0 => json!("Integrity"),
            n => json!(n),
        };
        let header = json!({"packet_id": format!("pkt_{}_{}", &name[5..], guess.count), "packet_type": kind, "created_at": stamp(now), "layer_source": layer, "correlation_id": name});
        let mcp = json!({
            "intent": {"summary": "s", "scope": "s"},
            "stakes": {"impact": "LOW", "irreversibility": "PARTIAL", "uncertainty": "LOW", "adversariality": "HOSTILE", "stakes_level": "LOW"},
            "quality": {"quality_tier": "PAR", "satisficing_mode": true, "definition_of_done": {"text": "t", "checks": ["c"]}, "verification_requirement": "OPTIONAL"},
            "budgets": {"token_budget": 100, "tool_call_budget": 4, "time_budget_seconds": 30, "risk_budget": {"envelope": "e", "max_loss": 1}},
            "epistemics": {"status": dice.word(&["OBSERVED", "OBSERVED", "INFERRED"]), "confidence": 0.5, "calibration_note": "n", "freshness_class": "REALTIME", "assumptions": []},
            "evidence": {"evidence_refs": []},
            "routing": {"task_class": "FIND", "tools_state": dice.word(&["tools_ok", "tools_ok", "tools_down"])},
        });
        json!({"header": header, "mcp": mcp, "payload": payload})
    }

    /// Breaks a random part of the packet.
    fn mutate(&mut self, item: &mut Json) {
        let part = self.dice.word(&["header", "payload", "payload", "payload", "mcp"]);
        let Some(Json::Object(map)) = item.get_mut(part) else {
            return;
        };
        let keys: Vec<String> = map.keys().cloned().collect();
        let Some(key) = self.dice.one(&keys).cloned() else {
            return;
        };
        let value = match self.dice.roll(8) {
            0 => {
                map.remove(&key);
                return;
            }
            1 => Json::Null,
            2 => json!(-1),
            3 => json!([]),
            4 => json!("2026-01-01T00:00:00"),
            5 => json!({"extra": 1}),
            6 => json!("Integrity"),
            _ => json!(true),
        };
        map.insert(key, value);
    }
}

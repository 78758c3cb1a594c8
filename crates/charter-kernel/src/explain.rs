//! The whole story of a refusal, and what would be legal. Both look again at what the refused step looked at: a refusal itself stays
//! small, because most callers only want its code.

use std::borrow::Cow;

use charter_expr::Program;
use serde_json::Value as Json;

use crate::door;
use crate::envelope::{Envelope, Event, Principal};
use crate::event::{Data, Ev, Name, Origin};
use crate::judge::{self, active_candidates};
use crate::machine::{Guard, Machine, Require, RoleSet, Template, Transition};
use crate::refusal::{Candidate, Code, Explanation, Refusal};
use crate::scope::Eyes;
use crate::snapshot::{Actor, Snapshot, Status};

/// An event that may be sent now.
#[derive(Debug, Clone, PartialEq)]
pub struct Legal {
    /// The actor that takes it.
    pub to: String,
    /// Event type.
    pub r#type: String,
    /// JSON Schema of its data, if declared.
    pub data: Option<Json>,
    /// What it means, if declared.
    pub description: Option<String>,
    /// Whether its data can still make the answer no.
    pub depends_on_data: bool,
}

impl Machine {
    /// Tells why an event was refused: give the snapshot it was refused on (none for [`Machine::start`]) and the same envelope.
    #[must_use]
    pub fn explain(
        &self,
        snapshot: Option<&Snapshot>,
        envelope: &Envelope,
        refusal: &Refusal,
    ) -> Explanation {
        self.explain_with(snapshot, envelope, refusal, true)
    }

    /// The same without `legal`, but where the sentence needs it: finding out what is legal takes longer than all the rest.
    #[must_use]
    pub fn explain_briefly(
        &self,
        snapshot: Option<&Snapshot>,
        envelope: &Envelope,
        refusal: &Refusal,
    ) -> Explanation {
        let legal = refusal.code == Code::Unhandled;
        self.explain_with(snapshot, envelope, refusal, legal)
    }

    fn explain_with(
        &self,
        snapshot: Option<&Snapshot>,
        envelope: &Envelope,
        refusal: &Refusal,
        with_legal: bool,
    ) -> Explanation {
        let mut story = Explanation {
            code: refusal.code,
            message: String::new(),
            rule: None,
            candidates: Vec::new(),
            misfits: Vec::new(),
            interlock: None,
            legal: Vec::new(),
        };
        if let Some(detail) = &refusal.detail {
            story.message.clone_from(&detail.message);
            if refusal.code == Code::Interlock {
                story.interlock.clone_from(&detail.subject);
                story.message = format!(
                    "interlock `{}`: {}",
                    detail.subject.as_deref().unwrap_or(""),
                    detail.message
                );
            }
            if refusal.code == Code::Rule {
                story.rule.clone_from(&detail.subject);
            }
            if refusal.code == Code::Execution {
                story.message = format!(
                    "nothing handles `{}`: {}",
                    detail.subject.as_deref().unwrap_or(""),
                    detail.message
                );
            }
        }
        let Some(snapshot) = snapshot.filter(|s| s.charter() == self.digest) else {
            if story.message.is_empty() {
                story.message = self.start_message(envelope, refusal.code, &mut story.misfits);
            }
            return story;
        };
        if with_legal {
            let legal = self.legal(snapshot, &envelope.by, envelope.at);
            story.legal = legal.into_iter().map(|l| l.r#type).collect();
            story.legal.dedup();
        }
        if let Event::External { r#type, data } = &envelope.event {
            let admitted =
                door::admit(data, self.definition.limits.data).unwrap_or(Cow::Borrowed(data));
            let ev = Ev {
                id: self.events.id(r#type),
                name: Name::Borrowed(r#type),
                data: Data::Borrowed(&admitted),
                origin: Origin::External,
                meta: None,
            };
            let to = envelope.to.as_deref().unwrap_or("root");
            if refusal.code == Code::Schema && story.message.is_empty() {
                story.misfits = self
                    .events
                    .info(ev.id)
                    .and_then(|i| i.schema.as_ref())
                    .map(|s| s.misfits(&admitted))
                    .unwrap_or_default();
                story.rule = self.rule_of_schema(r#type, &story.misfits);
            }
            if let Some(actor) = snapshot.actors.find(to)
                && judged_late(refusal.code, self.door_authority(envelope, ev.id))
            {
                story.candidates = self.candidates(snapshot, actor, &ev, envelope);
            }
            if story.message.is_empty() {
                story.message = self.message(snapshot, envelope, &ev, to, &story);
            }
            if let (Code::Schema, Some(rule)) = (refusal.code, &story.rule)
                && let Some(said) = self.say(rule, snapshot, envelope)
            {
                story.message = format!("{said}{}", first_misfit(&story.misfits));
            }
            let decided = story.candidates.iter().find(|c| c.failed == refusal.code);
            if let Some(candidate) = decided.filter(|_| story.rule.is_none()) {
                story.rule.clone_from(&candidate.rule);
            }
        } else if story.message.is_empty() {
            if let (
                Code::Schema,
                Event::Done {
                    invocation,
                    effect,
                    output,
                },
            ) = (refusal.code, &envelope.event)
            {
                let of = |i: &crate::snapshot::Invocation| {
                    i.id.as_ref() == invocation && effect.is_none_or(|e| e == i.effect)
                };
                let found = snapshot
                    .invocations()
                    .find(|(_, i)| of(i))
                    .map(|(_, i)| i.service);
                let schema = found
                    .and_then(|n| self.services.get(n as usize))
                    .and_then(|s| s.output.as_ref());
                story.misfits = schema.map(|s| s.misfits(output)).unwrap_or_default();
                story.message = format!(
                    "the output of `{invocation}` does not fit its schema{}",
                    first_misfit(&story.misfits)
                );
            } else {
                story.message = plain(refusal.code).to_string();
            }
        }
        story
    }

    fn start_message(
        &self,
        envelope: &Envelope,
        code: Code,
        misfits: &mut Vec<crate::schema::Misfit>,
    ) -> String {
        match (&envelope.event, code) {
            (Event::Start { input }, Code::Schema) => {
                *misfits = self
                    .chart(0)
                    .input
                    .as_ref()
                    .map(|s| s.misfits(input))
                    .unwrap_or_default();
                format!(
                    "the input does not fit the charter's `input` schema{}",
                    first_misfit(misfits)
                )
            }
            _ => plain(code).to_string(),
        }
    }

    /// Was the event itself refused for lack of authority, before any transition was looked at?
    fn door_authority(&self, envelope: &Envelope, id: u32) -> bool {
        let required = self
            .events
            .info(id)
            .filter(|i| i.declared)
            .map(|i| i.by)
            .unwrap_or_default();
        !required.admits(self.held(envelope))
    }

    fn message(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        ev: &Ev<'_>,
        to: &str,
        story: &Explanation,
    ) -> String {
        let name = ev.name();
        let by = &envelope.by;
        let roles = if by.roles.is_empty() {
            "no role".to_string()
        } else {
            format!("role {}", by.roles.join(", "))
        };
        let who = if by.id.is_empty() {
            format!("the sender (with {roles})")
        } else {
            format!("`{}` (with {roles})", by.id)
        };
        match story.code {
            Code::Reserved => {
                format!("`{name}` is made by the platform and cannot be sent from outside")
            }
            Code::UnknownEvent => {
                let near =
                    charter_expr::nearest(name, self.definition.events.keys().map(String::as_str));
                let near = near
                    .map(|n| format!("; did you mean `{n}`?"))
                    .unwrap_or_default();
                format!("the charter declares no event `{name}`{near}")
            }
            Code::Finished => {
                let actor = snapshot.actors.find(to).map_or("", |a| a.status.word());
                if snapshot.status.is_finished() {
                    format!(
                        "the run is {}; it takes no more events",
                        snapshot.status.word()
                    )
                } else {
                    format!("the actor `{to}` is {actor}; it takes no more events")
                }
            }
            Code::Paused => {
                "the run is paused; `charter.resume` by an operator lets it go on".to_string()
            }
            Code::UnknownActor => {
                let known: Vec<&str> = snapshot.actors().map(Actor::id).take(10).collect();
                format!(
                    "there is no actor `{to}` in this run; there are: {}",
                    known.join(", ")
                )
            }
            Code::Stale => match (envelope.expected_seq, story.candidates.first()) {
                (_, Some(c)) => c.message.clone(),
                (Some(seen), None) => format!(
                    "the sender has seen record {seen}, but the run has changed since: its last change is record {}",
                    snapshot.seq
                ),
                (None, None) => plain(Code::Stale).to_string(),
            },
            Code::Authority if story.candidates.is_empty() => {
                let required = if crate::run::CONTROL.contains(&name) {
                    RoleSet::OPERATOR
                } else {
                    self.events.info(ev.id).map(|i| i.by).unwrap_or_default()
                };
                format!(
                    "`{name}` may be sent by {}; {who} may not",
                    self.role_names(required)
                )
            }
            Code::Schema => format!(
                "the data of `{name}` does not fit its schema{}",
                first_misfit(&story.misfits)
            ),
            Code::Unhandled => {
                let state: Vec<&str> = snapshot
                    .actors
                    .find(to)
                    .into_iter()
                    .flat_map(Actor::state)
                    .collect();
                let rest = if story.legal.is_empty() {
                    "nothing is legal now for this sender".to_string()
                } else {
                    format!("legal now: {}", story.legal.join(", "))
                };
                format!(
                    "nothing takes `{name}` while `{to}` is in {}; {rest}",
                    quoted(&state)
                )
            }
            _ => story
                .candidates
                .iter()
                .find(|c| c.failed == story.code)
                .map_or_else(|| plain(story.code).to_string(), |c| c.message.clone()),
        }
    }

    /// The sentence of an entry of `rules`, as it reads for this event; none if there is no such entry.
    #[must_use]
    pub fn say(&self, rule: &str, snapshot: &Snapshot, envelope: &Envelope) -> Option<String> {
        let place = self
            .rules
            .iter()
            .position(|(name, _)| name.as_ref() == rule)?;
        let nothing = Json::Null;
        let (kind, data) = match &envelope.event {
            Event::External { r#type, data } => (r#type.as_str(), data),
            _ => ("", &nothing),
        };
        let ev = Ev {
            id: self.events.id(kind),
            name: Name::Borrowed(kind),
            data: Data::Borrowed(data),
            origin: Origin::External,
            meta: None,
        };
        let actor = snapshot
            .actors
            .find(envelope.to.as_deref().unwrap_or("root"))?;
        let eyes = Eyes {
            machine: self,
            snapshot,
            actor,
            event: Some(&ev),
            by: &envelope.by,
            now: envelope.at,
            locals: &[],
            entry: None,
        };
        Some(self.sentence(u32::try_from(place).ok()?, &eyes))
    }

    pub(crate) fn rule_name(&self, rule: u32) -> &str {
        self.rules.get(rule as usize).map_or("", |(name, _)| name)
    }

    /// The sentence of a rule, as it reads for this event.
    pub(crate) fn sentence(&self, rule: u32, eyes: &Eyes<'_>) -> String {
        let Some((name, sentence)) = self.rules.get(rule as usize) else {
            return String::new();
        };
        match eyes.text(sentence) {
            Ok(text) => text.to_string(),
            // A sentence that cannot be said must not hide the rule.
            Err(e) => format!("rule `{name}` forbids it (its sentence cannot be said: {e})"),
        }
    }

    /// The rule that the part of a schema belongs to which the data does not fit: the keyword `rule` beside it.
    fn rule_of_schema(&self, event: &str, misfits: &[crate::schema::Misfit]) -> Option<String> {
        let schema = self.definition.events.get(event)?.data.as_ref()?;
        misfits.iter().find_map(|misfit| {
            let (around, _) = misfit.rule.rsplit_once('/')?;
            crate::schema::lookup(schema, around)?
                .get("rule")?
                .as_str()
                .map(str::to_string)
        })
    }

    fn role_names(&self, set: RoleSet) -> String {
        let names: Vec<String> = self
            .roles
            .iter()
            .enumerate()
            .filter(|(i, _)| set.0 & (1u128 << (i & 127)) != 0)
            .map(|(_, n)| format!("`{n}`"))
            .collect();
        names.join(" or ")
    }

    fn candidates(
        &self,
        snapshot: &Snapshot,
        actor: &Actor,
        ev: &Ev<'_>,
        envelope: &Envelope,
    ) -> Vec<Candidate> {
        let held = self.held(envelope);
        let mut settled = snapshot.clone();
        if let Some(ledger) = &mut settled.ledger {
            crate::ledger::Ledger::settle(ledger, envelope.at);
        }
        let eyes = Eyes {
            machine: self,
            snapshot: &settled,
            actor,
            event: Some(ev),
            by: &envelope.by,
            now: envelope.at,
            locals: &[],
            entry: None,
        };
        let chart = self.chart(actor.chart());
        let all = active_candidates(chart, &actor.configuration, ev);
        all.into_iter()
            .filter_map(|(id, t)| self.why_not(&eyes, actor, id, t, held))
            .collect()
    }

    /// Why a transition is not enabled; none if it is.
    fn why_not(
        &self,
        eyes: &Eyes<'_>,
        actor: &Actor,
        id: u32,
        t: &Transition,
        held: RoleSet,
    ) -> Option<Candidate> {
        let of_rule = |failed, rule: Option<u32>, program: Option<&Program>, message| {
            Some(Candidate {
                transition: t.name.to_string(),
                failed,
                rule: rule.map(|rule| self.rule_name(rule).to_string()),
                expression: program.map(|p| p.source().to_string()),
                read: program.map(|p| reads(eyes, p)).unwrap_or_default(),
                message,
            })
        };
        let candidate = |failed: Code, program: Option<&Program>, message: String| {
            of_rule(failed, None, program, message)
        };
        let who = if eyes.by.id.is_empty() {
            "the sender".to_string()
        } else {
            format!("`{}`", eyes.by.id)
        };
        if !t.by.admits(held) {
            if t.refuse.is_some() {
                return None;
            }
            return candidate(
                Code::Authority,
                None,
                format!(
                    "only {} may take this; {who} has {}",
                    self.role_names(t.by),
                    roles_of(eyes.by)
                ),
            );
        }
        if let Some(guard) = &t.guard
            && let Some((program, name, error)) = failing(eyes, guard)
        {
            let called = name
                .map(|n| format!("guard `{n}`"))
                .unwrap_or_else(|| format!("`{}`", program.source()));
            if t.refuse.is_some() {
                return None; // that it is not forbidden explains nothing
            }
            let message = match error {
                Some(e) => format!("{called} could not be evaluated and so does not hold: {e}"),
                None => format!("{called} does not hold"),
            };
            return candidate(Code::Guard, Some(program), message);
        }
        if let Some(program) = &t.approves
            && !judge::approves(eyes, t)
        {
            let shown = eyes
                .event
                .and_then(|e| e.data().get("digest"))
                .and_then(Json::as_str);
            let message = match (shown, eyes.cel(program).and_then(|v| v.to_json())) {
                (None, Ok(_)) => "an approval names what it approves: `digest` is missing from the data of the event".to_string(),
                (Some(shown), Ok(value)) => {
                    format!("the approval is for {shown}, but what would be approved now is {}", crate::digest::Digest::of_json(&value).hex())
                }
                (_, Err(e)) => format!("what is to be approved could not be evaluated: {e}"),
            };
            return candidate(Code::Stale, Some(program), message);
        }
        for require in &t.requires {
            if let Err(code) = judge::requirement(eyes, require) {
                if t.refuse.is_some() {
                    return None;
                }
                let (program, message) = self.requirement_message(eyes, require, code);
                let Some(rule) = require.rule(code) else {
                    return candidate(code, program, message);
                };
                let message = format!("{}: {message}", self.sentence(rule, eyes));
                return of_rule(code, Some(rule), program, message);
            }
        }
        if let Some(rule) = t.refuse {
            let message = self.sentence(rule, eyes);
            return of_rule(Code::Rule, Some(rule), None, message);
        }
        let quorum = t.quorum.as_ref()?;
        if !quorum.of.admits(held) {
            return candidate(
                Code::Authority,
                None,
                format!(
                    "the quorum is of {}; {who} has {}",
                    self.role_names(quorum.of),
                    roles_of(eyes.by)
                ),
            );
        }
        let digest = crate::digest::Digest::of_json(eyes.event.map_or(&Json::Null, Ev::data));
        let voted = actor.votes.iter().any(|v| {
            v.transition == id
                && v.digest == digest
                && v.by.iter().any(|b| b.as_ref() == eyes.by.id)
        });
        if voted {
            candidate(
                Code::Authority,
                None,
                format!(
                    "{who} has voted already; {} different principals are needed",
                    quorum.count
                ),
            )
        } else {
            None
        }
    }

    fn requirement_message<'p>(
        &self,
        eyes: &Eyes<'_>,
        require: &'p Require,
        code: Code,
    ) -> (Option<&'p Program>, String) {
        let (kind, key, when) = match require {
            Require::Use {
                kind, key, when, ..
            } => (*kind, Some(key), when.as_ref()),
            Require::Open { kind, key, .. } => (*kind, Some(key), None),
            Require::None { kind, .. } => (*kind, None, None),
        };
        let name = self.ledger.get(kind as usize).map_or("", AsRef::as_ref);
        let program = key.and_then(|t| {
            if let Template::Cel(p) = t {
                Some(p)
            } else {
                None
            }
        });
        let key = match key.map(|t| eyes.text(t)) {
            Some(Ok(key)) => key.to_string(),
            Some(Err(e)) => {
                return (
                    program,
                    format!("the key of the `{name}` could not be evaluated: {e}"),
                );
            }
            None => String::new(),
        };
        match code {
            Code::PermitMissing => (program, format!("there is no `{name}` `{key}`")),
            Code::PermitRevoked => (program, format!("the `{name}` `{key}` was revoked")),
            Code::PermitExpired => (program, format!("the `{name}` `{key}` has expired")),
            Code::PermitExhausted => (program, format!("the `{name}` `{key}` has no uses left")),
            Code::PermitScope => (
                when,
                format!(
                    "the `{name}` `{key}` does not cover this: `{}` does not hold",
                    when.map_or("", Program::source)
                ),
            ),
            Code::ObligationMissing => (program, format!("no `{name}` `{key}` is open")),
            _ => {
                let open: Vec<&str> = eyes
                    .snapshot
                    .ledger
                    .iter()
                    .flat_map(|l| l.open_keys(kind))
                    .map(AsRef::as_ref)
                    .collect();
                (None, format!("`{name}` still open: {}", quoted(&open)))
            }
        }
    }

    /// The events that `principal` may send now, to any actor of the run, in the order of their declaration.
    ///
    /// Authority, conditions, requirements and interlocks are taken into account as far as they do not depend on data that is not
    /// there yet; [`Legal::depends_on_data`] says where the data may still make the answer no.
    #[must_use]
    pub fn legal(&self, snapshot: &Snapshot, principal: &Principal, at: i64) -> Vec<Legal> {
        if snapshot.charter() != self.digest || snapshot.status.is_finished() {
            return Vec::new();
        }
        let mut out = Vec::new();
        let mut envelope = Envelope::event(
            snapshot.seq.saturating_add(1),
            "",
            Json::Null,
            principal.clone(),
            at,
        );
        let held = self.held(&envelope);
        let declared: Vec<u32> = self
            .events
            .list
            .iter()
            .zip(0u32..)
            .filter(|(i, _)| i.declared)
            .map(|(_, id)| id)
            .collect();
        // Not strict: what is not declared may be sent too, if some state names it.
        let named = self.events.list.iter().zip(0u32..).filter(|(i, _)| {
            !self.definition.strict && !i.declared && !crate::compile::is_platform(&i.name)
        });
        let all: Vec<u32> = declared
            .into_iter()
            .chain(named.map(|(_, id)| id))
            .collect();
        let mut settled = snapshot.clone();
        if let Some(ledger) = &mut settled.ledger {
            crate::ledger::Ledger::settle(ledger, at);
        }
        for id in all {
            let Some(info) = self.events.info(id) else {
                continue;
            };
            if !info.by.admits(held) || (snapshot.status == Status::Paused && !info.while_paused) {
                continue;
            }
            let decl = self.definition.events.get(info.name.as_ref());
            let schema = decl.and_then(|d| d.data.as_ref());
            for actor in settled.actors().filter(|a| a.status == Status::Active) {
                let Some(depends) = self.possible(&settled, actor, id, &envelope.by, held, at)
                else {
                    continue;
                };
                let empty = Json::Object(serde_json::Map::new());
                let fits_empty = info.schema.as_ref().is_none_or(|s| s.fits(&empty));
                if !depends {
                    // Nothing that decides reads the data: a trial with the least data tells about interlocks and errors too.
                    envelope.to = Some(actor.identity().id.to_string());
                    let data = if fits_empty { empty } else { sample(schema, 0) };
                    envelope.event = Event::External {
                        r#type: info.name.to_string(),
                        data,
                    };
                    match self.step(snapshot, &envelope).map_err(|r| r.code) {
                        Ok(_) => {}
                        Err(Code::Schema) => {}
                        Err(Code::Execution | Code::Runaway) if !fits_empty => {}
                        Err(_) => continue,
                    }
                }
                out.push(Legal {
                    to: actor.identity().id.to_string(),
                    r#type: info.name.to_string(),
                    data: schema.cloned(),
                    description: decl.and_then(|d| d.description.clone()),
                    depends_on_data: depends || !fits_empty,
                });
            }
        }
        out
    }

    /// Could some transition of this actor take the event? `Some(true)`: it depends on the data.
    fn possible(
        &self,
        snapshot: &Snapshot,
        actor: &Actor,
        id: u32,
        by: &Principal,
        held: RoleSet,
        at: i64,
    ) -> Option<bool> {
        let name = self.events.info(id).map_or("", |i| i.name.as_ref());
        let nothing = Json::Object(serde_json::Map::new());
        let ev = Ev {
            id,
            name: Name::Borrowed(name),
            data: Data::Borrowed(&nothing),
            origin: Origin::External,
            meta: None,
        };
        let eyes = Eyes {
            machine: self,
            snapshot,
            actor,
            event: Some(&ev),
            by,
            now: at,
            locals: &[],
            entry: None,
        };
        let chart = self.chart(actor.chart());
        let mut depends = None;
        let mut may_be_forbidden = false;
        for (tid, t) in active_candidates(chart, &actor.configuration, &ev) {
            if !t.by.admits(held) || t.quorum.as_ref().is_some_and(|q| !q.of.admits(held)) {
                continue;
            }
            if t.refuse.is_some() {
                if t.reads_event {
                    may_be_forbidden = true;
                } else if self.why_not(&eyes, actor, tid, t, held).is_some() {
                    break;
                }
            } else if t.reads_event {
                depends = Some(true);
            } else if self.why_not(&eyes, actor, tid, t, held).is_none() {
                return Some(depends.unwrap_or(may_be_forbidden));
            }
        }
        depends
    }

    /// Can nothing happen to the run any more, whoever sends whatever? Neither timers nor answers are awaited, and no event is taken.
    #[must_use]
    pub fn is_stuck(&self, snapshot: &Snapshot) -> bool {
        if snapshot.status != Status::Active
            || !snapshot.timers.is_empty()
            || snapshot.invocations().any(|(_, i)| !i.is_machine())
        {
            return false;
        }
        let active = snapshot.actors().filter(|a| a.status == Status::Active);
        let takes = |a: &Actor| {
            let chart = self.chart(a.chart());
            a.configuration.iter().any(|s| {
                let node = chart.state(*s);
                let sent = |id: &u32| {
                    self.events
                        .info(*id)
                        .is_some_and(|i| !crate::compile::is_platform(&i.name))
                };
                !node.patterns.is_empty() || node.exact.iter().any(|(id, _)| sent(id))
            })
        };
        !active.into_iter().any(takes)
    }
}

/// Codes that are given after candidates were judged.
fn judged_late(code: Code, refused_at_door: bool) -> bool {
    !refused_at_door
        && matches!(
            code,
            Code::Authority
                | Code::Guard
                | Code::Rule
                | Code::Stale
                | Code::PermitMissing
                | Code::PermitRevoked
                | Code::PermitExpired
                | Code::PermitExhausted
                | Code::PermitScope
                | Code::ObligationMissing
                | Code::ObligationOpen
        )
}

/// The part of a guard that decides against it: its program, the name of the guard it belongs to, the error if there was one.
fn failing<'g>(
    eyes: &Eyes<'g>,
    guard: &'g Guard,
) -> Option<(&'g Program, Option<&'g str>, Option<String>)> {
    match guard {
        Guard::Cel(p) => match eyes.holds(p) {
            Ok(true) => None,
            Ok(false) => Some((p, None, None)),
            Err(e) => Some((p, None, Some(e.to_string()))),
        },
        Guard::Named(named) => {
            failing(eyes, &named.1).map(|(p, inner, e)| (p, inner.or(Some(&*named.0)), e))
        }
        Guard::And(all) => all.iter().find_map(|g| failing(eyes, g)),
        Guard::Or(any) => {
            if eyes.guard(guard) == Ok(true) {
                return None;
            }
            any.iter().find_map(|g| failing(eyes, g))
        }
        Guard::Not(inner) => match eyes.guard(inner) {
            Ok(false) => None,
            Ok(true) => first_program(inner).map(|p| (p, guard_name(inner), None)),
            Err(e) => first_program(inner).map(|p| (p, guard_name(inner), Some(e.to_string()))),
        },
    }
}

fn guard_name(guard: &Guard) -> Option<&str> {
    if let Guard::Named(named) = guard {
        Some(&named.0)
    } else {
        None
    }
}

fn first_program(guard: &Guard) -> Option<&Program> {
    match guard {
        Guard::Cel(p) => Some(p),
        Guard::Named(named) => first_program(&named.1),
        Guard::And(list) | Guard::Or(list) => list.iter().find_map(first_program),
        Guard::Not(inner) => first_program(inner),
    }
}

/// The values a program read, by path. Large ones are cut: a refusal is for people.
fn reads(eyes: &Eyes<'_>, program: &Program) -> serde_json::Map<String, Json> {
    let mut map = serde_json::Map::new();
    for path in program.reads() {
        let value = path
            .eval(eyes)
            .and_then(|v| v.to_json())
            .unwrap_or(Json::Null);
        map.insert(path.text().to_string(), short(value));
    }
    map
}

fn short(value: Json) -> Json {
    const MAX: usize = 500;
    match value {
        Json::String(s) if s.chars().count() > MAX => {
            Json::String(format!("{}…", s.chars().take(MAX).collect::<String>()))
        }
        Json::Array(_) | Json::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX {
                Json::String(format!("{}…", text.chars().take(MAX).collect::<String>()))
            } else {
                value
            }
        }
        other => other,
    }
}

/// The least data that may fit a schema: what is required, with the plainest values. Only used to try an event whose data decides nothing.
fn sample(schema: Option<&Json>, depth: usize) -> Json {
    let Some(schema) = schema.filter(|_| depth < 8) else {
        return Json::Null;
    };
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(first) = schema
        .get("enum")
        .and_then(Json::as_array)
        .and_then(|e| e.first())
    {
        return first.clone();
    }
    let kind = schema
        .get("type")
        .map(|t| t.as_array().and_then(|a| a.first()).unwrap_or(t))
        .and_then(Json::as_str);
    match kind {
        Some("string") => {
            let least = schema
                .get("minLength")
                .and_then(Json::as_u64)
                .unwrap_or(1)
                .clamp(1, 100);
            Json::String("x".repeat(usize::try_from(least).unwrap_or(1)))
        }
        Some("integer" | "number") => schema
            .get("minimum")
            .cloned()
            .unwrap_or_else(|| Json::from(1)),
        Some("boolean") => Json::Bool(true),
        Some("array") => {
            let least = schema
                .get("minItems")
                .and_then(Json::as_u64)
                .unwrap_or(0)
                .min(100);
            Json::Array(
                (0..least)
                    .map(|_| sample(schema.get("items"), depth.saturating_add(1)))
                    .collect(),
            )
        }
        Some("object") => {
            let required = schema
                .get("required")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .filter_map(Json::as_str);
            let property = |key: &str| {
                sample(
                    schema.get("properties").and_then(|p| p.get(key)),
                    depth.saturating_add(1),
                )
            };
            Json::Object(
                required
                    .map(|key| (key.to_string(), property(key)))
                    .collect(),
            )
        }
        _ => Json::Null,
    }
}

fn first_misfit(misfits: &[crate::schema::Misfit]) -> String {
    misfits
        .first()
        .map(|m| {
            if m.at.is_empty() {
                format!(": {}", m.message)
            } else {
                format!(": at `{}`: {}", m.at, m.message)
            }
        })
        .unwrap_or_default()
}

fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|w| format!("`{w}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn roles_of(by: &Principal) -> String {
    if by.roles.is_empty() {
        "no role".to_string()
    } else {
        format!("role {}", by.roles.join(", "))
    }
}

/// What a code means, when there is nothing more to say.
fn plain(code: Code) -> &'static str {
    match code {
        Code::TooLarge => "the event is too large",
        Code::CharterMismatch => "the snapshot belongs to another charter or another version of it",
        Code::Reserved => "only the platform makes events of this type",
        Code::UnknownEvent => "the charter declares no such event",
        Code::Finished => "the run has ended",
        Code::Paused => "the run is paused",
        Code::UnknownActor => "there is no such actor in this run",
        Code::Stale => "what the sender has seen is not what is there now",
        Code::Authority => "the sender's roles do not allow this",
        Code::Schema => "the data does not fit its schema",
        Code::Unhandled => "nothing takes this event now",
        Code::Guard => "a condition does not hold",
        Code::Rule => "a rule of the charter forbids it",
        Code::PermitMissing => "there is no such permit",
        Code::PermitRevoked => "the permit was revoked",
        Code::PermitExpired => "the permit has expired",
        Code::PermitExhausted => "the permit has no uses left",
        Code::PermitScope => "the permit does not cover this",
        Code::ObligationMissing => "no such obligation is open",
        Code::ObligationOpen => "an obligation is still open",
        Code::Execution => "an action failed and nothing handled the error",
        Code::Runaway => "the event does not come to rest",
        Code::Interlock => "the actors of the run would not be compatible",
    }
}

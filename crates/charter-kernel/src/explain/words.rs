//! The sentences of a refusal: what a code says of this event, and what a rule of the charter says.

use serde_json::Value as Json;

use crate::envelope::{Envelope, Event, Principal};
use crate::event::{Data, Ev, Name, Origin};
use crate::machine::{Machine, RoleSet};
use crate::refusal::{Code, Explanation};
use crate::scope::EvalContext;
use crate::snapshot::{Actor, Snapshot};

impl Machine {
    pub(super) fn message(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        ev: &Ev<'_>,
        to: &str,
        story: &Explanation,
    ) -> String {
        let name = ev.name();
        let by = &envelope.by;
        let roles = roles_of(by);
        let who =
            if by.id.is_empty() { format!("the sender (with {roles})") } else { format!("`{}` (with {roles})", by.id) };
        match story.code {
            Code::Reserved => {
                format!("`{name}` is made by the platform and cannot be sent from outside")
            }
            Code::UnknownEvent => {
                let near = charter_expr::nearest(name, self.definition.events.keys().map(String::as_str));
                let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                format!("the charter declares no event `{name}`{near}")
            }
            Code::Finished => {
                let actor = snapshot.actors.find(to).map_or("", |a| a.status.word());
                if snapshot.status.is_finished() {
                    format!("the run is {}; it takes no more events", snapshot.status.word())
                } else {
                    format!("the actor `{to}` is {actor}; it takes no more events")
                }
            }
            Code::Paused => "the run is paused; `charter.resume` by an operator lets it go on".to_string(),
            Code::UnknownActor => {
                let known: Vec<&str> = snapshot.actors().map(Actor::id).take(10).collect();
                format!("there is no actor `{to}` in this run; there are: {}", known.join(", "))
            }
            Code::Stale => match (envelope.expected_seq, story.candidates.first()) {
                (_, Some(c)) => c.message.clone(),
                (Some(seen), None) if seen >= envelope.seq => {
                    let last = envelope.seq.saturating_sub(1);
                    format!("the sender has seen record {seen}, but there is none yet; the last one is {last}")
                }
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
                format!("`{name}` may be sent by {}; {who} may not", self.role_names(required))
            }
            Code::Schema => format!("the data of `{name}` does not fit its schema{}", first_misfit(&story.misfits)),
            Code::Unhandled => {
                let state: Vec<&str> = snapshot.actors.find(to).into_iter().flat_map(Actor::state).collect();
                let rest = if story.legal.is_empty() {
                    "nothing is legal now for this sender".to_string()
                } else {
                    format!("legal now: {}", story.legal.join(", "))
                };
                format!("nothing takes `{name}` while `{to}` is in {}; {rest}", quoted(&state))
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
        let place = self.rules.iter().position(|(name, _)| name.as_ref() == rule)?;
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
        let actor = snapshot.actors.find(envelope.to.as_deref().unwrap_or("root"))?;
        let eyes = EvalContext {
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
    pub(crate) fn sentence(&self, rule: u32, eyes: &EvalContext<'_>) -> String {
        let Some((name, sentence)) = self.rules.get(rule as usize) else {
            return String::new();
        };
        match eyes.text(sentence) {
            Ok(text) => text.to_string(),
            // A sentence that cannot be said must not hide the rule.
            Err(e) => format!("rule `{name}` forbids it (its sentence cannot be said: {e})"),
        }
    }

    pub(super) fn role_names(&self, set: RoleSet) -> String {
        let names: Vec<String> = self
            .roles
            .iter()
            .enumerate()
            .filter(|(i, _)| set.0 & (1u128 << (i & 127)) != 0)
            .map(|(_, n)| format!("`{n}`"))
            .collect();
        names.join(" or ")
    }
}

pub(super) fn first_misfit(misfits: &[crate::schema::Misfit]) -> String {
    misfits
        .first()
        .map(|m| if m.at.is_empty() { format!(": {}", m.message) } else { format!(": at `{}`: {}", m.at, m.message) })
        .unwrap_or_default()
}

pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn roles_of(by: &Principal) -> String {
    if by.roles.is_empty() { "no role".to_string() } else { format!("role {}", by.roles.join(", ")) }
}

/// What a code means, when there is nothing more to say.
pub(super) fn plain(code: Code) -> &'static str {
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

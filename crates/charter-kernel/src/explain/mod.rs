//! The whole story of a refusal: looks again at what the refused step looked at. A refusal itself stays small, because most callers only
//! want its code.

mod candidates;
mod words;

use std::borrow::Cow;

use crate::envelope::{Envelope, Event};
use crate::event::{Data, Ev, Name, Origin};
use crate::machine::Machine;
use crate::refusal::{Code, Explanation, Refusal};
use crate::snapshot::Snapshot;
use crate::validate;
use words::{first_misfit, plain};

impl Machine {
    /// Tells why an event was refused: give the snapshot it was refused on (none for [`Machine::start`]) and the same envelope.
    #[must_use]
    pub fn explain(&self, snapshot: Option<&Snapshot>, envelope: &Envelope, refusal: &Refusal) -> Explanation {
        self.explain_with(snapshot, envelope, refusal, true)
    }

    /// The same without `legal`, but where the sentence needs it: finding out what is legal takes longer than all the rest.
    #[must_use]
    pub fn explain_briefly(&self, snapshot: Option<&Snapshot>, envelope: &Envelope, refusal: &Refusal) -> Explanation {
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
                story.message = format!("interlock `{}`: {}", detail.subject.as_deref().unwrap_or(""), detail.message);
            }
            if refusal.code == Code::Rule {
                story.rule.clone_from(&detail.subject);
            }
            if refusal.code == Code::Execution {
                story.message =
                    format!("nothing handles `{}`: {}", detail.subject.as_deref().unwrap_or(""), detail.message);
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
            let admitted = validate::validate_event(data, self.definition.limits.data).unwrap_or(Cow::Borrowed(data));
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
            if let (Code::Schema, Event::Done { invocation, effect, output }) = (refusal.code, &envelope.event) {
                let of = |i: &crate::snapshot::Invocation| {
                    i.id.as_ref() == invocation && effect.is_none_or(|e| e == i.effect)
                };
                let found = snapshot.invocations().find(|(_, i)| of(i)).map(|(_, i)| i.service);
                let schema = found.and_then(|n| self.services.get(n as usize)).and_then(|s| s.output.as_ref());
                story.misfits = schema.map(|s| s.misfits(output)).unwrap_or_default();
                story.message =
                    format!("the output of `{invocation}` does not fit its schema{}", first_misfit(&story.misfits));
            } else {
                story.message = plain(refusal.code).to_string();
            }
        }
        story
    }

    fn start_message(&self, envelope: &Envelope, code: Code, misfits: &mut Vec<crate::schema::Misfit>) -> String {
        match (&envelope.event, code) {
            (Event::Start { input }, Code::Schema) => {
                *misfits = self.chart(0).input.as_ref().map(|s| s.misfits(input)).unwrap_or_default();
                format!("the input does not fit the charter's `input` schema{}", first_misfit(misfits))
            }
            _ => plain(code).to_string(),
        }
    }

    /// Was the event itself refused for lack of authority, before any transition was looked at?
    fn door_authority(&self, envelope: &Envelope, id: u32) -> bool {
        let required = self.events.info(id).filter(|i| i.declared).map(|i| i.by).unwrap_or_default();
        !required.admits(self.held(envelope))
    }

    /// The rule that the part of a schema belongs to which the data does not fit: the keyword `rule` beside it.
    fn rule_of_schema(&self, event: &str, misfits: &[crate::schema::Misfit]) -> Option<String> {
        let schema = self.definition.events.get(event)?.data.as_ref()?;
        misfits.iter().find_map(|misfit| {
            let (around, _) = misfit.rule.rsplit_once('/')?;
            crate::schema::lookup(schema, around)?.get("rule")?.as_str().map(str::to_string)
        })
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

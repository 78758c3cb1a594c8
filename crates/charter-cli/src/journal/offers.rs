//! What a run accepts now, from whom, and what it still needs for that: the one answer to this
//! question for `legal`, `show`, prompts and reports.

use std::collections::{BTreeMap, BTreeSet};

use charter_journal::{Record, Store, Verdict};
use charter_kernel::{Demands, Digest, Legal, Machine, Principal, QuorumState, Snapshot, Timestamp};
use serde_json::Value as Json;

use super::Db;
pub(crate) use super::offer_text::{OTHER_VOTE, other_votes, votes, withheld};
use super::text::clean;
use crate::run::sender_roles;

/// An event that somebody may send now.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) event: Legal,
    /// The roles that may send it; if there are none, anyone may.
    pub(crate) roles: Vec<String>,
    /// Whether the sender needs all of the roles, not one of them.
    pub(crate) needs_all: bool,
    /// The one principal that is known to be able to send it, if a condition names them.
    pub(crate) only: Option<String>,
    pub(crate) demands: Demands,
    /// The data that most of the votes so far were given for, if it was looked up.
    pub(crate) voted_for: Option<Json>,
    /// Whether the principal whose offers these are has voted, so that only other data is a vote.
    pub(crate) has_voted: bool,
}

/// How many records are searched for the data of votes.
const MAX_VOTE_RECORDS: usize = 1_000;

/// Looks up the data that votes were given for, which a snapshot does not keep. Votes for another
/// value than the one that is to be approved now count no more, and are left out.
pub(crate) fn with_votes(mut offers: Vec<Offer>, db: &Db, snapshot: &Snapshot) -> Vec<Offer> {
    if offers.iter().all(|offer| offer.demands.quorum.as_ref().and_then(leading).is_none()) {
        return offers;
    }
    let from = snapshot.seq().saturating_sub(MAX_VOTE_RECORDS as u64);
    let read = |store: Box<dyn Store>| store.records(snapshot.run(), from, MAX_VOTE_RECORDS.saturating_add(1)).ok();
    let records = db.read().ok().and_then(read).unwrap_or_default();
    for offer in &mut offers {
        let is_vote = |r: &&Record| r.verdict == Verdict::Vote && *r.event.r#type == *offer.event.r#type;
        let votes = records.iter().filter(is_vote).map(|r| (Digest::of_json(&r.event.data), &*r.event.data));
        let votes: BTreeMap<Digest, &Json> = votes.collect();
        let Some(quorum) = &mut offer.demands.quorum else { continue };
        if let Some(approval) = &offer.demands.approves {
            quorum.leave_out(|data| {
                let named = votes.get(&data).and_then(|data| data.get("digest")?.as_str().and_then(Digest::parse));
                named.is_some_and(|named| named != approval.digest)
            });
        }
        offer.voted_for = leading(quorum).and_then(|(_, digest)| votes.get(&digest)).map(|data| Json::clone(data));
    }
    offers
}

/// Who has voted for the data that most have voted for, and its digest.
fn leading(quorum: &QuorumState) -> Option<(&Vec<String>, Digest)> {
    let votes = quorum.votes.iter().zip(quorum.data.iter().copied()).filter(|(by, _)| !by.is_empty());
    votes.reduce(|most, other| if other.0.len() > most.0.len() { other } else { most })
}

/// Returns the events that somebody may send now, in the order of their names. What an event needs
/// may differ from role to role: it is offered once for each of these needs.
pub(crate) fn all(machine: &Machine, snapshot: &Snapshot, now: Timestamp) -> Vec<Offer> {
    let mut found: Vec<Offer> = Vec::new();
    let sent_by = |roles: &[&str]| {
        let events = from(machine, snapshot, &Principal::new("", roles), now).into_iter();
        events.map(|(event, demands)| Offer {
            event,
            roles: Vec::new(),
            needs_all: false,
            only: None,
            demands,
            voted_for: None,
            has_voted: false,
        })
    };
    found.extend(sent_by(&[]));
    let unrestricted = found.len();
    let roles: Vec<&str> = sender_roles(machine).collect();
    for role in &roles {
        for mut offer in sent_by(&[*role]) {
            let same = found.iter().position(|known| known.key() == offer.key() && known.needs_as(&offer.demands));
            match same {
                Some(known) if known < unrestricted => {}
                Some(known) => found.get_mut(known).into_iter().for_each(|known| known.roles.push((*role).to_owned())),
                None => {
                    offer.roles.push((*role).to_owned());
                    found.push(offer);
                }
            }
        }
    }
    // The event and its transition may need different roles.
    for mut offer in sent_by(&roles) {
        let key = offer.key();
        if found.iter().any(|known| known.key() == key) {
            continue;
        }
        let may = |roles: &[&str]| may_send(machine, snapshot, &Principal::new("", roles), &key, now);
        offer.roles = all_needed(roles.clone(), may);
        offer.needs_all = true;
        found.push(offer);
    }
    found.retain(|offer| !offer.event.r#type.starts_with("charter."));
    found.sort_by_key(Offer::key);
    found
}

/// Returns the roles, of those that a principal has, with each of which alone it may send an event;
/// or if there are none, those that it needs together (`true`).
fn needed(roles: Vec<&str>, may: impl Fn(&[&str]) -> bool) -> (Vec<String>, bool) {
    if may(&[]) {
        return (Vec::new(), false);
    }
    let one: Vec<String> = roles.iter().filter(|role| may(&[**role])).map(|role| (*role).to_owned()).collect();
    match one.is_empty() {
        false => (one, false),
        true => (all_needed(roles, may), true),
    }
}

/// Returns roles of which none can be left out.
fn all_needed(roles: Vec<&str>, may: impl Fn(&[&str]) -> bool) -> Vec<String> {
    let mut needed = roles.clone();
    for role in &roles {
        let fewer: Vec<&str> = needed.iter().copied().filter(|r| r != role).collect();
        if may(&fewer) {
            needed = fewer;
        }
    }
    needed.into_iter().map(str::to_owned).collect()
}

/// Like [`all`], with the events that only this principal may send, because a condition reads who
/// sends them.
pub(crate) fn all_with(machine: &Machine, snapshot: &Snapshot, by: &Principal, now: Timestamp) -> Vec<Offer> {
    with_own(machine, snapshot, by, now).0
}

/// Returns the events that this principal may send, with what they need from it, and those that
/// only others may.
pub(crate) fn to(machine: &Machine, snapshot: &Snapshot, by: &Principal, now: Timestamp) -> (Vec<Offer>, Vec<Offer>) {
    let (all, mut own) = with_own(machine, snapshot, by, now);
    let (mut may, mut may_not): (Vec<Offer>, Vec<Offer>) = (Vec::new(), Vec::new());
    for of_event in all.chunk_by(|one, other| one.key() == other.key()) {
        let Some(demands) = of_event.first().and_then(|offer| own.remove(&offer.key())) else {
            may_not.extend_from_slice(of_event);
            continue;
        };
        let same = of_event.iter().find(|offer| offer.needs_as(&demands)).or(of_event.first());
        let has_voted = demands.quorum.iter().flat_map(|quorum| &quorum.votes).any(|voters| voters.contains(&by.id));
        may.extend(same.map(|offer| Offer { demands, has_voted, ..offer.clone() }));
    }
    (may, may_not)
}

/// An event that a principal may not send now.
pub(crate) struct Barred {
    pub(crate) kind: String,
    pub(crate) to: String,
    pub(crate) why: String,
}

/// Returns the events that a principal may not send now, although the run is in a state that takes
/// them, with the reason. `others` are those that others may send, in [`to`].
pub(crate) fn barred(
    machine: &Machine,
    snapshot: &Snapshot,
    by: &Principal,
    others: &[Offer],
    now: Timestamp,
) -> Vec<Barred> {
    let reasons = machine.not_legal(snapshot, by, now);
    let reason = |kind: &str, to: &str| {
        let known = reasons.iter().find(|not| not.r#type == kind && not.to == to);
        known.map(|not| clean(&not.reason.message))
    };
    let of_offer = |offer: &Offer| {
        let (kind, to) = offer.key();
        let why = offer.why_not(by).or_else(|| reason(&kind, &to));
        let why = why.unwrap_or_else(|| "a condition on the sender does not hold".to_owned());
        Barred { kind, to, why }
    };
    let mut all: Vec<Barred> = Vec::new();
    for of_event in others.chunk_by(|one, other| one.key() == other.key()) {
        // Somebody who has one of the roles is told the reason for this role.
        match of_event.iter().find(|offer| offer.has_roles(by)).or(of_event.first().filter(|_| of_event.len() == 1)) {
            Some(offer) => all.push(of_offer(offer)),
            None => {
                let roles = of_event.iter().flat_map(|offer| &offer.roles).cloned().collect();
                all.extend(of_event.first().map(|offer| of_offer(&Offer { roles, ..offer.clone() })));
            }
        }
    }
    for not in reasons.iter().filter(|not| !not.r#type.starts_with("charter.")) {
        if !all.iter().any(|barred| barred.kind == not.r#type && barred.to == not.to) {
            all.push(Barred { kind: not.r#type.clone(), to: not.to.clone(), why: clean(&not.reason.message) });
        }
    }
    all
}

/// Returns [`all_with`], and what the events need that the principal may send.
fn with_own(
    machine: &Machine,
    snapshot: &Snapshot,
    by: &Principal,
    now: Timestamp,
) -> (Vec<Offer>, BTreeMap<(String, String), Demands>) {
    let mut all = self::all(machine, snapshot, now);
    let listed: BTreeSet<(String, String)> = all.iter().map(Offer::key).collect();
    let mut own = BTreeMap::new();
    for (event, demands) in from(machine, snapshot, by, now) {
        let only = Some(by.id.clone());
        let (roles, voted_for) = (Vec::new(), None);
        let mut offer = Offer { event, roles, needs_all: false, only, demands, voted_for, has_voted: false };
        let key = offer.key();
        own.insert(key.clone(), offer.demands.clone());
        if !listed.contains(&key) && !key.0.starts_with("charter.") {
            let may = |roles: &[&str]| {
                let roles = roles.iter().map(|role| (*role).to_owned()).collect();
                may_send(machine, snapshot, &Principal { roles, ..by.clone() }, &key, now)
            };
            (offer.roles, offer.needs_all) = needed(by.roles.iter().map(String::as_str).collect(), may);
            all.push(offer);
        }
    }
    (all, own)
}

/// Returns the events that a principal may send now, with what they need.
pub(crate) fn from(machine: &Machine, snapshot: &Snapshot, by: &Principal, now: Timestamp) -> Vec<(Legal, Demands)> {
    let with = |event: Legal| {
        let demands = machine.demands(snapshot, &event.to, &event.r#type, by, now)?;
        Some((event, demands))
    };
    machine.legal(snapshot, by, now).into_iter().filter_map(with).collect()
}

/// Whether a principal may send an event, given by its type and actor.
pub(crate) fn may_send(
    machine: &Machine,
    snapshot: &Snapshot,
    by: &Principal,
    (kind, to): &(String, String),
    now: Timestamp,
) -> bool {
    machine.legal(snapshot, by, now).iter().any(|e| e.r#type == *kind && e.to == *to)
}

/// Whether what an event needs from a principal is what an offer says. Another transition may take
/// the event from somebody who has voted or is excluded.
pub(crate) fn may_send_as(
    machine: &Machine,
    snapshot: &Snapshot,
    by: &Principal,
    offer: &Offer,
    now: Timestamp,
) -> bool {
    let (kind, to) = offer.key();
    let own = machine.demands(snapshot, &to, &kind, by, now);
    // A vote for the same data does not count twice.
    let most = offer.demands.quorum.as_ref().and_then(leading);
    own.is_some_and(|own| own.transition == offer.demands.transition || offer.needs_as(&own))
        && most.is_none_or(|(voters, _)| !voters.contains(&by.id))
        && may_send(machine, snapshot, by, &(kind, to), now)
}

impl Offer {
    /// The type and the actor of the event.
    pub(crate) fn key(&self) -> (String, String) {
        (self.event.r#type.clone(), self.event.to.clone())
    }

    /// Whether the transition with these demands needs the same, so that one report holds for both.
    pub(super) fn needs_as(&self, demands: &Demands) -> bool {
        let needs = |demands: &Demands| {
            let mut needs = demands.clone();
            needs.transition.clear();
            needs
        };
        needs(&self.demands) == needs(demands)
    }

    /// Whether a principal has the roles that the event needs.
    pub(super) fn has_roles(&self, by: &Principal) -> bool {
        let holds = |role: &String| by.roles.contains(role);
        match self.needs_all {
            true => self.roles.iter().all(holds),
            false => self.roles.is_empty() || self.roles.iter().any(holds),
        }
    }
}

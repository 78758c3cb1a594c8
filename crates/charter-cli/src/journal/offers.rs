//! What a run accepts now, from whom, and what it still needs for that: the one answer to this
//! question for `legal`, `show`, prompts and reports.

use std::collections::{BTreeMap, BTreeSet};

use charter_journal::{Record, Store, Verdict};
use charter_kernel::{
    Demands, Digest, Legal, Machine, OtherQuorum, Principal, PrincipalKind, QuorumState, Snapshot, Timestamp, Withheld,
    WithheldBy,
};
use serde_json::{Map, Value as Json};

use super::Db;
use super::text::{clean, count, short};
use crate::run::choice::has_no_other_data;
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

/// Returns the events that somebody may send now, in the order of their names.
pub(crate) fn all(machine: &Machine, snapshot: &Snapshot, now: Timestamp) -> Vec<Offer> {
    let mut found: BTreeMap<(String, String), Offer> = BTreeMap::new();
    let sent_by = |roles: &[&str]| {
        let events = from(machine, snapshot, &Principal::new("", roles), now).into_iter();
        events.map(|(event, demands)| Offer {
            event,
            roles: Vec::new(),
            needs_all: false,
            only: None,
            demands,
            voted_for: None,
        })
    };
    found.extend(sent_by(&[]).map(|offer| (offer.key(), offer)));
    let unrestricted: BTreeSet<(String, String)> = found.keys().cloned().collect();
    let roles: Vec<&str> = sender_roles(machine).collect();
    for role in &roles {
        for offer in sent_by(&[*role]).filter(|offer| !unrestricted.contains(&offer.key())) {
            found.entry(offer.key()).or_insert(offer).roles.push((*role).to_owned());
        }
    }
    // The event and its transition may need different roles.
    for mut offer in sent_by(&roles) {
        let key = offer.key();
        if found.contains_key(&key) {
            continue;
        }
        let may = |roles: &[&str]| may_send(machine, snapshot, &Principal::new("", roles), &key, now);
        offer.roles = all_needed(roles.clone(), may);
        offer.needs_all = true;
        found.insert(key, offer);
    }
    found.retain(|(kind, _), _| !kind.starts_with("charter."));
    found.into_values().collect()
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
    let (mut may, mut may_not) = (Vec::new(), Vec::new());
    for offer in all {
        match own.remove(&offer.key()) {
            Some(demands) => may.push(Offer { demands, ..offer }),
            None => may_not.push(offer),
        }
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
    let mut all: Vec<Barred> = others.iter().map(of_offer).collect();
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
        let mut offer = Offer { event, roles: Vec::new(), needs_all: false, only, demands, voted_for: None };
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
    own.is_some_and(|own| own.transition == offer.demands.transition)
        && most.is_none_or(|(voters, _)| !voters.contains(&by.id))
        && may_send(machine, snapshot, by, &(kind, to), now)
}

impl Offer {
    /// The type and the actor of the event.
    pub(crate) fn key(&self) -> (String, String) {
        (self.event.r#type.clone(), self.event.to.clone())
    }

    /// Renders ` by ROLE or ROLE`, or the one principal; nothing if anyone may send the event.
    pub(crate) fn by(&self) -> String {
        match (&self.only, self.roles.is_empty()) {
            (Some(id), _) => format!(" by {}", clean(id)),
            (None, true) => String::new(),
            (None, false) => {
                let roles: Vec<String> = self.roles.iter().map(|role| clean(role)).collect();
                format!(" by {}", roles.join(if self.needs_all { " and " } else { " or " }))
            }
        }
    }

    /// Like [`Offer::by`], but says ` by anyone` if anyone may send the event.
    pub(crate) fn by_anyone(&self) -> String {
        Some(self.by()).filter(|by| !by.is_empty()).unwrap_or_else(|| " by anyone".to_owned())
    }

    /// Says in a few words why this principal may not send the event, which others may; `None` if
    /// none of the usual reasons applies.
    pub(crate) fn why_not(&self, by: &Principal) -> Option<String> {
        let holds = |role: &String| by.roles.contains(role);
        let has_roles = match self.needs_all {
            true => self.roles.iter().all(holds),
            false => self.roles.is_empty() || self.roles.iter().any(holds),
        };
        let votes = self.demands.quorum.iter().flat_map(|quorum| &quorum.votes).flatten();
        if !has_roles {
            let roles: Vec<String> = self.roles.iter().map(|role| clean(role)).collect();
            return Some(match self.needs_all {
                true => format!("needs the roles {}", roles.join(" and ")),
                false => format!("needs the role {}", roles.join(" or ")),
            });
        }
        if self.demands.not_by.contains(&by.id) {
            return Some(format!("not by {}", clean(&by.id)));
        }
        if votes.into_iter().any(|id| *id == by.id) {
            let other = match self.demands.approves {
                // Its digest is the only data that the event may have.
                Some(_) => "",
                None if self.event.data.as_ref().is_some_and(has_no_other_data) => "",
                None => "; other data is another vote",
            };
            return Some(format!("{} has voted{other}", clean(&by.id)));
        }
        (self.demands.persons_only && by.kind() != PrincipalKind::Person).then(|| "persons only".to_owned())
    }

    /// Renders what the event needs besides a role, e.g. `1 of 2 votes (ana)`. The digest that it
    /// has to name and the conditions are left out.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.demands.quorum.as_ref().map(votes));
        notes.extend(self.demands.also.iter().map(other_votes));
        // What an approval is for is shown in other ways.
        let voted_for = self.voted_for.as_ref().filter(|data| self.demands.approves.is_none() && !is_empty(data));
        notes.extend(voted_for.map(|data| format!("votes are for {}", short(data, 200))));
        if !self.demands.not_by.is_empty() {
            let ids: Vec<String> = self.demands.not_by.iter().map(|id| clean(id)).collect();
            notes.push(format!("not by {}", ids.join(" or ")));
        }
        notes.extend(self.demands.withheld.first().map(withheld));
        if !self.demands.conditions.is_empty() {
            notes.push("depends on the data".to_owned());
        }
        notes
    }

    /// Renders the conditions that the data has to meet: `` if `event.n > 10` ``.
    pub(crate) fn conditions(&self) -> Option<String> {
        let conditions: Vec<String> = self.demands.conditions.iter().map(|c| format!("`{}`", clean(c))).collect();
        (!conditions.is_empty()).then(|| format!("if {}", conditions.join(" or ")))
    }

    /// Renders the notes in parentheses, with a space before them; nothing if there are none.
    pub(crate) fn aside(&self) -> String {
        match self.notes() {
            notes if notes.is_empty() => String::new(),
            notes => format!(" ({})", notes.join("; ")),
        }
    }

    /// The event as JSON.
    pub(crate) fn json(&self) -> Map<String, Json> {
        let mut all = match serde_json::to_value(&self.demands) {
            Ok(Json::Object(demands)) => demands,
            _ => Map::new(),
        };
        all.remove("transition");
        all.insert("type".into(), self.event.r#type.as_str().into());
        all.insert("to".into(), self.event.to.as_str().into());
        all.insert("roles".into(), self.roles.as_slice().into());
        all.extend(self.only.as_ref().map(|id| ("only_by".to_owned(), id.as_str().into())));
        all.extend(self.needs_all.then(|| ("needs_all_roles".to_owned(), true.into())));
        all
    }
}

fn is_empty(data: &Json) -> bool {
    data.as_object().is_some_and(Map::is_empty)
}

/// Says that an event does not take a transition from its sender.
pub(crate) fn withheld(other: &Withheld) -> String {
    let why = match other.why {
        WithheldBy::NotBy => "which `not_by` forbids to you",
        WithheldBy::PersonsOnly => "which is for persons only",
        WithheldBy::AuthenticatedOnly => "which needs an authenticated sender",
        WithheldBy::Voted => "for which you have voted",
        _ => "which you may not take",
    };
    format!("takes another transition than {}, {why}", clean(&other.transition))
}

/// Renders the votes of another quorum: `for s/on/PAY/1, if event.n > 10: needs 2 votes`.
pub(crate) fn other_votes(other: &OtherQuorum) -> String {
    let condition = other.condition.as_ref().map(|c| format!(", if `{}`", clean(c))).unwrap_or_default();
    format!("for {}{condition}: {}", clean(&other.transition), votes(&other.quorum))
}

/// Renders the votes of a quorum: `1 of 2 votes (ana); needs another director`.
pub(crate) fn votes(quorum: &QuorumState) -> String {
    let mut all: Vec<&Vec<String>> = quorum.votes.iter().filter(|by| !by.is_empty()).collect();
    all.sort_by_key(|by| std::cmp::Reverse(by.len()));
    let names = |by: &Vec<String>| by.iter().map(|id| clean(id)).collect::<Vec<_>>().join(", ");
    let Some((most, others)) = all.split_first() else {
        return format!("needs {}", count(quorum.count.into(), "vote"));
    };
    let missing = u64::from(quorum.count).saturating_sub(most.len() as u64);
    let role = match quorum.of.as_slice() {
        [role] => clean(role),
        _ => "principal".to_owned(),
    };
    let needs = match missing {
        0 | 1 => format!("needs another {role}"),
        more => format!("needs {more} more of the role {role}"),
    };
    let mut text = format!("{} of {} votes ({}); {needs}", most.len(), quorum.count, names(most));
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(|by| names(by)).collect();
        text.push_str(&format!("; with other data: {}", others.join("; ")));
    }
    text
}

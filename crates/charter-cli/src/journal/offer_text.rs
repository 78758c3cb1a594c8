//! What an offer says: who may send the event, what it needs from them, and why somebody may not.

use charter_kernel::{OtherQuorum, Principal, PrincipalKind, QuorumState, Withheld, WithheldBy};
use serde_json::{Map, Value as Json};

use super::offers::Offer;
use super::text::{clean, count, short};
use crate::run::choice::has_no_other_data;

/// What follows the reason why somebody who has voted may not send the same data again.
pub(crate) const OTHER_VOTE: &str = "; other data is another vote";

impl Offer {
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
        let votes = self.demands.quorum.iter().flat_map(|quorum| &quorum.votes).flatten();
        if !self.has_roles(by) {
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
                None => OTHER_VOTE,
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
        notes.extend(self.has_voted.then(|| format!("you have voted{OTHER_VOTE}")));
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
    let needs = match (quorum.of.as_slice(), missing) {
        ([role], 0 | 1) => format!("needs another {}", clean(role)),
        ([role], more) => format!("needs {more} more of the role {}", clean(role)),
        (_, 0 | 1) => "needs another principal".to_owned(),
        (_, more) => format!("needs {more} more principals"),
    };
    let mut text = format!("{} of {} votes ({}); {needs}", most.len(), quorum.count, names(most));
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(|by| names(by)).collect();
        text.push_str(&format!("; with other data: {}", others.join("; ")));
    }
    text
}

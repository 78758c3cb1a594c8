//! The commands that are suggested to send an event, answer a task or resume a run. They work when
//! pasted: the sender is somebody who may, and the data is what the schema requires.

use std::cell::OnceCell;

use charter_journal::{Store, Verdict};
use charter_kernel::{Auth, Legal, Machine, Principal, PrincipalKind, Snapshot, Timestamp};
use charter_runtime::Task;
use charter_scenario::example;
use serde_json::Value as Json;

use super::Who;
use super::tries::Tries;
use crate::journal::Db;
use crate::journal::offers::{Offer, may_send_as};
use crate::journal::text::{clean, quoted};
use crate::program;

/// The name of a person who is not the user, in suggested commands.
const SOMEBODY: &str = "somebody-else";

/// What follows a suggested vote, as a comment of the shell.
const KEY_OF_VOTES_TAKEN: &str = "  # another vote: the unique key of the data voted for so far is taken";

/// Suggests commands for a run.
pub(crate) struct Suggest<'a> {
    machine: &'a Machine,
    snapshot: &'a Snapshot,
    who: &'a Who,
    file: String,
    now: Timestamp,
    /// The roles of all offers.
    needed: Vec<String>,
    db: Db,
    tries: Tries<'a>,
    /// The journal, if it was read.
    store: OnceCell<Option<Box<dyn Store>>>,
    /// The unique keys that the run has, with the types of their events.
    own_keys: OnceCell<Vec<(String, Json)>>,
}

/// How many records are searched for unique keys.
const MAX_RECORDS: usize = 1_000;

impl<'a> Suggest<'a> {
    pub(crate) fn new(
        (machine, snapshot): (&'a Machine, &'a Snapshot),
        who: &'a Who,
        db: &Db,
        offers: &[Offer],
        now: Timestamp,
    ) -> Suggest<'a> {
        let needed = offers.iter().flat_map(|offer| offer.roles.clone()).collect();
        Suggest {
            machine,
            snapshot,
            who,
            file: db.host_options(),
            now,
            needed,
            db: db.clone(),
            tries: Tries::new((machine, snapshot), now),
            store: OnceCell::new(),
            own_keys: OnceCell::new(),
        }
    }

    /// The command that sends an event.
    pub(crate) fn send(&self, offer: &Offer) -> String {
        let run = self.snapshot.run();
        let to = match offer.event.to.as_str() {
            "root" => String::new(),
            // The name of an actor may come from data, and must not be read as an option.
            to if to.starts_with('-') => format!(" --to={}", quoted(to)),
            to => format!(" --to {}", quoted(to)),
        };
        // Another vote counts only if it is for the same data, and is refused if another event has
        // its key.
        let (voted_for, taken) = match &offer.voted_for {
            Some(data) if self.has_taken_key(&offer.event.r#type, data) => (None, KEY_OF_VOTES_TAKEN),
            voted_for => (voted_for.clone(), ""),
        };
        let type_name = clean(&offer.event.r#type);
        let Some(data) = voted_for.or_else(|| self.example(offer)) else {
            return format!("(no example was found: send `{type_name}` with JSON that fits its schema)");
        };
        let (sender, by) = match self.sender(offer) {
            Ok(sender) => sender,
            Err(other) => return other,
        };
        let Some(data) = self.tries.accepted(offer, data, &by, |data| self.with_free_key(offer, data)) else {
            let conditions = offer.conditions().map(|conditions| format!(", {conditions}")).unwrap_or_default();
            return format!("(no data was found that the run accepts: send `{type_name}` with other JSON{conditions})");
        };
        let data = argument(&data);
        let (name, kind, file) = (program::name(), quoted(&offer.event.r#type), &self.file);
        match offer.event.r#type.starts_with('-') {
            true => format!("{name} send {run}{to}{sender}{file} -- {kind}{data}{taken}"),
            false => format!("{name} send {run} {kind}{data}{to}{sender}{file}{taken}"),
        }
    }

    /// Example data of an event, with a unique key that is free.
    fn example(&self, offer: &Offer) -> Option<Json> {
        let data = example::data(offer.event.data.as_ref(), offer.demands.approves.as_ref())?;
        self.with_free_key(offer, data)
    }

    /// Data of an event with a unique key that is free.
    fn with_free_key(&self, offer: &Offer, data: Json) -> Option<Json> {
        let Legal { r#type, to, .. } = &offer.event;
        // Two actors that take the same event get different keys.
        let seed = match to.as_str() {
            "root" => self.snapshot.run().to_owned(),
            to => format!("{}-{to}", self.snapshot.run()),
        };
        let next = self.snapshot.seq().saturating_add(1);
        example::with_free_key(self.machine, r#type, data, (&seed, next), &|key| self.is_taken(r#type, key))
    }

    /// Whether the unique key of an event with this data is taken.
    fn has_taken_key(&self, event: &str, data: &Json) -> bool {
        let key = self.machine.unique_key(event, data, &Principal::new(SOMEBODY, &[]));
        key.is_some_and(|key| self.is_taken(event, &key))
    }

    /// Whether a unique key is taken, as far as it can be read: by a run of the journal file, or by
    /// this run, which may be a dry fork or on a server.
    fn is_taken(&self, event: &str, key: &Json) -> bool {
        let (run, seq) = (self.snapshot.run(), self.snapshot.seq());
        let store = self.store.get_or_init(|| self.db.read().ok());
        let own = self.own_keys.get_or_init(|| {
            let from = seq.saturating_sub(MAX_RECORDS as u64);
            let read = |store: &dyn Store| store.records(run, from, MAX_RECORDS.saturating_add(1)).ok();
            let records = store.as_deref().and_then(read).unwrap_or_default();
            let accepted = records.into_iter().filter(|record| record.verdict == Verdict::Accepted);
            accepted.filter_map(|r| Some((r.event.r#type.to_string(), r.unique.as_ref()?.key.clone()))).collect()
        });
        own.iter().any(|(other, taken)| other == event && taken == key)
            || store.as_ref().is_some_and(|store| store.key_holder(event, key).is_ok_and(|holder| holder.is_some()))
    }

    /// The commands that answer and that decline a task.
    pub(crate) fn answer(&self, task: &Task) -> [String; 2] {
        let roles: Vec<String> = self.role(&task.by).cloned().into_iter().collect();
        let who = match self.one_who(&roles, 0, |by| task.is_for(by)) {
            Ok((who, _)) => who,
            Err(other) => return [other.clone(), other],
        };
        let (name, file) = (program::name(), &self.file);
        let command = |what: &str| format!("{name} answer {}{what}{who}{file}", quoted(&task.effect));
        let answer = match example::data(task.output.as_ref(), None).as_ref().map(argument) {
            // What an actor would have answered is given on purpose.
            Some(none) if none.is_empty() && task.dry => command(" '{}'"),
            Some(data) => command(&data),
            None => "(no example was found: answer with JSON that fits the schema)".to_owned(),
        };
        [answer, command(" --decline 'the reason'")]
    }

    /// The command that continues a run.
    pub(crate) fn resume(&self) -> String {
        format!("{} run --resume {}{}", program::name(), self.snapshot.run(), self.file)
    }

    /// The command that ends the pause of a run.
    pub(crate) fn unpause(&self) -> String {
        let (name, run) = (program::name(), self.snapshot.run());
        match self.who.has_key() {
            true => format!("{name} send {run} charter.resume{}", self.file),
            false => format!("{name} send {run} charter.resume {} --role operator{}", self.who.option(), self.file),
        }
    }

    /// Renders `--as` and `--role` of somebody who may send an event: the user, if possible. On a
    /// server, where only others may, says whose key is needed.
    fn sender(&self, offer: &Offer) -> Result<(String, Principal), String> {
        let roles: Vec<String> = match offer.needs_all {
            true => offer.roles.clone(),
            false => self.role(&offer.roles).cloned().into_iter().collect(),
        };
        // Those who have voted or are excluded may have the placeholder's name.
        let voters = offer.demands.quorum.iter().flat_map(|q| &q.votes).map(Vec::len).sum::<usize>();
        let known = voters.saturating_add(offer.demands.not_by.len());
        self.one_who(&roles, known, |by| may_send_as(self.machine, self.snapshot, by, offer, self.now))
    }

    /// Renders `--as` and `--role` of somebody with these roles who may: the user, if possible. At
    /// most `known` ids are excluded besides.
    fn one_who(
        &self,
        roles: &[String],
        known: usize,
        may: impl Fn(&Principal) -> bool,
    ) -> Result<(String, Principal), String> {
        if self.who.has_key() {
            let own = self.who.principal_in(self.machine, self.snapshot.run());
            return match (may(&own), roles) {
                (true, _) => Ok((String::new(), own)),
                (false, []) => Err("(needs the key of somebody else)".to_owned()),
                (false, roles) => {
                    let roles: Vec<String> = roles.iter().map(|role| clean(role)).collect();
                    Err(format!("(needs the key of somebody else with the role {})", roles.join(" and ")))
                }
            };
        }
        let options: String = roles.iter().map(|role| format!(" --role {}", quoted(role))).collect();
        let principal = |id: &str, kind| {
            let by = Principal { roles: roles.to_vec(), ..Principal::new(id, &[]) };
            by.of_kind(kind).authenticated(Auth::Local)
        };
        let user = principal(self.who.id(), self.who.kind);
        let as_user = format!(" {}{options}", self.who.option());
        if may(&user) {
            return Ok((as_user, user));
        }
        let names = (2..=known.saturating_add(2)).map(|number| format!("{SOMEBODY}-{number}"));
        let somebody =
            std::iter::once(SOMEBODY.to_owned()).chain(names).map(|id| principal(&id, PrincipalKind::Person));
        Ok(match somebody.into_iter().find(|by| may(by)) {
            Some(by) => (format!(" --as {}{options}", by.id), by),
            None => (as_user, user),
        })
    }

    /// Chooses a role: one that the user has, else the one that the fewest events need.
    fn role<'r>(&self, roles: &'r [String]) -> Option<&'r String> {
        let has = match self.who.has_key() {
            true => self.who.principal_in(self.machine, self.snapshot.run()).roles,
            false => self.who.role.clone(),
        };
        let own = roles.iter().find(|role| has.contains(role));
        own.or_else(|| roles.iter().min_by_key(|role| self.needed.iter().filter(|other| other == role).count()))
    }
}

/// Renders data as an argument, with a space before it; nothing for data that may be left out.
fn argument(data: &Json) -> String {
    match data {
        Json::Object(data) if data.is_empty() => String::new(),
        data => format!(" '{}'", data.to_string().replace('\'', "'\\''")),
    }
}

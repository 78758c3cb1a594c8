//! The commands that are suggested to send an event, answer a task or resume a run. They work when
//! pasted: the sender is somebody who may, and the data is what the schema requires.

use charter_kernel::{Auth, Machine, Principal, PrincipalKind, Snapshot, Timestamp};
use charter_runtime::Task;
use charter_scenario::example;
use serde_json::Value as Json;

use super::{Who, differing};
use crate::journal::Db;
use crate::journal::offers::{Offer, may_send_as};
use crate::journal::text::{clean, quoted};
use crate::program;

/// The name of a person who is not the user, in suggested commands.
const SOMEBODY: &str = "somebody-else";

/// Suggests commands for a run.
pub(crate) struct Suggest<'a> {
    machine: &'a Machine,
    snapshot: &'a Snapshot,
    who: &'a Who,
    file: String,
    now: Timestamp,
    /// The roles of all offers.
    needed: Vec<String>,
}

impl<'a> Suggest<'a> {
    pub(crate) fn new(
        (machine, snapshot): (&'a Machine, &'a Snapshot),
        who: &'a Who,
        db: &Db,
        offers: &[Offer],
        now: Timestamp,
    ) -> Suggest<'a> {
        let needed = offers.iter().flat_map(|offer| offer.roles.clone()).collect();
        Suggest { machine, snapshot, who, file: db.host_options(), now, needed }
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
        // Another vote counts only if it is for the same data.
        let voted_for = offer.voted_for.clone();
        let example = || example::data(offer.event.data.as_ref(), offer.demands.approves.as_ref());
        let differs = |data| differing::for_run(self.machine, self.snapshot.run(), &offer.event, data);
        let Some(data) = voted_for.or_else(|| example().map(differs)).as_ref().map(argument) else {
            let kind = clean(&offer.event.r#type);
            return format!("(no example was found: send `{kind}` with JSON that fits its schema)");
        };
        let sender = match self.sender(offer) {
            Ok(sender) => sender,
            Err(other) => return other,
        };
        let (name, kind, file) = (program::name(), quoted(&offer.event.r#type), &self.file);
        match offer.event.r#type.starts_with('-') {
            true => format!("{name} send {run}{to}{sender}{file} -- {kind}{data}"),
            false => format!("{name} send {run} {kind}{data}{to}{sender}{file}"),
        }
    }

    /// The commands that answer and that decline a task.
    pub(crate) fn answer(&self, task: &Task) -> [String; 2] {
        let roles: Vec<String> = self.role(&task.by).cloned().into_iter().collect();
        let who = match self.one_who(&roles, 0, |by| task.is_for(by)) {
            Ok(who) => who,
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
    fn sender(&self, offer: &Offer) -> Result<String, String> {
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
    fn one_who(&self, roles: &[String], known: usize, may: impl Fn(&Principal) -> bool) -> Result<String, String> {
        if self.who.has_key() {
            let own = self.who.principal_in(self.machine, self.snapshot.run());
            return match (may(&own), roles) {
                (true, _) => Ok(String::new()),
                (false, []) => Err("(needs the key of somebody else)".to_owned()),
                (false, roles) => {
                    let roles: Vec<String> = roles.iter().map(|role| clean(role)).collect();
                    Err(format!("(needs the key of somebody else with the role {})", roles.join(" and ")))
                }
            };
        }
        let options: String = roles.iter().map(|role| format!(" --role {}", quoted(role))).collect();
        let may = |id: &str, kind| {
            let by = Principal { roles: roles.to_vec(), ..Principal::new(id, &[]) };
            may(&by.of_kind(kind).authenticated(Auth::Local))
        };
        if may(self.who.id(), self.who.kind) {
            return Ok(format!(" {}{options}", self.who.option()));
        }
        let names = (2..=known.saturating_add(2)).map(|number| format!("{SOMEBODY}-{number}"));
        let free = std::iter::once(SOMEBODY.to_owned()).chain(names).find(|id| may(id, PrincipalKind::Person));
        Ok(match free {
            Some(id) => format!(" --as {id}{options}"),
            None => format!(" {}{options}", self.who.option()),
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

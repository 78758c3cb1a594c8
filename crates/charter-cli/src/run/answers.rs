//! Tells the user at the start of a run which models answer its invocations, or that offline rules,
//! a mock or a script do: such answers must not be mistaken for a model's.

use std::collections::BTreeMap;

use charter_journal::{LastModel, Store as _};
use charter_kernel::Machine;
use charter_kernel::definition::ActorDecl;
use charter_runtime::{Charter, View};
use serde_json::Value as Json;

use super::host::{Host, Place};
use crate::io::{Failure, Io, Paint};
use crate::journal::text::clean;
use crate::models::{self, Answerer};

impl Host {
    /// The model that each actor asked last, those when the run began, and those that actors ask
    /// now, unless a server hosts the run.
    fn asked(&self, run: &str, charter: &Charter) -> Result<Option<(Vec<LastModel>, Models, Models)>, Failure> {
        match &*self.place.borrow() {
            Place::Own(own) => {
                let begun = charter.manifest().models;
                Ok(Some((own.store.last_models(run)?, begun, own.runtime.models(charter))))
            }
            Place::Other(client) => Ok(self.threads.block_on(client.models(run)).ok().map(|models| {
                let last = models.last.into_iter().map(|(actor, model, address)| LastModel { actor, model, address });
                (last.collect(), models.begun, models.now)
            })),
            Place::Remote(_) | Place::Closed => Ok(None),
        }
    }

    /// What answers for models: its name, and of which kind it is.
    pub(crate) fn models(&self) -> (String, Answerer) {
        let place = self.place.borrow();
        let about = match &*place {
            Place::Own(own) => &own.about,
            Place::Other(client) => client.about(),
            Place::Remote(_) | Place::Closed => &Json::Null,
        };
        models::told(about)
    }
}

/// Where the answers of a charter's actors come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// A model, or the `offline` rules.
    Model,
    /// The mock inference of an automaton.
    Mock,
    /// A script.
    Script,
    /// Actors that no model replaces.
    Other,
}

impl Answers {
    fn of(view: &View) -> Answers {
        let actors = &view.charter.machine().definition().actors;
        // Read the adapter as the input of the actor does.
        let adapter = || {
            let config = view.snapshot.actor("root")?.variable("config")?;
            config.get("inference.adapter")?.as_str()
        };
        if actors.values().any(asks) {
            return Answers::Model;
        }
        if actors.values().any(infers) {
            return match adapter() {
                Some("model") => Answers::Model,
                Some("mock") => Answers::Mock,
                _ => Answers::Other,
            };
        }
        match actors.values().any(|a| a.kind == "scripted") {
            true => Answers::Script,
            false => Answers::Other,
        }
    }
}

/// The models of actors, each as `PROVIDER:NAME at ADDRESS`, the first one first.
pub(super) type Models = BTreeMap<String, Vec<String>>;

/// What to tell about an actor that another model answers for than before, or rules instead of one.
/// `last` is the model that it asked last; `begun` and `now` are those when the run began and now.
fn changed(actor: &str, last: Option<&LastModel>, begun: &[String], now: &[String]) -> Option<String> {
    let named = |models: &[String]| models.first().map(|first| first.replacen(" at ", "` at ", 1));
    let rules = "rules of the charter";
    let last = last.map(|last| format!("{} at {}", last.model, last.address));
    let before = match &last {
        Some(last) if now.contains(last) => return None,
        Some(last) => format!("until now, `{} answered", last.replacen(" at ", "` at ", 1)),
        None if begun == now => return None,
        None => match named(begun) {
            Some(first) => format!("the run began with `{first}"),
            None => format!("the run began with {rules}"),
        },
    };
    let after = match named(now) {
        Some(first) => format!("from now on, `{first} answers"),
        None => format!("from now on, {rules} answer"),
    };
    let how = "to go on as before, stop, and select its model with `--models`, `--model` or the environment";
    Some(format!("{before} for `{actor}`; {after}; {how}"))
}

/// Whether a model, or the `offline` rules, answer for an actor.
fn asks(actor: &ActorDecl) -> bool {
    actor.kind == "model" || actor.config.get("by").and_then(Json::as_str) == Some("model")
}

/// Whether an actor is the inference of an automaton.
fn infers(actor: &ActorDecl) -> bool {
    actor.kind == "automaton" && actor.config.get("part").and_then(Json::as_str) == Some("inference")
}

/// Whether actors of a charter may ask a model.
pub(super) fn may_ask(machine: &Machine) -> bool {
    machine.definition().actors.values().any(|actor| asks(actor) || infers(actor))
}

/// Who answers for the actors of a charter: one name, or one for each group of actors.
fn by_actor(view: &View, now: &Models) -> String {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let actors = &view.charter.machine().definition().actors;
    for (name, _) in actors.iter().filter(|(name, actor)| asks(actor) || now.contains_key(*name)) {
        let first = now.get(name).and_then(|models| models.first());
        let who = first.map_or("rules of the charter", |model| model.split(" at ").next().unwrap_or(model));
        groups.entry(clean(who)).or_default().push(name);
    }
    let is_one = groups.len() == 1;
    let told = groups.into_iter().map(|(who, actors)| match is_one {
        true => who,
        false => format!("{who} for {}", clean(&actors.join(", "))),
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The word before a line of [`changes`].
pub(super) const ANOTHER: &str = "another answerer:";

/// What to tell about the actors of a run that another model answers for here than before, by
/// actor.
pub(super) fn changes(run: &str, view: &View, host: &Host) -> Result<BTreeMap<String, String>, Failure> {
    Ok(match host.asked(run, &view.charter)? {
        Some((last, begun, now)) => changes_of(view, &last, &begun, &now),
        None => BTreeMap::new(),
    })
}

/// Like [`changes`], from the models that were asked last, when the run began, and now.
pub(super) fn changes_of(view: &View, last: &[LastModel], begun: &Models, now: &Models) -> BTreeMap<String, String> {
    match Answers::of(view) {
        // No actor is called for a dry fork.
        Answers::Model if !view.dry => between(&view.charter, last, begun, now),
        _ => BTreeMap::new(),
    }
}

/// Compares the models of a charter's actors when a run began, those asked last, and those now.
pub(super) fn between(charter: &Charter, last: &[LastModel], begun: &Models, now: &Models) -> BTreeMap<String, String> {
    let actors = charter.machine().definition().actors.keys();
    let told = actors.filter_map(|actor| {
        let of = |models: &Models| models.get(actor).cloned().unwrap_or_default();
        let last = last.iter().find(|last| last.actor == *actor);
        Some((actor.clone(), clean(&changed(actor, last, &of(begun), &of(now))?)))
    });
    told.collect()
}

/// What to tell about actors that name a model although there is none, so that rules answer.
pub(crate) fn unanswered(charter: &Charter) -> Vec<String> {
    let actors = &charter.machine().definition().actors;
    let told = actors.iter().filter(|(_, actor)| asks(actor)).filter_map(|(name, actor)| {
        let text = |key: &str| actor.config.get(key).and_then(Json::as_str);
        let model = text("model")?;
        let (provider, model) = match text("provider") {
            Some(provider) => (provider, model),
            None => model.split_once(':')?,
        };
        let how = models::how_to_offer(provider);
        let said = format!(
            "offline rules answer for `{name}`, although the charter asks for `{provider}:{model}`: {how}, or `--model offline` to have the rules answer"
        );
        Some(clean(&said))
    });
    told.collect()
}

/// Writes [`unanswered`], unless rules were chosen; returns whether there is something to tell.
pub(super) fn warn(charter: &Charter, host: &Host, io: &mut Io<'_>) -> Result<bool, Failure> {
    let told = if host.models().1 == Answerer::NoModel { unanswered(charter) } else { Vec::new() };
    for line in &told {
        writeln!(io.err, "{} {line}", Paint(io.color_err).warning("models:"))?;
    }
    Ok(!told.is_empty())
}

/// Writes what [`changes`] tells about a run that is left to its host, unless that host was started
/// for it and has told it.
pub(super) fn leave(run: &str, host: &Host, io: &mut Io<'_>) -> Result<(), Failure> {
    let changes = if host.started.get() { BTreeMap::new() } else { changes(run, &host.view(run)?, host)? };
    say(changes.values(), io)
}

/// Writes the lines of [`changes`].
pub(super) fn say(lines: impl IntoIterator<Item = impl AsRef<str>>, io: &mut Io<'_>) -> Result<(), Failure> {
    let word = Paint(io.color_err).warning(ANOTHER);
    lines.into_iter().try_for_each(|line| Ok(writeln!(io.err, "{word} {}", line.as_ref())?))
}

/// Writes the lines, and how to choose a model. `changes` is what [`changes`] tells.
pub(super) fn write(
    run: &str,
    view: &View,
    host: &Host,
    changes: &BTreeMap<String, String>,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let (paint, answers) = (Paint(io.color_err), Answers::of(view));
    let (title, answerer) = host.models();
    say(changes.values(), io)?;
    let offline = match answers {
        Answers::Model if answerer.is_offline() => "no model is called; simple rules of the charter answer instead",
        Answers::Model => {
            // A cassette answers for all actors.
            let asked = if answerer == Answerer::Cassette { None } else { host.asked(run, &view.charter)? };
            let who = asked.map_or(title, |(.., now)| by_actor(view, &now));
            writeln!(io.err, "{}", paint.faint(&format!("models: {who}")))?;
            return Ok(());
        }
        Answers::Mock => "no model is called; a mock of the program answers instead (`inference.adapter` is `mock`)",
        Answers::Script => "no model is called; the actors answer from a script",
        Answers::Other => return Ok(()),
    };
    writeln!(io.err, "{} {offline}", paint.warning("offline:"))?;
    if answers != Answers::Model || answerer == Answerer::Rules {
        return Ok(());
    }
    if warn(&view.charter, host, io)? {
        return Ok(());
    }
    let more = match host.other() {
        // A warning has said so.
        Some(_) if host.models.is_given() => return Ok(()),
        Some(client) => format!("process {} chooses the models; to use another one, end it first", client.pid()),
        None => "to use a model, set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or pass `--model`".to_owned(),
    };
    writeln!(io.err, "{}", paint.faint(&more))?;
    Ok(())
}

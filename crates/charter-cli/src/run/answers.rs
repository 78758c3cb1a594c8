//! Tells the user at the start of a run which models answer its invocations, or that offline rules,
//! a mock or a script do: such answers must not be mistaken for a model's.

use charter_journal::LastModel;
use charter_kernel::definition::ActorDecl;
use charter_runtime::View;
use serde_json::Value as Json;

use super::host::Host;
use crate::io::{Failure, Io, Paint};
use crate::journal::text::clean;

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
        let text = |actor: &ActorDecl, key: &str, is: &str| actor.config.get(key).and_then(Json::as_str) == Some(is);
        let infers = |actor: &ActorDecl| actor.kind == "automaton" && text(actor, "part", "inference");
        // Read the adapter as the input of the actor does.
        let adapter = || {
            let config = view.snapshot.actor("root")?.variable("config")?;
            config.get("inference.adapter")?.as_str()
        };
        if actors.values().any(|a| a.kind == "model" || text(a, "by", "model")) {
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

/// Whether a model is the one that the title of a host names, perhaps with its cassette.
fn is_of(title: &str, model: &str) -> bool {
    title.strip_prefix(model).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Writes the line, and how to choose a model.
pub(super) fn write(run: &str, view: &View, host: &Host, io: &mut Io<'_>) -> Result<(), Failure> {
    let (paint, answers) = (Paint(io.color_err), Answers::of(view));
    let (title, offline) = host.models();
    let changed: Vec<LastModel> = match answers {
        Answers::Model if offline || title.contains(':') => host.last_models(run)?,
        _ => Vec::new(),
    };
    for last in changed.iter().filter(|last| offline || !is_of(&title, &last.model)) {
        let LastModel { actor, model, address } = last;
        let now = if offline { "rules of the charter answer" } else { "another model answers" };
        let line = format!(
            "until now, `{model}` at {address} answered for `{actor}`; from now on, {now}: to go on with it, stop, and choose it as before"
        );
        writeln!(io.err, "{} {}", paint.warning("another answerer:"), clean(&line))?;
    }
    let offline = match answers {
        Answers::Model if offline => "no model is called; simple rules of the charter answer instead",
        Answers::Model => {
            let who = format!("models: {title}");
            writeln!(io.err, "{}", paint.faint(&who))?;
            return Ok(());
        }
        Answers::Mock => "no model is called; a mock of the program answers instead (`inference.adapter` is `mock`)",
        Answers::Script => "no model is called; the actors answer from a script",
        Answers::Other => return Ok(()),
    };
    writeln!(io.err, "{} {offline}", paint.warning("offline:"))?;
    if answers == Answers::Model {
        let more = "to use a model, set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or pass `--model`";
        writeln!(io.err, "{}", paint.faint(more))?;
    }
    Ok(())
}

//! Findings about actors that `charter run` would refuse: invalid configurations and unknown kinds.

use std::cmp::Reverse;

use charter_actors::{ConfigError, FolderError};
use charter_check::{Finding, Report, Severity};
use charter_expr::nearest;
use charter_expr::pointer::join;
use charter_format::Diagnostic;
use charter_runtime::ActorError;
use serde_json::Value as Json;

use crate::io::Failure;
use crate::load::Loaded;
use crate::run::setup;

/// Codes of these findings; each has a page in `docs/codes/`.
pub mod codes {
    /// The executor of an actor rejects its configuration.
    pub const ACTOR_CONFIG: &str = "actor-config";
    /// `charter run` has no executor for the kind of an actor.
    pub const ACTOR_KIND: &str = "actor-kind";
    /// All codes.
    pub const ALL: [&str; 2] = [ACTOR_CONFIG, ACTOR_KIND];
}

/// Adds the findings to a report.
pub(super) fn add(loaded: &Loaded, report: &mut Report) -> Result<(), Failure> {
    let (objections, kinds) = setup::objections(loaded)?;
    if objections.is_empty() {
        return Ok(());
    }
    let found = objections.iter().map(|o| finding(loaded, o, &kinds));
    report.findings.extend(found);
    // Sort as in any report: most severe first, then by position.
    report.findings.sort_by_key(|f| (Reverse(f.severity), f.span));
    Ok(())
}

fn finding(loaded: &Loaded, objection: &ActorError, kinds: &[String]) -> Finding {
    let (name, why) = (&objection.actor, objection.error.to_string());
    let at = join("/actors", name);
    let ConfigError::UnknownKind { kind, .. } = &objection.error else {
        let at = match key(loaded, name, &why) {
            Some(key) => format!("{at}/config{key}"),
            None => at,
        };
        let message = format!("actor `{name}`: {why}");
        // What is missing on this machine only is no mistake in the charter.
        let (severity, help) = match is_local(loaded, name, &objection.error) {
            true => (Severity::Warning, "`charter run` refuses this charter on this machine until it is there"),
            false => (Severity::Error, "correct the configuration: `charter run` refuses this charter"),
        };
        return placed(loaded, severity, codes::ACTOR_CONFIG, at, message, help.to_owned());
    };
    if let Some(build) = setup::not_built_in(kind) {
        let message = format!("actor `{name}`: {build}");
        let help = "`charter run` of this program refuses this charter".to_owned();
        return placed(loaded, Severity::Warning, codes::ACTOR_KIND, format!("{at}/kind"), message, help);
    }
    let message = format!("actor `{name}`: `charter run` has no executor for the kind `{kind}`");
    // Other hosts may have other executors, but a name close to one of ours is probably a typo.
    let near = nearest(kind, kinds.iter().map(String::as_str)).filter(|near| near != kind);
    let (severity, help) = match near {
        Some(near) => (Severity::Warning, format!("did you mean `{near}`?")),
        None => (Severity::Info, "a host of your own can provide one (crate `charter-runtime`)".to_owned()),
    };
    let at = format!("{at}/kind");
    placed(loaded, severity, codes::ACTOR_KIND, at, message, help)
}

/// Whether the error is about this machine: a program that is not there, or no folder for files.
fn is_local(loaded: &Loaded, name: &str, error: &ConfigError) -> bool {
    match error {
        ConfigError::Folder(FolderError::NotFound(file)) => {
            let command = loaded.document.definition.actors.get(name).and_then(|actor| actor.config.get("command"));
            let program = command.and_then(|words| words.get(0)).and_then(serde_json::Value::as_str);
            program.is_some_and(|program| file.ends_with(program.trim_start_matches("./")))
        }
        ConfigError::Folder(FolderError::NoFolder(_) | FolderError::NotInFileSystem) => true,
        _ => false,
    }
}

/// Finds the key of the actor that the message quotes, or whose value it quotes, as a pointer.
fn key(loaded: &Loaded, name: &str, why: &str) -> Option<String> {
    let actor = loaded.document.definition.actors.get(name)?;
    let mut quoted = why.split('`').skip(1).step_by(2);
    quoted.find_map(|word| {
        let outer = word.split('.').next().unwrap_or_default();
        actor.config.iter().find_map(|(key, value)| {
            let at = join("", key);
            match value {
                Json::String(text) if text == word => Some(at),
                Json::Array(words) if words.iter().any(|one| one == word) => {
                    words.iter().position(|one| one == word).map(|index| format!("{at}/{index}"))
                }
                Json::Object(map) if map.contains_key(word) => Some(join(&at, word)),
                _ => (key == outer).then_some(at),
            }
        })
    })
}

fn placed(
    loaded: &Loaded,
    severity: Severity,
    code: &'static str,
    at: String,
    message: String,
    help: String,
) -> Finding {
    let place = loaded.document.placed(&at, None, Diagnostic::warning(code, Default::default(), ""));
    Finding {
        severity,
        code,
        verdict: None,
        bytes: None,
        path: place.path,
        span: (place.span.start, place.span.end),
        line: place.line,
        column: place.column,
        message,
        help: Some(help),
        help_in_import: None,
        input: None,
        witness: Vec::new(),
        after: Vec::new(),
        file: place.file,
        at,
    }
}

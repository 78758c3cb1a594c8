//! How this program sets up a host: executors, secrets, charters with their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use charter_actors::{Executors, FindSecret, Folder, Network};
use charter_journal::StoredCharter;
use charter_models::{Model, Models, cassette::Cassette};
use charter_runtime::{ActorError, Charter, Options};

use crate::bundled;
use crate::io::Failure;
use crate::load::{Loaded, load};
use crate::models::{self, Recording};

/// Returns the host options with the executors of this program.
pub(crate) fn options(models: Models, network: &Network, secrets: FindSecret) -> Options {
    let options = Options { find_folder: Arc::new(folder_of), ..Options::default() };
    let mut options = options
        .executor("model", models)
        .executor("exec", exec(secrets.clone()))
        .executor("http", charter_actors::Http::default().network(network).secrets(secrets.clone()))
        .executor("tool", tools(secrets));
    charter_automaton::host::add_executors(&mut options.executors);
    options
}

/// Commands have the `PATH` and `LANG` of this program, and find it by its name, wherever it is.
fn exec(secrets: FindSecret) -> charter_actors::Exec {
    let mut exec = charter_actors::Exec::default().secrets(secrets);
    exec.env.extend(["PATH", "LANG"].into_iter().filter_map(|name| Some((name.to_owned(), variable(name)?))));
    let own = std::env::current_exe().ok();
    if let (Some(folder), Some(path)) = (own.as_deref().and_then(Path::parent), exec.env.get_mut("PATH")) {
        path.push(':');
        path.push_str(&folder.to_string_lossy());
    }
    exec
}

/// Like [`options`], but for checking a charter before a journal file exists.
fn options_for_check(models: Models, network: &Network, secrets: FindSecret) -> Options {
    let options = options(models, network, secrets);
    // This executor creates no file until it is called.
    #[cfg(unix)]
    let options = options.executor("workspace", charter_actors::Workspaces::new("."));
    options
}

/// Returns the executors that a host of this program has, to ask them about actors.
pub(crate) fn executors() -> Executors {
    options_for_check(Models::offline(), &Network::default(), secrets()).executors
}

/// Checks, as far as possible without a journal file, that a run of a charter can start. Creates no
/// file.
pub(crate) fn admits(charter: &Charter, run: Option<&str>, models: &models::Args) -> Result<(), Failure> {
    let chosen = models::choose(models, &variable, Recording::Check)?;
    let options = options_for_check(chosen.models, &chosen.network, secrets());
    Ok(options.admits(charter, run)?)
}

/// Returns what `charter run` would reject in the actors of a charter, regardless of the configured
/// models and secrets; and the kinds of actors that this program supports.
pub(crate) fn objections(loaded: &Loaded) -> Result<(Vec<ActorError>, Vec<String>), Failure> {
    if loaded.document.definition.actors.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let charter = hosted(loaded)?;
    let models = match (Model::parse("openai:any"), Cassette::parse("")) {
        (Ok(model), Ok(silent)) => Models::asking(model, silent),
        _ => Models::offline(),
    };
    let mut options = options_for_check(models, &Network::default(), Arc::new(|_: &str| Some("some".to_owned())));
    let kinds = options.executors.keys().cloned().collect();
    if cfg!(not(feature = "tools")) {
        options.executors.remove("tool");
    }
    Ok((options.actor_errors(&charter), kinds))
}

/// Says how to build this program for a kind of actors that it could have, but was built without.
pub(crate) fn not_built_in(kind: &str) -> Option<&'static str> {
    (kind == "tool" && cfg!(not(feature = "tools"))).then_some(NO_TOOLS)
}

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Looks up secrets. The secret `NAME` is the variable `CHARTER_SECRET_NAME`, so that a charter
/// cannot read any other variable.
pub(crate) fn secrets() -> FindSecret {
    Arc::new(|name: &str| {
        let value = std::env::var(format!("CHARTER_SECRET_{name}")).ok()?;
        (!value.is_empty()).then_some(value)
    })
}

#[cfg(feature = "tools")]
fn tools(secret: FindSecret) -> charter_models::Tools {
    charter_models::Tools { secret, ..charter_models::Tools::default() }
}

#[cfg(not(feature = "tools"))]
fn tools(_: FindSecret) -> absent::Tools {
    absent::Tools
}

/// Why there is no executor for `tool`, and what to do.
const NO_TOOLS: &str = "MCP tools are not built into this program: build it with `--features tools`";

/// The executor for `tool` if tools are not built in.
#[cfg(not(feature = "tools"))]
mod absent {
    use charter_actors::{BoxFuture, Call, ConfigError, Executor, Fault, Folder, Outcome};

    use super::NO_TOOLS as WHY;

    pub(in crate::run) struct Tools;

    impl Executor for Tools {
        fn check(&self, _: &str, _: &charter_kernel::definition::ActorDecl, _: &Folder) -> Result<(), ConfigError> {
            Err(ConfigError::Other(WHY.into()))
        }

        fn call(&self, _: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
            Box::pin(async { Err(Fault::new("config", WHY)) })
        }
    }
}

/// Loads a charter with its files, for the host.
pub(crate) fn charter(what: &str) -> Result<Charter, Failure> {
    hosted(&load(what)?)
}

pub(crate) fn hosted(loaded: &Loaded) -> Result<Charter, Failure> {
    let folder = match &loaded.path {
        Some(path) => Folder::Dir(folder(path).to_owned()),
        None => bundled_folder(&loaded.name),
    };
    Ok(Charter::new(&loaded.document, folder)?)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Finds the folder of a charter in the journal, for what runs use in place: where it was read, or
/// in the binary.
pub(super) fn folder_of(stored: &StoredCharter) -> Folder {
    let path = Path::new(&stored.name);
    match path.is_absolute() {
        true => Folder::Dir(folder(path).to_owned()),
        false => bundled_folder(&stored.name),
    }
}

/// Finds the folder of a bundled charter; `name` has the form `charters/NAME/charter.yaml`, as in
/// `load`.
fn bundled_folder(name: &str) -> Folder {
    let parts = name.strip_prefix("charters/").and_then(|n| n.strip_suffix("/charter.yaml"));
    match parts.and_then(bundled::find) {
        Some(charter) => {
            let texts = charter.files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            Folder::Texts(Arc::new(texts.collect::<BTreeMap<_, _>>()))
        }
        None => Folder::None,
    }
}

/// The folders for sockets that cannot be beside their journal file.
pub(super) fn socket_folders() -> Vec<PathBuf> {
    let runtime = variable("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("charter"));
    #[cfg(unix)]
    let own = format!("charter-{}", rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    let own = "charter";
    runtime.into_iter().chain([std::env::temp_dir().join(own)]).collect()
}

//! `charter guard init CLIENT`: everything that puts an agent under control, written after it was
//! shown.

use std::path::{Path, PathBuf};

use charter_guard::client::Client;
use charter_guard::gate::input_of;
use charter_kernel::Principal;
use charter_runtime::Start;
use serde_json::{Map, Value as Json, json};

use super::fit;
use super::mcp::{self, Mcp};
use crate::bundled;
use crate::hook::install::{Change, InstallArgs, RUN, apply, read};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::exclude::excluded;
use crate::journal::text::quoted;
use crate::models;
use crate::run::host::{Host, Opener};
use crate::run::{Who, new_run, setup};

/// The bundled charter for coding agents.
pub(super) const CHARTER: &str = "coder";

/// Writes what puts the agent of a client under control.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("server", |server| server.hide(true)), mut_arg("server_key", |key| key.hide(true)))]
pub(super) struct Args {
    /// claude, codex, gemini, copilot, opencode, cursor or goose
    client: Client,
    /// The folder of the project, in which the agent works [default: the current folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The id of the run that decides
    #[arg(long, value_name = "RUN", default_value = RUN, value_parser = new_run)]
    run: String,
    /// The command that tests the project, such as `cargo test`
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// Let the host of the run run the tests, with its rights, instead of the agent; always in a
    /// new run for Codex, which does not say how a command ended
    #[arg(long)]
    host_tests: bool,
    /// Further input of the run: a JSON object
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    db: Db,
}

pub(super) fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.file_only("guard init")?;
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = dir.canonicalize().map_err(|e| Failure::new(format!("`{}`: {e}", dir.display())))?;
    let mut changes = charter_files(&dir)?;
    let hook = InstallArgs::for_init(args.client, &args.run, &dir, args.dry_run, &args.db);
    let mut by_hand = Vec::new();
    changes.extend(hook.changes(&mut by_hand)?);
    let mut paste = None;
    match mcp::configure(args.client, &args.run, &dir, &args.db, &changes)? {
        Mcp::File(change) => match changes.iter_mut().find(|other| other.path == change.path) {
            Some(same) => same.new = change.new,
            None => changes.push(change),
        },
        Mcp::Paste(text) => paste = Some(text),
        Mcp::NotChanged(why) => by_hand.push(why),
    }
    changes.extend(excluded(&dir, &args.db)?);
    let input = args.run_input(&dir)?;
    if !machine_output && io.terminal && !args.dry_run {
        for change in changes.iter().filter(|change| change.old != change.new) {
            write!(io.err, "{}", change.diff())?;
        }
        writeln!(io.err, "starts run `{}` in {} with the input {input}", args.run, args.db.name())?;
        if !io.confirm("write this?")? {
            writeln!(io.err, "nothing was changed")?;
            return Ok(Exit::No);
        }
    }
    apply(&changes, args.dry_run, machine_output, io)?;
    if args.dry_run {
        if !machine_output {
            writeln!(io.err, "would start run `{}` in {} with the input {input}", args.run, args.db.name())?;
        }
        return left(&by_hand, io);
    }
    by_hand.extend(start(args, &dir, input, io)?);
    key(args, io)?;
    let exit = left(&by_hand, io)?;
    if machine_output {
        return Ok(exit);
    }
    let paint = Paint(io.color_err);
    if let Some(paste) = paste {
        writeln!(io.err, "add the MCP server yourself, {paste}")?;
    }
    let options = args.options();
    let option = args.db.option();
    for (command, what) in [
        (format!("charter guard doctor{options}"), "tests the hook, and says what is enforced"),
        (format!("charter serve{option}"), "approvals in the inbox"),
    ] {
        writeln!(io.err, "{}", paint.faint(&format!("{command}  # {what}")))?;
    }
    Ok(exit)
}

/// Says what is left for the user to do.
pub(super) fn left(by_hand: &[String], io: &mut Io<'_>) -> Result<Exit, Failure> {
    for what in by_hand {
        writeln!(io.err, "{} {what}", Paint(io.color_err).warning("left to do:"))?;
    }
    Ok(if by_hand.is_empty() { Exit::Yes } else { Exit::No })
}

/// The files of the charter, unless the project has them.
fn charter_files(dir: &Path) -> Result<Vec<Change>, Failure> {
    let Some(charter) = bundled::find(CHARTER) else {
        return Err(Failure::new(format!("this program has no bundled charter `{CHARTER}`")));
    };
    let folder = dir.join("charters").join(CHARTER);
    if folder.join("charter.yaml").exists() {
        return Ok(Vec::new());
    }
    let scenarios = charter.scenarios.iter().map(|(name, text)| (format!("scenarios/{name}"), *text));
    let files = charter.files.iter().map(|(name, text)| ((*name).to_owned(), *text));
    let all = std::iter::once(("charter.yaml".to_owned(), charter.source)).chain(scenarios).chain(files);
    all.map(|(name, text)| {
        let path = folder.join(name);
        let old = read(&path)?;
        Ok(Change { path, new: Some(old.clone().unwrap_or_else(|| text.to_owned())), old })
    })
    .collect()
}

impl Args {
    /// The options that a suggested command for the same project needs.
    fn options(&self) -> String {
        let dir = self.dir.as_ref().map(|dir| format!(" --dir {}", quoted(&dir.display().to_string())));
        format!("{}{}", dir.unwrap_or_default(), self.db.option())
    }

    /// Says what a run with this input cannot do. What it was asked for in vain is left to do.
    fn limits(&self, input: &Json, io: &mut Io<'_>) -> Result<Option<String>, Failure> {
        if input.get("test").is_none() {
            let text = format!(
                "the run `{}` names no test command, so nothing can be committed in it; `--test COMMAND` names one, with \
                 `--run ID` for another run",
                self.run
            );
            writeln!(io.err, "{}", Paint(io.color_err).warning(&text))?;
        }
        let asked = self.host_tests && !fit::is_by_host(input);
        Ok(fit::untested(self.client, &self.run, input, &self.options()).or_else(|| {
            asked.then(|| {
                format!(
                    "in the run `{}` the agent runs the tests; `--host-tests` needs another one: `--run ID`",
                    self.run
                )
            })
        }))
    }

    /// The input of the run.
    fn run_input(&self, dir: &Path) -> Result<Json, Failure> {
        let mut input = match &self.input {
            Some(text) => match crate::input::json_or_file("--input", text)? {
                Json::Object(members) => members,
                _ => return Err(Failure::new("`--input` must be a JSON object")),
            },
            None => Map::new(),
        };
        input.entry("workspace").or_insert_with(|| json!(dir.display().to_string()));
        if let Some(test) = &self.test {
            input.insert("test".into(), json!(test));
        }
        if self.host_tests || self.client == Client::Codex {
            input.entry("testsBy").or_insert_with(|| json!("host"));
        }
        Ok(Json::Object(input))
    }
}

/// Starts the run, unless there is one; returns what is left to do because it does not fit.
fn start(args: &Args, dir: &Path, input: Json, io: &mut Io<'_>) -> Result<Option<String>, Failure> {
    let folder = dir.join("charters").join(CHARTER);
    let charter = setup::charter(&folder.display().to_string())?;
    args.db.check_new()?;
    let host = Host::open(&args.db, &models::Args::default(), Opener::Here)?;
    let started = (|| {
        if host.call(|b| b.run(args.run.clone()))?.is_some() {
            let unused = if args.test.is_some() || args.input.is_some() || args.host_tests {
                ": its input is not changed; `--run ID` starts another one"
            } else {
                ""
            };
            writeln!(io.err, "run `{}` exists already, and stays as it is{unused}", args.run)?;
            let first = host.call(|b| b.records(args.run.clone(), 0, 1))?.into_iter().next();
            return first.map_or(Ok(None), |first| args.limits(&input_of(&first), io));
        }
        host.call(|b| b.add(charter.clone()))?;
        let by: Principal = Who::unnamed().principal_in(charter.machine(), &args.run);
        let start = Start { charter: charter.digest(), run: Some(args.run.clone()), input: input.clone(), by };
        let done = host.call(|b| b.start_in(start.clone(), charter.stored().name.clone()))?;
        match done.is_refused() {
            true => {
                let why = done.record.explanation(Some(charter.machine())).map(|e| e.message).unwrap_or_default();
                Err(Failure::new(format!("the run was not started: {why}")))
            }
            false => {
                let charter = &charter.machine().definition().id;
                writeln!(io.err, "run `{}` of the charter `{charter}` started", args.run)?;
                args.limits(&input, io)
            }
        }
    })();
    host.close(io);
    started
}

/// Adds a key for the person who decides, unless the journal has keys.
#[cfg(feature = "serve")]
fn key(args: &Args, io: &mut Io<'_>) -> Result<(), Failure> {
    use charter_guard::gate::ROLE;
    use charter_kernel::PrincipalKind;
    use charter_server::identity::{Grant, NewKey, Office};

    use crate::serve::key::{failure, with_office};

    let machine = setup::charter(CHARTER)?;
    let roles = machine.machine().definition().roles.keys().filter(|role| *role != ROLE);
    let grants = roles.map(|role| Grant { role: role.clone(), charter: Some(CHARTER.into()), run: None }).collect();
    let user = crate::serve::user();
    let note = Some("made by `charter guard init`".to_owned());
    let id = std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
    let key = NewKey { id: id.clone(), kind: PrincipalKind::Person, grants, expires: None, note };
    with_office(&args.db, io, |host, office, io| {
        if office.directory().has_keys() {
            return Ok(Exit::Yes);
        }
        let secret = host.threads.block_on(office.add(key, Office::owner(&user))).map_err(failure)?;
        writeln!(io.err, "your key for `charter serve`, shown this once; keep it from the agent:")?;
        writeln!(io.out, "{}", secret.reveal())?;
        Ok(Exit::Yes)
    })?;
    Ok(())
}

#[cfg(not(feature = "serve"))]
fn key(_: &Args, _: &mut Io<'_>) -> Result<(), Failure> {
    Ok(())
}

//! `charter hook install CLIENT` and `uninstall`: the configuration that calls the hook.

use std::path::{Path, PathBuf};

use charter_guard::client::Client;
use charter_guard::config::{self, Level, Setup};
use serde_json::json;

use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::text::quoted;
use crate::load::plain;

/// The run of a hook that names none.
pub(crate) const RUN: &str = "coder";
/// Bytes of a new file that are shown before it is written.
const MAX_SHOWN_BYTES: usize = 6_000;
/// Maximum size of a configuration in bytes.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// Where the configuration is.
#[derive(Debug, Clone, clap::Args)]
pub struct Where {
    /// The user's own configuration, for all projects
    #[arg(long, conflicts_with = "managed")]
    user: bool,
    /// The configuration of the machine, which only its administrator can change (Claude Code)
    #[arg(long)]
    managed: bool,
    /// The folder of the project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show the change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Adds the hook to the configuration of a client.
#[derive(Debug, Clone, clap::Args)]
pub struct InstallArgs {
    /// claude, codex, gemini, copilot, opencode, cursor or goose
    client: Client,
    /// The run that decides
    #[arg(long, value_name = "RUN", default_value = RUN)]
    run: String,
    /// Role of the agent in the run (repeatable) [default: agent]
    #[arg(long = "role", value_name = "ROLE", value_parser = crate::run::not_the_host)]
    roles: Vec<String>,
    /// Allow legal calls, so that the client does not ask its own questions
    #[arg(long)]
    grant: bool,
    /// Let the client ask its user when a call waits for a person; the answer is no approval
    #[arg(long)]
    ask: bool,
    /// Also tell the agent what is due before it stops
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    db: Db,
}

/// Removes the hook from the configuration of a client.
#[derive(Debug, Clone, clap::Args)]
pub struct UninstallArgs {
    /// claude, codex, gemini, copilot, opencode, cursor or goose
    client: Client,
    #[command(flatten)]
    place: Where,
}

/// A change of a file: what it was, and what it is to be. `None`: there is no file.
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

impl Where {
    fn level(&self) -> Level {
        match (self.user, self.managed) {
            (_, true) => Level::Managed,
            (true, _) => Level::User,
            _ => Level::Project,
        }
    }

    fn root(&self) -> Result<PathBuf, Failure> {
        root(self.level(), self.dir.as_deref())
    }

    fn file(&self, client: Client) -> Result<PathBuf, Failure> {
        let file = config::file(client, self.level()).map_err(|e| Failure::new(e.to_string()))?;
        Ok(self.root()?.join(file))
    }
}

/// The folder below which the files of a level are.
pub(crate) fn root(level: Level, dir: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = match level {
        Level::Project => dir.map_or_else(|| PathBuf::from("."), Path::to_owned),
        Level::User => std::env::var_os("HOME")
            .map(PathBuf::from)
            .ok_or_else(|| Failure::new("the home folder is not known: HOME is not set"))?,
        Level::Managed => PathBuf::from("/"),
    };
    std::path::absolute(&given).map_err(|e| Failure::new(format!("`{}`: {}", given.display(), plain(&e))))
}

/// Adds the hook.
///
/// # Errors
/// The configuration cannot be read, or something in it would be lost.
pub fn install(args: &InstallArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut by_hand = Vec::new();
    let changes = args.changes(&mut by_hand)?;
    if let Some(what) = by_hand.pop() {
        return Err(Failure::new(what));
    }
    let exit = apply(&changes, args.place.dry_run, machine_output, io)?;
    if !machine_output {
        writeln!(io.err, "{}", Paint(io.color_err).faint(note(args.client, args.place.level())))?;
    }
    if let Some(warning) = args.blocked()? {
        writeln!(io.err, "{} {warning}", Paint(io.color_err).warning("warning:"))?;
    }
    Ok(exit)
}

/// Removes the hook.
///
/// # Errors
/// The configuration cannot be read.
pub fn uninstall(args: &UninstallArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut by_hand = Vec::new();
    let changes = args.changes(&mut by_hand)?;
    if let Some(what) = by_hand.pop() {
        return Err(Failure::new(what));
    }
    let exit = apply(&changes, args.place.dry_run, machine_output, io)?;
    if !machine_output
        && args.place.level() == Level::Project
        && crate::guard::has_server(args.client, &args.place.root()?)?
    {
        let text = format!("the MCP server of Charter stays; `charter guard uninstall {}` removes both", args.client);
        writeln!(io.err, "{}", Paint(io.color_err).faint(&text))?;
    }
    Ok(exit)
}

impl UninstallArgs {
    /// The same for `charter guard uninstall`.
    pub(crate) fn for_guard(client: Client, dir: &Path) -> UninstallArgs {
        let place = Where { user: false, managed: false, dir: Some(dir.to_owned()), dry_run: false };
        UninstallArgs { client, place }
    }

    /// The changes of files, and what nobody but the user can change.
    pub(crate) fn changes(&self, by_hand: &mut Vec<String>) -> Result<Vec<Change>, Failure> {
        let path = self.place.file(self.client)?;
        let mut changes = Vec::new();
        if let Some(old) = read(&path)? {
            let new = match config::uninstall(self.client, &old) {
                Ok(new) => new,
                Err(e) => {
                    by_hand.push(not_changed(&path, &e).to_string());
                    return Ok(changes);
                }
            };
            if let (None, Some((file, text))) = (&new, config::beside(self.client)) {
                let path = self.place.root()?.join(file);
                let old = read(&path)?;
                let new = old.clone().filter(|old| old != text);
                changes.push(Change { path, old, new });
            }
            changes.push(Change { path, old: Some(old), new });
        }
        Ok(changes)
    }
}

impl InstallArgs {
    /// The same for `charter guard init`.
    pub(crate) fn for_init(client: Client, run: &str, dir: &Path, dry_run: bool, db: &Db) -> InstallArgs {
        let place = Where { user: false, managed: false, dir: Some(dir.to_owned()), dry_run };
        let (roles, run) = (Vec::new(), run.to_owned());
        InstallArgs { client, run, roles, grant: false, ask: false, stop: false, place, db: db.clone() }
    }

    /// The changes of files, and what nobody but the user can change.
    pub(crate) fn changes(&self, by_hand: &mut Vec<String>) -> Result<Vec<Change>, Failure> {
        let path = self.place.file(self.client)?;
        if Client::ALL.iter().any(|client| client.name() == self.run) {
            return Err(Failure::new(format!("`--run {}`: a run with the name of a client has no hooks", self.run)));
        }
        let old = read(&path)?;
        let setup = Setup { client: self.client, command: self.command()?, stop: self.stop };
        let mut changes = Vec::new();
        match setup.install(old.as_deref()) {
            Ok(new) => changes.push(Change { path, old, new: Some(new) }),
            Err(e) => by_hand.push(not_changed(&path, &e).to_string()),
        }
        if let Some((file, text)) = config::beside(self.client) {
            let path = self.place.root()?.join(file);
            let old = read(&path)?;
            changes.push(Change { new: Some(old.clone().unwrap_or_else(|| text.to_owned())), old, path });
        }
        Ok(changes)
    }

    /// Whose calls the hook will block because its journal is not there for them.
    fn blocked(&self) -> Result<Option<String>, Failure> {
        if self.db.remote()?.is_some() {
            return Ok(None);
        }
        let db = std::path::absolute(&self.db.db)?;
        let (client, run, db_name) = (self.client, quoted(&self.run), db.display());
        Ok(match self.place.level() {
            Level::Managed => Some(format!(
                "the hook asks the journal `{db_name}`, which only the user to whom it belongs can open: each call of all \
                 other users is blocked. For all users, let it ask a server: \
                 `charter hook install {client} --managed --run {run} --server URL`"
            )),
            _ if !db.exists() => Some(format!(
                "there is no journal `{db_name}`, so each call is blocked until it has a run {run}; `--db FILE` names \
                 another one, `--server URL` a server, and `charter guard init {client}` makes both run and journal"
            )),
            _ => None,
        })
    }

    /// The command line of the hook.
    fn command(&self) -> Result<String, Failure> {
        let mut words = vec![program(), "hook".into(), quoted(&self.run), "--client".into(), self.client.to_string()];
        for role in &self.roles {
            words.extend(["--role".to_owned(), quoted(role)]);
        }
        words.extend(self.grant.then(|| "--grant".to_owned()));
        words.extend(self.ask.then(|| "--ask".to_owned()));
        match self.db.remote()? {
            Some(remote) => words.extend(["--server".to_owned(), quoted(remote.url())]),
            None => {
                let db = std::path::absolute(&self.db.db)?;
                words.extend(["--db".to_owned(), quoted(&db.display().to_string())]);
            }
        }
        Ok(words.join(" "))
    }
}

/// The program as a shell finds it from any folder: by its name if that leads to it, else by its
/// path.
pub(crate) fn program() -> String {
    let Ok(own) = std::env::current_exe() else { return "charter".into() };
    let same = |folder: PathBuf| {
        let found = folder.join("charter").canonicalize();
        found.is_ok_and(|found| own.canonicalize().is_ok_and(|own| own == found))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    // The first one that has the name is the one that is started.
    match folders.find(|folder| folder.join("charter").is_file()) {
        Some(folder) if same(folder.clone()) => "charter".into(),
        _ => quoted(&own.display().to_string()),
    }
}

pub(crate) fn not_changed(path: &Path, e: &config::ConfigError) -> Failure {
    Failure::new(format!("`{}`: {e}", path.display()))
}

/// Reads a configuration; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    use std::io::Read as _;
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read `{}`: {}", path.display(), plain(&e)));
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(e)),
    };
    let mut text = String::new();
    file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    match text.len() as u64 > MAX_CONFIG_BYTES {
        true => Err(Failure::new(format!("`{}` has more than {MAX_CONFIG_BYTES} bytes", path.display()))),
        false => Ok(Some(text)),
    }
}

/// Shows changes, and makes them.
pub(crate) fn apply(changes: &[Change], dry_run: bool, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let real: Vec<&Change> = changes.iter().filter(|change| change.old != change.new).collect();
    for change in &real {
        if !machine_output {
            write!(io.out, "{}", change.diff())?;
        }
        if !dry_run {
            change.make()?;
        }
    }
    if machine_output {
        let files: Vec<String> = real.iter().map(|change| change.path.display().to_string()).collect();
        writeln!(io.out, "{}", json!({"changed": files, "dry_run": dry_run}))?;
    } else if real.is_empty() {
        writeln!(io.err, "nothing to change")?;
    } else if dry_run {
        writeln!(io.err, "nothing was changed (`--dry-run`)")?;
    }
    Ok(Exit::Yes)
}

impl Change {
    /// The change as a unified diff; of a long new file, its name and size.
    pub(crate) fn diff(&self) -> String {
        let path = self.path.display().to_string();
        if let (None, Some(new)) = (&self.old, &self.new)
            && new.len() > MAX_SHOWN_BYTES
        {
            return format!("new file {path} ({} lines)\n", new.lines().count());
        }
        let name = |text: &Option<String>| if text.is_some() { path.clone() } else { "/dev/null".into() };
        let (old, new) = (self.old.clone().unwrap_or_default(), self.new.clone().unwrap_or_default());
        let diff = similar::TextDiff::from_lines(old.as_str(), new.as_str());
        diff.unified_diff().context_radius(3).header(&name(&self.old), &name(&self.new)).to_string()
    }

    /// Replaces the file as a whole, or removes it with the folders that are empty then.
    pub(crate) fn make(&self) -> Result<(), Failure> {
        let cannot = |e: std::io::Error| Failure::new(format!("cannot write `{}`: {}", self.path.display(), plain(&e)));
        // A link stays one.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let folder = path.parent().unwrap_or(Path::new("/"));
        match &self.new {
            Some(text) => {
                std::fs::create_dir_all(folder).map_err(cannot)?;
                let mut name = path.file_name().unwrap_or_default().to_owned();
                name.push(format!(".charter-{}", std::process::id()));
                let beside = path.with_file_name(name);
                std::fs::write(&beside, text).map_err(cannot)?;
                if let Ok(old) = std::fs::metadata(&path) {
                    std::fs::set_permissions(&beside, old.permissions()).map_err(cannot)?;
                }
                std::fs::rename(&beside, &path).map_err(|e| {
                    let _ = std::fs::remove_file(&beside);
                    cannot(e)
                })
            }
            None => {
                std::fs::remove_file(&path).map_err(cannot)?;
                // Only those that are empty can be removed.
                let _ = std::fs::remove_dir(folder);
                Ok(())
            }
        }
    }
}

/// What the user has to know about a client.
fn note(client: Client, level: Level) -> &'static str {
    match (client, level) {
        (Client::Claude, Level::Managed) => "Claude Code cannot switch these hooks off",
        (Client::Claude, _) => {
            "an agent with your user id can rewrite this file, or set `disableAllHooks`; `--managed` writes where it cannot"
        }
        (Client::Codex, _) => "Codex skips hooks that are not trusted: trust this one with `/hooks` in Codex",
        (Client::Copilot, Level::Project) => {
            "Copilot CLI skips these hooks, and says nothing, until the folder is trusted; those of `--user` it does not"
        }
        (Client::Gemini, _) => "an agent with your user id can rewrite this file",
        (Client::Cursor | Client::Goose, _) => {
            "written from the documentation of the client and not tried with it: `charter guard doctor` tests the hook, not the client"
        }
        _ => "an agent with your user id can rewrite this file; keep it under review",
    }
}

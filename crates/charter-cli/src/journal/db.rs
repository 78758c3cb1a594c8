//! The options that select a journal: a file, or a server.

use std::path::{Path, PathBuf};

use charter_journal::{Deletion, RunFilter, RunInfo, SqliteStore, Store};
use charter_remote::{Remote, RemoteStore};

use super::{exists, is_folder, is_journal, open, other_file, overdue, text};
use crate::io::{Failure, Io};

/// The default journal file, in the current folder.
const DEFAULT: &str = "charter.db";

/// The journal file of a command that names none: `CHARTER_DB`, or `charter.db` in the current
/// folder.
pub(crate) fn usual() -> PathBuf {
    let named = std::env::var_os("CHARTER_DB").filter(|file| !file.is_empty());
    named.map_or_else(|| DEFAULT.into(), PathBuf::from)
}

/// How another journal file is selected.
const SELECT: &str = "select another file with `--db FILE` or the environment variable CHARTER_DB";

/// The option `--db`.
#[derive(Debug, Clone, clap::Args)]
pub struct Db {
    /// Journal file; the environment variable CHARTER_DB sets the default
    #[arg(long, value_name = "FILE", default_value_os_t = usual())]
    pub db: PathBuf,
    /// Use the journal of this server instead of a file; CHARTER_SERVER sets the default
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The key for the server; better in CHARTER_KEY, where other users do not see it
    #[arg(id = "server_key", long = "key", value_name = "KEY")]
    key: Option<String>,
    /// What a command that hosts runs says besides, for suggested commands that do.
    #[arg(skip)]
    host: String,
}

impl Db {
    /// The option for a file.
    pub(crate) fn of_file(path: &Path) -> Db {
        Db { db: path.to_owned(), server: None, key: None, host: String::new() }
    }

    /// The same journal, for a command that hosts its runs with these options about models.
    pub(crate) fn hosted_with(&self, models: &crate::models::Args) -> Db {
        Db { host: models.options(), ..self.clone() }
    }

    /// Opens the journal file for reading, or the server; another process may be writing.
    ///
    /// # Errors
    /// The journal file does not exist or cannot be opened.
    pub fn read(&self) -> Result<Box<dyn Store>, Failure> {
        match self.remote()? {
            Some(remote) => Ok(Box::new(RemoteStore(remote))),
            None => Ok(Box::new(open(&self.db, SELECT)?)),
        }
    }

    /// The server to use: the one that is named, or that of the environment unless a file is named.
    ///
    /// # Errors
    /// The address cannot be that of a server.
    pub(crate) fn remote(&self) -> Result<Option<Remote>, Failure> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let usual = || set("CHARTER_SERVER").filter(|_| self.db == usual());
        let Some(url) = self.server.clone().or_else(usual) else {
            return Ok(None);
        };
        let key = self.key.clone().or_else(|| set("CHARTER_KEY"));
        let remote = Remote::new(&url, key.as_deref()).map_err(|e| Failure::new(e.to_string()))?;
        Ok(Some(remote))
    }

    /// Refuses a command that works on a journal file only.
    ///
    /// # Errors
    /// A server is named.
    pub(crate) fn file_only(&self, command: &str) -> Result<(), Failure> {
        match self.remote()? {
            None => Ok(()),
            Some(remote) => Err(Failure::with_help(
                format!("`charter {command}` works on a journal file, not on the server {}", remote.url()),
                "run it on the machine of the server, or name a file with `--db FILE`",
            )),
        }
    }

    /// Like [`Db::read`]; warns if records are missing that were acknowledged, because what the
    /// command shows is then not everything.
    ///
    /// # Errors
    /// See [`Db::read`].
    pub(crate) fn read_and_warn(&self, io: &mut Io<'_>) -> Result<Box<dyn Store>, Failure> {
        if let Some(remote) = self.remote()? {
            return Ok(Box::new(RemoteStore(remote)));
        }
        // A process that has the file open has compared the head, and is changing it.
        let at_rest = overdue::has_no_holder(self);
        let store = self.read()?;
        let problems = match at_rest {
            // `verify` reports a head that cannot be read.
            true => store.check_head(&[], false).map(|check| check.problems).unwrap_or_default(),
            false => Vec::new(),
        };
        for problem in &problems {
            writeln!(io.err, "warning: {}; run `charter verify {}`", text::clean(problem), self.name())?;
        }
        Ok(store)
    }

    /// Checks that the journal file exists, before it is opened for writing.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.remote()?.is_some() {
            return Ok(());
        }
        exists(&self.db, SELECT)
    }

    /// Renders ` --db FILE` for a suggested command; empty for the file that a command uses anyway.
    pub(crate) fn option(&self) -> String {
        match &self.server {
            Some(server) => format!(" --server {}", text::quoted(server)),
            None if self.db == usual() => String::new(),
            None => format!(" --db {}", self.name()),
        }
    }

    /// The options for a suggested command that hosts runs, as this one does.
    pub(crate) fn host_options(&self) -> String {
        format!("{}{}", self.option(), self.host)
    }

    /// Renders the journal file for a suggested command.
    pub(crate) fn name(&self) -> String {
        let name = self.db.display().to_string();
        // It must not be read as an option.
        text::quoted(&if name.starts_with('-') { format!("./{name}") } else { name })
    }

    /// Finds a run of the journal by its id, or by a unique prefix of it.
    ///
    /// # Errors
    /// No run or several runs match.
    pub(crate) fn find(&self, store: &dyn Store, name: &str) -> Result<RunInfo, Failure> {
        match store.run(name)? {
            Some(run) => Ok(run),
            None => self.find_among(&store.runs(&RunFilter::default())?, name),
        }
    }

    /// Finds a run by a unique prefix of its id among all runs of a journal.
    pub(crate) fn find_among(&self, all: &[RunInfo], name: &str) -> Result<RunInfo, Failure> {
        let mut found = all.iter().filter(|r| r.run.starts_with(name));
        match (found.next(), found.next()) {
            (Some(one), None) if !name.is_empty() => Ok(one.clone()),
            (Some(one), Some(two)) => {
                let more = found.count();
                let more = match more {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Err(Failure::with_help(
                    format!("`{name}` is ambiguous: several runs start with it"),
                    format!("`{}`, `{}`{more}", one.run, two.run),
                ))
            }
            _ => {
                if let Some(deleted) = self.deleted(name) {
                    let help = format!("its records are gone; `charter runs{}` lists the others", self.option());
                    return Err(Failure::with_help(deleted, help));
                }
                let near = charter_expr::nearest(name, all.iter().map(|r| r.run.as_str()));
                let help = match near {
                    _ if is_journal(name) => {
                        format!("pass a journal file with `--db`: `charter runs --db {name}` lists its runs")
                    }
                    Some(near) => format!("did you mean `{near}`?"),
                    None if all.is_empty() => "the journal file has no runs yet".to_owned(),
                    None => format!("`charter runs{}` lists them", self.option()),
                };
                let message = format!("run `{name}` not found in this journal file");
                Err(Failure::with_help(message, help))
            }
        }
    }

    /// Says when and by whom a run was deleted; `None` if it was not, or this is not known.
    pub(super) fn deleted(&self, run: &str) -> Option<String> {
        let deleted = self.deletion(run)?;
        let (day, time) = text::day_and_time(deleted.at);
        let (by, reason) = (text::clean(&deleted.by), text::clean(&deleted.reason));
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        Some(format!("run `{run}` was deleted on {day} at {time} UTC by {by}{reason}"))
    }

    /// How a run was deleted from the journal file.
    fn deletion(&self, run: &str) -> Option<Deletion> {
        let file = self.remote().ok()?.is_none();
        file.then(|| SqliteStore::open_read_only(&self.db).ok()?.deletion(run).ok()?).flatten()
    }

    /// Checks that the journal file can be created, or is one, before it is opened for writing.
    ///
    /// # Errors
    /// It cannot be created, or is another file.
    pub(crate) fn check_new(&self) -> Result<(), Failure> {
        if self.remote()?.is_some() {
            return Ok(());
        }
        if let Some(folder) = self.db.parent().filter(|f| !f.as_os_str().is_empty())
            && !folder.is_dir()
        {
            return Err(Failure::new(format!(
                "the folder of the journal file, `{}`, does not exist",
                folder.display()
            )));
        }
        if self.db.is_dir() {
            return Err(is_folder(&self.db));
        }
        match std::fs::metadata(&self.db).is_ok_and(|found| found.len() > 0 || !found.is_file()) {
            true => other_file(&self.db),
            false => Ok(()),
        }
    }
}

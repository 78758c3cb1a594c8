//! The Git repository that a workspace is in: what is not committed, and a branch with a commit for
//! the changes of a cycle.
//!
//! The program `git` does it, with an environment of its own: no configuration but that of the
//! repository, no hooks, no monitor, no prompts. Contents are committed byte by byte, without
//! filters.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::changeset::Changeset;
use crate::error::{Context as _, Error};
use crate::store::Store;

/// Where `git` and what it starts are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long a command of `git` may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of characters of what it says in an error.
const MAX_SAID: usize = 600;
/// How often it is looked at.
const TICK: Duration = Duration::from_millis(5);

/// The repository that a folder is in.
#[derive(Debug, Clone)]
pub struct Repository {
    folder: PathBuf,
    /// Path of the folder in the repository, empty or with `/` at the end.
    prefix: String,
    /// The id of no object.
    none: String,
}

/// The commit of a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The branch, which is checked out.
    pub branch: String,
    /// The id of the commit.
    pub commit: String,
}

/// What is committed, and what the message says.
#[derive(Debug, Clone, Copy)]
pub struct CommitRequest<'a> {
    /// The new branch, such as `sentinel/run/1`.
    pub branch: &'a str,
    /// The applied changes.
    pub changeset: &'a Changeset,
    /// Lines `Name: value` at the end of the message. They identify the commit: a branch that has
    /// them already is the one of an earlier attempt.
    pub trailers: &'a [(&'a str, String)],
}

/// The trailer with the branch on which a branch is based.
const BASE: &str = "Base";

impl Repository {
    /// Finds the repository of a folder; `None` if it is in none.
    ///
    /// # Errors
    /// There is no `git`, or it cannot use the repository.
    pub fn find(folder: &Path) -> Result<Option<Repository>, Error> {
        if !folder.ancestors().any(|folder| folder.join(".git").exists()) {
            return Ok(None);
        }
        let mut found = Repository { folder: folder.to_owned(), prefix: String::new(), none: String::new() };
        found.prefix = found.line(&["rev-parse", "--show-prefix"])?;
        let format = found.line(&["rev-parse", "--show-object-format"])?;
        found.none = "0".repeat(if format == "sha256" { 64 } else { 40 });
        Ok(Some(found))
    }

    /// The checked-out branch, which has a commit.
    ///
    /// # Errors
    /// No branch is checked out, or it has no commit.
    pub fn branch(&self) -> Result<String, Error> {
        let why = "no branch with a commit is checked out; switch to one, or leave `git` out of the input";
        let branch = self.line(&["symbolic-ref", "--short", "HEAD"]).map_err(|_| Error::Usage(why.into()))?;
        self.line(&["rev-parse", "--verify", "HEAD^{commit}"]).map_err(|_| Error::Usage(why.into()))?;
        Ok(branch)
    }

    /// The tracked files of the repository that differ from the last commit, relative to the folder
    /// if they are in it, sorted.
    ///
    /// # Errors
    /// `git` fails.
    pub fn uncommitted(&self) -> Result<Vec<String>, Error> {
        let status = ["status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"];
        let printed = self.run(&status, &[], None)?;
        let mut paths = BTreeSet::new();
        for entry in printed.split('\0').filter_map(|entry| entry.get(3..)) {
            paths.insert(match entry.strip_prefix(&self.prefix) {
                Some(inside) => inside.to_owned(),
                None => format!("/{entry}"),
            });
        }
        Ok(paths.into_iter().collect())
    }

    /// Checks what a commit of these changes needs, before they are made: the files are in the last
    /// commit as they are, and the branch is free.
    ///
    /// # Errors
    /// Something is missing; the error says what to do.
    pub fn can_commit(&self, branch: &str, changeset: &Changeset, store: &Store) -> Result<(), Error> {
        self.branch()?;
        if self.tip(branch)?.is_some() {
            let why = format!("the branch `{branch}` exists already; delete or rename it, or choose another run id");
            return Err(Error::Usage(why));
        }
        let uncommitted = self.uncommitted()?;
        let head = self.entries("HEAD")?;
        for change in changeset.changes() {
            let path = change.path.as_str();
            let conflict = |why: &str| Err(Error::Conflict { path: path.to_owned(), why: why.to_owned() });
            if uncommitted.iter().any(|one| one == path) {
                return conflict("has changes that are not committed; commit or stash them first");
            }
            let there = head.get(&format!("{}{path}", self.prefix)).map(|entry| entry.id.as_str());
            let Some(old) = change.old_sha256 else {
                if there.is_some() {
                    return conflict("is in the last commit, but not in the folder; commit that it is deleted");
                }
                continue;
            };
            if there != Some(self.hash(&store.get(old)?, false)?.as_str()) {
                return conflict("is not in the last commit as it is, or a filter of Git, such as LFS, changes it");
            }
        }
        Ok(())
    }

    /// Commits applied changes on a new branch, and checks it out; files are not touched. What is
    /// staged otherwise stays staged.
    ///
    /// # Errors
    /// `git` fails.
    pub fn commit(&self, order: CommitRequest<'_>) -> Result<Committed, Error> {
        let (reference, trailers) = (format!("refs/heads/{}", order.branch), trailers(order.trailers));
        let entries = self.new_entries(order.changeset)?;
        let commit = match self.tip(order.branch)? {
            // An earlier attempt was interrupted.
            Some(commit) if has(&self.message(&commit)?, &trailers) => commit,
            Some(_) => {
                let why = format!("the branch `{}` exists already; delete or rename it", order.branch);
                return Err(Error::Usage(why));
            }
            None => {
                let base = self.branch()?;
                let head = self.line(&["rev-parse", "HEAD"])?;
                let index = self.folder.join(self.line(&["rev-parse", "--git-path", "charter-index"])?);
                let name = [("GIT_INDEX_FILE", index.to_string_lossy().into_owned())];
                let tree = self
                    .run(&["read-tree", "HEAD"], &name, None)
                    .and_then(|_| self.run(&["update-index", "-z", "--index-info"], &name, Some(entries.as_bytes())))
                    .and_then(|_| self.run(&["write-tree"], &name, None));
                let _ = std::fs::remove_file(&index);
                let message = format!("{}\n\n{trailers}{BASE}: {base}\n", order.changeset.summary());
                let tree = tree?;
                let made = ["commit-tree", tree.trim(), "-p", &head];
                let commit = self.run(&made, &[], Some(message.as_bytes()))?.trim().to_owned();
                // Only if there is still no such branch.
                self.run(&["update-ref", "--create-reflog", &reference, &commit, ""], &[], None)?;
                commit
            }
        };
        self.run(&["update-index", "-z", "--index-info"], &[], Some(entries.as_bytes()))?;
        self.run(&["symbolic-ref", "-m", "sentinel: the changes of a cycle", "HEAD", &reference], &[], None)?;
        Ok(Committed { branch: order.branch.to_owned(), commit })
    }

    /// Checks the branch out again on which a branch is based, after its files were put back; the
    /// branch stays. Does nothing if another one is checked out, or the base has moved.
    ///
    /// # Errors
    /// `git` fails.
    pub fn leave(&self, branch: &str, marks: &[(&str, String)]) -> Result<bool, Error> {
        let Some(commit) = self.tip(branch)? else {
            return Ok(false);
        };
        let message = self.message(&commit)?;
        let here = self.line(&["symbolic-ref", "--short", "-q", "HEAD"]).is_ok_and(|head| head == branch);
        let base = message.lines().find_map(|line| line.strip_prefix(BASE)?.strip_prefix(": "));
        let (Some(base), true, true) = (base, here, has(&message, &trailers(marks))) else {
            return Ok(false);
        };
        let parent = self.line(&["rev-parse", "--verify", &format!("{commit}^")])?;
        if self.tip(base)?.as_ref() != Some(&parent) {
            return Ok(false);
        }
        let changed =
            self.run(&["diff-tree", "-r", "-z", "--no-renames", "--name-only", &parent, &commit], &[], None)?;
        let (old, mut entries) = (self.entries(&parent)?, String::new());
        for path in changed.split('\0').filter(|path| !path.is_empty()) {
            entries.push_str(&self.line_of(path, old.get(path)));
        }
        self.run(&["update-index", "-z", "--index-info"], &[], Some(entries.as_bytes()))?;
        let message = "sentinel: the changes of a cycle are undone";
        self.run(&["symbolic-ref", "-m", message, "HEAD", &format!("refs/heads/{base}")], &[], None)?;
        Ok(true)
    }

    /// The entries of the changed files, for the index.
    fn new_entries(&self, changeset: &Changeset) -> Result<String, Error> {
        use std::os::unix::fs::PermissionsExt as _;
        let mut entries = String::new();
        for change in changeset.changes() {
            let path = format!("{}{}", self.prefix, change.path);
            entries.push_str(&match &change.content {
                None => self.line_of(&path, None),
                Some(content) => {
                    let doing = || format!("look at `{}`", change.path);
                    let found = self.folder.join(change.path.as_str()).symlink_metadata().context(doing)?;
                    let mode = if found.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" };
                    let entry = Entry { mode: mode.into(), id: self.hash(content, true)? };
                    self.line_of(&path, Some(&entry))
                }
            });
        }
        Ok(entries)
    }

    /// The id of a content, which is written to the repository or not.
    fn hash(&self, content: &[u8], write: bool) -> Result<String, Error> {
        let arguments: &[&str] = if write { &["hash-object", "-w", "--stdin"] } else { &["hash-object", "--stdin"] };
        Ok(self.run(arguments, &[], Some(content))?.trim().to_owned())
    }

    /// The files of a commit.
    fn entries(&self, commit: &str) -> Result<BTreeMap<String, Entry>, Error> {
        let printed = self.run(&["ls-tree", "-r", "-z", "--full-tree", commit], &[], None)?;
        let one = |line: &str| {
            let (about, path) = line.split_once('\t')?;
            let mut words = about.split(' ');
            Some((path.to_owned(), Entry { mode: words.next()?.into(), id: words.nth(1)?.into() }))
        };
        Ok(printed.split('\0').filter_map(one).collect())
    }

    /// An entry, or that there is none, as `update-index --index-info` reads it.
    fn line_of(&self, path: &str, entry: Option<&Entry>) -> String {
        match entry {
            Some(Entry { mode, id }) => format!("{mode} {id}\t{path}\0"),
            None => format!("0 {}\t{path}\0", self.none),
        }
    }

    /// The commit of a branch, if there is one.
    fn tip(&self, branch: &str) -> Result<Option<String>, Error> {
        let format = "--format=%(objectname)";
        let printed = self.line(&["for-each-ref", format, &format!("refs/heads/{branch}")])?;
        Ok(Some(printed).filter(|id| !id.is_empty()))
    }

    fn message(&self, commit: &str) -> Result<String, Error> {
        self.run(&["cat-file", "commit", commit], &[], None)
    }

    /// Runs `git` and returns what it prints, without the line feed.
    fn line(&self, arguments: &[&str]) -> Result<String, Error> {
        self.run(arguments, &[], None).map(|printed| printed.trim_end_matches('\n').to_owned())
    }

    /// Runs `git` and returns what it prints.
    fn run(&self, arguments: &[&str], more: &[(&str, String)], input: Option<&[u8]>) -> Result<String, Error> {
        let mut command = Command::new("git");
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]);
        command.args(arguments).current_dir(&self.folder).env_clear().env("PATH", PATH).env("LC_ALL", "C");
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_AUTHOR_NAME", "sentinel"),
            ("GIT_AUTHOR_EMAIL", "sentinel@charter.invalid"),
            ("GIT_COMMITTER_NAME", "sentinel"),
            ("GIT_COMMITTER_EMAIL", "sentinel@charter.invalid"),
        ] {
            command.env(name, value);
        }
        command.envs(more.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = arguments.first().copied().unwrap_or_default();
        let doing = || format!("run `git {name}`, from {PATH}");
        let mut child = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let why = format!("there is no program `git` in `{PATH}`; install it, or leave `git` out of the input");
                return Err(Error::Usage(why));
            }
            other => other.context(doing)?,
        };
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let begin = Instant::now();
        std::thread::scope(|scope| {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // If `git` does not read it, it says why.
                scope.spawn(move || stdin.write_all(input));
            }
            let read = |from: Option<Box<dyn std::io::Read + Send>>| {
                scope.spawn(move || {
                    let mut all = Vec::new();
                    from.map_or(Ok(0), |mut from| from.read_to_end(&mut all)).map(|_| all)
                })
            };
            let out = read(stdout.map(|out| Box::new(out) as Box<dyn std::io::Read + Send>));
            let err = read(stderr.map(|err| Box::new(err) as Box<dyn std::io::Read + Send>));
            let status = loop {
                match child.try_wait().context(doing)? {
                    Some(status) => break Some(status),
                    None if begin.elapsed() >= LIMIT => {
                        let _ = child.kill();
                        let _ = child.wait();
                        break None;
                    }
                    None => std::thread::sleep(TICK),
                }
            };
            let text = |bytes: std::thread::Result<std::io::Result<Vec<u8>>>| {
                bytes.ok().and_then(Result::ok).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            let (out, err) = (text(out.join()).unwrap_or_default(), text(err.join()).unwrap_or_default());
            match status {
                Some(status) if status.success() => Ok(out),
                Some(_) => Err(Error::Git(format!(
                    "`git {name}` failed: {}",
                    err.trim().chars().take(MAX_SAID).collect::<String>()
                ))),
                None => Err(Error::Git(format!("`git {name}` took longer than {} s", LIMIT.as_secs()))),
            }
        })
    }
}

/// A file of a commit.
struct Entry {
    mode: String,
    id: String,
}

/// The last lines of a message. No value can begin another line.
fn trailers(all: &[(&str, String)]) -> String {
    let one = |(name, value): &(&str, String)| format!("{name}: {}\n", value.replace(char::is_control, " "));
    all.iter().map(one).collect()
}

/// Whether a commit has these lines.
fn has(message: &str, lines: &str) -> bool {
    message.contains(&format!("\n{lines}"))
}

//! Commands that see and change only what they are given, and reach no other process.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

/// What a confined command may see and change. It and everything it starts:
///
/// - change files only below `write` (and `/dev/null` and the like);
/// - see files except below `hidden`, of `/dev`, of `/run`, and of the homes of users; below `read`
///   they see what is not in `hidden`, also in a home;
/// - open no socket, so that they have no network, and no local service, to talk to;
/// - trace and inspect only each other, signal only each other (since Linux 6.12), and type nothing
///   into the terminal;
/// - gain no rights by programs such as `sudo`.
///
/// Not promised: they can change modes and times of other files of their user, and they see the
/// names and sizes of hidden files if they know where these are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Folders and files that are not seen.
    pub hidden: Vec<PathBuf>,
    /// Folders and files in hidden places that are seen: all that is not in `hidden`.
    pub read: Vec<PathBuf>,
    /// Folders that are seen and may be changed, also in hidden places.
    pub write: Vec<PathBuf>,
}

/// This system cannot confine a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this system cannot confine a command: {0}")]
pub struct Unconfined(pub String);

impl From<Unconfined> for io::Error {
    fn from(error: Unconfined) -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, error)
    }
}

impl Confinement {
    /// Whether this system can confine commands.
    ///
    /// # Errors
    /// It cannot; the error says what is missing.
    pub fn check() -> Result<(), Unconfined> {
        #[cfg(target_os = "linux")]
        return linux::check();
        #[cfg(not(target_os = "linux"))]
        Err(Unconfined("only Linux is supported".into()))
    }

    /// Starts a command, confined from its first instruction. The command is not started if it
    /// cannot be confined completely.
    ///
    /// # Errors
    /// Those of the start of a process; `Unsupported` if the system cannot confine it.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        #[cfg(target_os = "linux")]
        return linux::spawn(self, command);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = command;
            Err(Unconfined("only Linux is supported".into()).into())
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command};

    use landlock::{
        ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
        RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
    };
    use rustix::thread::CapabilitySet;

    use super::{Confinement, Unconfined};
    use crate::system_calls;

    /// The first version that also stops a file from being cut off (Linux 6.2).
    const NEEDED: ABI = ABI::V3;
    /// The version whose further restrictions are used where the system has them.
    const KNOWN: ABI = ABI::V6;
    /// Devices that everybody may use.
    const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
    /// Places in which others keep secrets, devices, and sockets.
    const HIDDEN: [&str; 10] = [
        "/dev",
        "/run",
        "/var/run",
        "/root",
        "/home",
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/ssh",
        "/etc/ssl/private",
        "/boot",
    ];
    /// What is seen in them all the same: programs of NixOS.
    const SEEN: [&str; 1] = ["/run/current-system"];
    /// Maximum number of entries of a folder of which a part is hidden, and maximum depth.
    const MAX_ENTRIES: usize = 10_000;
    const MAX_DEPTH: usize = 64;

    pub(super) fn check() -> Result<(), Unconfined> {
        let probe = || confine(ruleset()?);
        match std::thread::scope(|scope| scope.spawn(probe).join()) {
            Ok(result) => result,
            Err(_) => Err(Unconfined("the attempt failed".into())),
        }
    }

    pub(super) fn spawn(what: &Confinement, command: &mut Command) -> io::Result<Child> {
        let ruleset = rules(what)?;
        // The restrictions are those of a thread, and of the processes that it starts. They cannot
        // be taken back, so the thread ends.
        let start = || {
            confine(ruleset)?;
            command.spawn()
        };
        match std::thread::scope(|scope| scope.spawn(start).join()) {
            Ok(child) => child,
            Err(_) => Err(io::Error::other("the thread that starts the command failed")),
        }
    }

    fn lacking(error: impl std::fmt::Display) -> Unconfined {
        Unconfined(format!("Landlock, version 3 (Linux 6.2 or later), is needed: {error}"))
    }

    fn ruleset() -> Result<RulesetCreated, Unconfined> {
        let make = || {
            Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_all(NEEDED))?
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(KNOWN))?
                .scope(Scope::from_all(KNOWN))?
                .create()
        };
        make().map_err(lacking)
    }

    /// Confines this thread.
    fn confine(ruleset: RulesetCreated) -> Result<(), Unconfined> {
        ruleset.restrict_self().map(drop).map_err(lacking)?;
        system_calls::forbid()?;
        drop_rights()
    }

    /// Keeps of the rights of root those over files, which the other restrictions limit.
    fn drop_rights() -> Result<(), Unconfined> {
        let kept = CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::FOWNER
            | CapabilitySet::FSETID
            | CapabilitySet::SETGID
            | CapabilitySet::SETUID;
        let lacking = |error| Unconfined(format!("the rights of root cannot be dropped: {error}"));
        let mut sets = rustix::thread::capabilities(None).map_err(lacking)?;
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            *set &= kept;
        }
        rustix::thread::set_capabilities(None, sets).map_err(lacking)
    }

    fn rules(what: &Confinement) -> io::Result<RulesetCreated> {
        let canonical = |paths: &[PathBuf]| -> BTreeSet<PathBuf> {
            // What does not exist need not be hidden, and cannot be shown.
            paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
        };
        let hidden = canonical(&what.hidden);
        let places = canonical(&HIDDEN.map(PathBuf::from)).into_iter().chain(hidden.iter().cloned()).collect();
        let (mut all, mut seen) = (ruleset()?, BTreeSet::new());
        visible(Path::new("/"), &places, 0, &mut seen)?;
        for path in canonical(&what.read).into_iter().chain(canonical(&SEEN.map(PathBuf::from))) {
            visible(&path, &hidden, 0, &mut seen)?;
        }
        for path in seen {
            all = allow(all, &path, AccessFs::from_read(KNOWN))?;
        }
        for path in &what.write {
            all = allow(all, path, AccessFs::from_all(KNOWN))?;
        }
        for path in DEVICES {
            all = allow(all, Path::new(path), AccessFs::ReadFile | AccessFs::WriteFile)?;
        }
        Ok(all)
    }

    fn allow(all: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
        // What has gone meanwhile, or may not be opened, is not seen.
        let Ok(file) = PathFd::new(path) else {
            return Ok(all);
        };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) };
        all.add_rule(PathBeneath::new(file, access)).map_err(|e| lacking(e).into())
    }

    /// Collects what is visible of a folder: all of it, or the subfolders and files that are not
    /// hidden.
    fn visible(at: &Path, hidden: &BTreeSet<PathBuf>, depth: usize, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        if hidden.contains(at) || depth > MAX_DEPTH {
            return Ok(());
        }
        if !hidden.iter().any(|path| path.starts_with(at)) {
            found.insert(at.to_owned());
            return Ok(());
        }
        let Ok(entries) = std::fs::read_dir(at) else {
            return Ok(());
        };
        for (count, entry) in entries.enumerate() {
            if count >= MAX_ENTRIES {
                let why = format!("`{}` has more than {MAX_ENTRIES} entries, of which some are hidden", at.display());
                return Err(io::Error::other(why));
            }
            let entry = entry?;
            // A link shows what it leads to, if that is shown.
            if !entry.file_type()?.is_symlink() {
                visible(&entry.path(), hidden, depth.saturating_add(1), found)?;
            }
        }
        Ok(())
    }
}

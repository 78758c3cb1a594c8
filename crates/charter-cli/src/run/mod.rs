//! `charter run`: starts or resumes a run on the embedded host, and follows it until it ends or
//! waits for a person.

pub mod answer;
pub(crate) mod answers;
mod approval_preview;
mod arriving;
mod ask;
pub mod background;
pub(crate) mod choice;
mod details;
mod folder;
pub(crate) mod follow;
mod hand_over;
mod hint;
pub(crate) mod host;
pub mod legal;
pub mod mcp;
mod pages;
mod progress;
mod report;
pub(crate) mod resumed;
pub mod send;
pub(crate) mod setup;
mod start_input;
mod stay;
pub(crate) mod suggest;
mod tasks;
mod tries;
pub mod trust;
mod watch;
mod within;

use charter_journal::{Record, Verdict};
use charter_kernel::{Auth, Event, Machine, Principal, PrincipalKind, check_name};
use charter_runtime::backend::Acknowledged;
use charter_runtime::{Grant, HOST_RUN, OPERATOR, RuntimeError, Start, new_run_id};
use serde_json::{Value as Json, json};

use crate::input::json_or_file;
use crate::io::{Exit, Failure, Io};
use crate::journal::access::holder_of;
use crate::journal::text::{clean, quoted};
use crate::journal::{Db, head_of};
use crate::{load, models};
use follow::{Follow, Reply};
use host::{Host, Opener};
use progress::Beginning;
use watch::Watch;

/// Starts a run and follows it.
#[derive(Debug, Clone, clap::Args)]
#[command(
    override_usage = "charter run CHARTER [--input JSON]\n       charter run --resume RUN [--charter FILE]",
    after_help = "Ends when the run ends, or when the run waits for a person; then prints what it waits for.\nCtrl-C interrupts; `charter run --resume RUN` continues the run."
)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    charter: Option<String>,
    /// Input of the run: JSON, or `@file`
    #[arg(long, value_name = "JSON", conflicts_with = "resume")]
    input: Option<String>,
    /// Id of the run [default: a new one]
    #[arg(long, value_name = "ID", conflicts_with = "resume", value_parser = new_run)]
    run: Option<String>,
    /// Resume a run
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// Move the run to the folder of FILE, a copy of its charter: from now on, it works there
    #[arg(long = "charter", value_name = "FILE", requires = "resume")]
    copy: Option<String>,
    /// Agree wherever a person must decide
    #[arg(long, conflicts_with = "no")]
    yes: bool,
    /// Disagree wherever a person must decide
    #[arg(long)]
    no: bool,
    /// Leave the run to a process in the background, and print its id
    #[arg(long, conflicts_with_all = ["yes", "no"])]
    detach: bool,
    #[command(flatten)]
    who: Who,
    /// Wait for all timers, even those due in more than a minute
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
}

/// The sender.
#[derive(Debug, Clone, clap::Args)]
pub struct Who {
    /// Your id [default: me]
    #[arg(long = "as", value_name = "ID", value_parser = not_the_host, allow_hyphen_values = true)]
    sender: Option<String>,
    /// One of your roles (repeatable) [default: with `run`, all roles of the charter; with `send`,
    /// none; `legal` then lists the events of every role]
    #[arg(long, value_name = "ROLE", value_parser = not_the_host, allow_hyphen_values = true)]
    role: Vec<String>,
    /// What you are: person, agent or service
    #[arg(long, value_name = "KIND", default_value_t = PrincipalKind::Person, value_parser = clap::value_parser!(PrincipalKind))]
    kind: PrincipalKind,
    /// On a server, what the key may do: it decides, not what the user names.
    #[arg(skip)]
    key: Option<KeyRoles>,
}

/// The roles of a key of a server.
#[derive(Debug, Clone)]
struct KeyRoles {
    /// `None`: every role.
    grants: Option<Vec<Grant>>,
}

/// Parses the id of a new run.
pub(crate) fn new_run(text: &str) -> Result<String, String> {
    match text {
        HOST_RUN => Err(format!("`{HOST_RUN}` is the run that holds the keys of a journal; choose another id")),
        text => Ok(text.to_owned()),
    }
}

/// Parses the id or a role of a sender.
pub(crate) fn not_the_host(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a value is required".to_owned());
    }
    check_name(text).map_err(|e| e.to_string())?;
    Ok(text.to_owned())
}

/// The roles of a charter that a sender may have.
pub(crate) fn sender_roles(machine: &Machine) -> impl Iterator<Item = &str> {
    machine.definition().roles.keys().map(String::as_str).filter(|role| check_name(role).is_ok())
}

/// Suggests a role of the charter for one that it does not declare: `did you mean ...?`.
pub(crate) fn role_hint(machine: &Machine, roles: &[String]) -> Option<String> {
    let is_unknown = |role: &&String| !machine.definition().roles.contains_key(role.as_str());
    let near = |role: &String| Some((role.clone(), charter_expr::nearest(role, sender_roles(machine))?.to_owned()));
    let (role, near) = roles.iter().filter(is_unknown).find_map(near)?;
    Some(format!("the charter has no role `{}`; did you mean `{}`?", clean(&role), clean(&near)))
}

impl Who {
    /// A user who names neither an id nor a role.
    pub(crate) fn unnamed() -> Who {
        Who { sender: None, role: Vec::new(), kind: PrincipalKind::Person, key: None }
    }
    /// The sender as the server knows it, if there is one: who the key belongs to.
    pub(crate) fn known_to(&self, db: &Db) -> Result<Who, Failure> {
        let Some(remote) = db.remote()? else {
            return Ok(self.clone());
        };
        let me = remote.me()?;
        if let Some(other) = self.sender.as_ref().filter(|id| **id != me.id) {
            return Err(Failure::with_help(
                format!("the key belongs to `{}`, not to `{other}`", me.id),
                "on a server, who you are comes from the key: set CHARTER_KEY to theirs",
            ));
        }
        let has =
            |role: &String| me.roles.iter().flatten().any(|grant| grant.rsplit('/').next() == Some(role.as_str()));
        if let Some(role) = self.role.iter().find(|role| me.roles.is_some() && !has(role)) {
            return Err(Failure::new(format!("the key of `{}` has no role `{role}`", me.id)));
        }
        let grants = me.roles.map(|roles| roles.iter().filter_map(|grant| grant.parse().ok()).collect());
        Ok(Who { sender: Some(me.id), role: self.role.clone(), kind: me.kind, key: Some(KeyRoles { grants }) })
    }
    /// The id of the sender.
    pub(crate) fn id(&self) -> &str {
        self.sender.as_deref().unwrap_or("me")
    }
    /// Renders the options `--as` and `--kind` of a suggested command.
    pub(crate) fn option(&self) -> String {
        let sender = format!("--as {}", quoted(self.id()));
        match self.kind {
            PrincipalKind::Person => sender,
            kind => format!("{sender} --kind {kind}"),
        }
    }
    pub(crate) fn principal(&self) -> Principal {
        let by = Principal { roles: self.role.clone(), ..Principal::new(self.id(), &[]) };
        by.of_kind(self.kind).authenticated(Auth::Local)
    }
    /// The principal in a run of a charter. On a server, its roles are those of the key. A user who
    /// names no roles has all of its roles, because the run is on their own machine.
    pub(crate) fn principal_in(&self, machine: &Machine, run: &str) -> Principal {
        let mut by = self.principal();
        let charter = &machine.definition().id;
        match &self.key {
            Some(KeyRoles { grants: Some(grants) }) => {
                let own = grants.iter().filter(|grant| grant.is_for(charter, Some(run)));
                by.roles = own.map(|grant| grant.role.clone()).collect();
            }
            Some(KeyRoles { grants: None }) => {
                let operator = std::iter::once(OPERATOR);
                by.roles = sender_roles(machine).chain(operator).map(str::to_owned).collect();
            }
            None if self.role.is_empty() => by.roles = sender_roles(machine).map(str::to_owned).collect(),
            None => {}
        }
        by
    }
    /// Whether commands go to a server, where the key says who sends them.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }
    /// Whether the user named no sender and no role.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.sender.is_none() && self.role.is_empty()
    }
    pub(crate) fn has_roles(&self) -> bool {
        !self.role.is_empty() || self.key.as_ref().is_some_and(|key| key.grants.is_some())
    }
}

/// Runs the command.
///
/// # Errors
/// The charter or the input cannot be read, the journal is in use, or the run does not exist.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let db = args.db.hosted_with(&args.models);
    let args = &Args { who: args.who.known_to(&args.db)?, db, ..args.clone() };
    let (host, run, events, beginning) = match (&args.charter, &args.resume) {
        (_, Some(resume)) => {
            args.db.check()?;
            if args.copy.is_some() {
                args.db.file_only("run --charter")?;
            }
            let host = Host::open(&args.db, &args.models, args.opener())?;
            host.tell(io)?;
            resumed::tell(&host, io)?;
            let info = host.find(resume)?;
            if let Some(file) = &args.copy {
                folder::move_to_copy(&host, &info, file)?;
            }
            let events = host.watch(&info.run, Some(info.seq))?;
            (host, info.run, events, Beginning::Resumed)
        }
        (Some(charter), None) => match start(args, charter, io)? {
            Ok(started) => started,
            Err(refused) => return Ok(refused),
        },
        (None, None) => return Err(Failure::new("missing charter or run")),
    };
    if args.detach {
        answers::warn(&host.view(&run)?.charter, &host, io)?;
        if beginning == Beginning::Resumed {
            answers::leave(&run, &host, io)?;
        }
        host.resume(&run)??;
        host.leave(&run, args.wait)?;
        match machine_output {
            true => writeln!(io.out, "{}", json!({"run": run, "journal": head_of(&args.db.db)}))?,
            false => writeln!(io.out, "{run}")?,
        }
        return Ok(Exit::Yes);
    }
    let follow = Follow {
        reply: match (args.yes, args.no) {
            (true, _) => Reply::Yes,
            (_, true) => Reply::No,
            _ if io.terminal => Reply::Ask,
            _ => Reply::Leave,
        },
        who: args.who.clone(),
        wait_for_timers: args.wait,
        beginning,
        db: args.db.clone(),
    };
    let exit = follow.run(&host, &run, events, machine_output, io);
    host.close(io);
    exit
}

impl Args {
    fn opener(&self) -> Opener {
        match self.detach {
            true => Opener::Background,
            false => Opener::Here,
        }
    }
}

/// A run and the host that has started to execute it.
type Begun = (Host, String, Watch, Beginning);

/// Starts a run; the inner error means that the start was refused.
fn start(args: &Args, charter: &str, io: &mut Io<'_>) -> Result<Result<Begun, Exit>, Failure> {
    let input = match &args.input {
        Some(text) => json_or_file("--input", text)?,
        None => json!({}),
    };
    // Check before the journal file is created.
    let charter = match args.db.remote()?.filter(|_| !load::is_known(charter)) {
        Some(remote) => {
            let found = remote.offered(charter).map_err(|e| {
                let none = format!("no file or bundled charter is named `{}`", clean(charter));
                Failure::new(format!("{none}, and {} has none: {e}", remote.url()))
            })?;
            found.as_ref().clone()
        }
        None => setup::charter(charter)?,
    };
    start_input::check(charter.machine(), &input, args)?;
    args.db.check_new()?;
    // A process that has the journal open checks the charter with its own models.
    if args.db.remote()?.is_none() && holder_of(&args.db.db)?.is_none() {
        setup::admits(&charter, args.run.as_deref(), &args.models)?;
    }
    within::leave_out(charter.machine(), &input, &args.db, io)?;
    let host = Host::open(&args.db, &args.models, args.opener())?;
    if answers::may_ask(charter.machine()) {
        host.tell(io)?;
    }
    resumed::tell(&host, io)?;
    let digest = charter.digest();
    host.call(|b| b.add(charter.clone()))?;
    let run = args.run.clone().unwrap_or_else(new_run_id);
    // Subscribe before the start, so that no event is missed.
    let events = host.watch(&run, None)?;
    let start = Start { charter: digest, run: Some(run.clone()), input, by: args.who.principal() };
    let Acknowledged { record, repeated } =
        match host.try_call(|b| b.start_in(start.clone(), charter.stored().name.clone()))? {
            Err(RuntimeError::RunExists(run)) => {
                let first = host.call(|b| b.records(run.clone(), 0, 1))?.into_iter().next();
                return Err(Failure::with_help(
                    format!("run `{run}` already exists{}", first.map(|r| differs(&r, &start)).unwrap_or_default()),
                    format!("choose another id, or resume it: `charter run --resume {run}{}`", args.db.host_options()),
                ));
            }
            started => started?,
        };
    if record.verdict == Verdict::Refused {
        report::show_refusal(&record, &host, io)?;
        host.close(io);
        return Ok(Err(Exit::No));
    }
    if repeated && args.run.is_some() {
        folder::check_existing(&host, &run, &charter, &args.db.host_options())?;
    }
    // A start with a new id is repeated only after a lost connection.
    let beginning = match repeated && args.run.is_some() {
        true => Beginning::Existing,
        false => Beginning::Started,
    };
    Ok(Ok((host, run, events, beginning)))
}

/// Says what an existing run, whose first record this is, was started with that a start does not
/// have.
fn differs(first: &Record, start: &Start) -> String {
    let mut others = Vec::new();
    if first.charter != start.charter {
        others.push("with another charter".to_owned());
    }
    if let Ok(began) = first.envelope() {
        if !matches!(&began.event, Event::Start { input } if *input == start.input) {
            others.push("with another input".to_owned());
        }
        if began.by.id != start.by.id {
            others.push(format!("by {}, not by {}", clean(&began.by.id), clean(&start.by.id)));
        } else if began.by != start.by {
            others.push("by a sender with other roles or of another kind".to_owned());
        }
    }
    match others.is_empty() {
        true => " and was started with other files".to_owned(),
        false => format!(" and was started {}", others.join(", ")),
    }
}

/// The bytes of a value as JSON.
fn size(data: &Json) -> u64 {
    serde_json::to_vec(data).map_or(u64::MAX, |text| text.len() as u64)
}

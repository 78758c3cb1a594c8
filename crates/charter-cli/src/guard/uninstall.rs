//! `charter guard uninstall CLIENT`: takes away the hook and the MCP server that `guard init`
//! wrote, and says what it leaves.

use std::path::{Path, PathBuf};

use charter_guard::client::Client;
use charter_guard::config::{self, Level};

use super::doctor::journal_of;
use super::init::{CHARTER, left};
use super::mcp;
use crate::hook::install::{UninstallArgs, apply, read, root};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::exclude;

/// Takes the agent of a client out of control.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// claude, codex, gemini, copilot, opencode, cursor or goose
    client: Client,
    /// The folder of the project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = dir.canonicalize().map_err(|e| Failure::new(format!("`{}`: {e}", dir.display())))?;
    // The hook says where its journal is, so this is asked before it is gone.
    let stays = stays(args.client, &dir)?;
    let mut by_hand = Vec::new();
    let mut changes = UninstallArgs::for_guard(args.client, &dir).changes(&mut by_hand)?;
    if let Some(change) = mcp::remove(args.client, &dir, &changes, &mut by_hand)? {
        match changes.iter_mut().find(|other| other.path == change.path) {
            Some(same) => same.new = change.new,
            None => changes.push(change),
        }
    }
    apply(&changes, args.dry_run, machine_output, io)?;
    let exit = left(&by_hand, io)?;
    if machine_output {
        return Ok(exit);
    }
    let paint = Paint(io.color_err);
    for line in stays {
        writeln!(io.err, "{}", paint.faint(&line))?;
    }
    Ok(exit)
}

/// What is left, in lines.
fn stays(client: Client, dir: &Path) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let project = dir.join(config::file(client, Level::Project).map_err(|e| Failure::new(e.to_string()))?);
    let mut journals = Vec::new();
    for command in read(&project)?.map(|text| config::commands(client, &text)).unwrap_or_default() {
        journals.extend(journal_of(&command).filter(|journal| journal.exists()));
    }
    journals.dedup();
    for journal in &journals {
        lines.push(format!("stays: the journal `{}`, with its runs and keys", journal.display()));
    }
    let charter = dir.join("charters").join(CHARTER);
    if charter.exists() {
        lines.push(format!("stays: the charter in `{}`", charter.display()));
    }
    for (exclude, known) in journals.iter().filter_map(|journal| exclude::lines(dir, journal)) {
        if read(&exclude)?.is_some_and(|text| text.lines().any(|line| known.iter().any(|known| known == line))) {
            lines.push(format!("stays: the lines in `{}` that keep the journal out of commits", exclude.display()));
        }
    }
    for (level, option) in [(Level::User, "--user"), (Level::Managed, "--managed")] {
        let Ok(file) = config::file(client, level) else { continue };
        // Without a home folder there is no hook in it.
        let Ok(root) = root(level, None) else { continue };
        let file = root.join(file);
        if read(&file)?.is_some_and(|text| !config::commands(client, &text).is_empty()) {
            lines.push(format!(
                "stays: the hook in `{}`; `charter hook uninstall {client} {option}` removes it",
                file.display()
            ));
        }
    }
    if let Some(place) = mcp::remains(client) {
        lines.push(format!("stays: the MCP server `charter`, if you have added it ({place})"));
    }
    Ok(lines)
}

//! `charter replay RUN --to SEQ`: the state of a run after a record, replayed from the records.

use super::{Db, at, show};
use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};

/// Shows the state of a run after a record.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Number of the record [default: the last one]
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = whole::<u64>)]
    to: Option<u64>,
    #[command(flatten)]
    db: Db,
}

/// Runs the command. With `--json`, prints the snapshot as canonical JSON.
///
/// # Errors
/// The run or record does not exist, or the replay differs from the records.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.read_and_warn(io)?;
    let run = args.db.find(store.as_ref(), &args.run)?;
    let (machine, snapshot) = at(store.as_ref(), &run, args.to)?;
    if machine_output {
        writeln!(io.out, "{}", machine.snapshot_text(&snapshot))?;
        return Ok(Exit::Yes);
    }
    let paint = Paint(io.color_out);
    let seq = args.to.unwrap_or(run.seq);
    let record = store.records(&run.run, seq, 1)?.into_iter().next();
    let when = record.as_ref().map_or(run.updated, |r| r.at);
    writeln!(
        io.out,
        "{}  after record {seq} of {}, {}, {}",
        paint.strong(&run.run),
        run.seq,
        super::text::when(when),
        snapshot.status().word()
    )?;
    let digest = super::text::short_digest(machine.snapshot_digest(&snapshot));
    writeln!(io.out, "  {}", paint.faint(&format!("snapshot {digest}, as in record {seq}")))?;
    let (host, resumed) = (show::Hosting::NotKnown, Default::default());
    let dry = show::is_dry(charter_journal::origin(store.as_ref(), &run.run)?.as_ref());
    let (machine, snapshot, db) = (&machine, &snapshot, &args.db);
    show::print(
        &show::Waiting {
            machine,
            snapshot,
            db,
            now: when,
            host,
            resumed,
            overdue: None,
            still: None,
            dry,
            untrusted: false,
        },
        io,
    )?;
    Ok(Exit::Yes)
}

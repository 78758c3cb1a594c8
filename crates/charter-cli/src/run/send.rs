//! `charter send RUN TYPE [DATA]`: sends an event to a run, and reports the result.

use charter_journal::RunInfo;
use charter_kernel::Status;
use charter_runtime::backend::Acknowledged;
use charter_runtime::{HOST_RUN, SendEvent};
use serde_json::json;

use super::host::{Host, Opener};
use super::watch::Watch;
use super::{Who, answers, details, follow, report, trust};
use crate::input::{event_data, whole};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::short_line;
use crate::journal::{Db, head_of};
use crate::models;

/// Sends an event.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Event type; also `charter.pause`, `charter.resume`, `charter.cancel`, `charter.trust`
    #[arg(allow_hyphen_values = true)]
    r#type: String,
    /// Event data: JSON, or `@file`
    #[arg(allow_negative_numbers = true)]
    data: Option<String>,
    /// The actor to send to [default: the root actor of the run]
    #[arg(long, value_name = "ACTOR")]
    to: Option<String>,
    /// Event id: an event with an id that was used before is not applied again
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Number of the last record you have seen; if the run has changed since, the event is refused
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = whole::<u64>)]
    expect: Option<u64>,
    #[command(flatten)]
    who: Who,
    /// Leave the actors that the event starts to a process in the background
    #[arg(long)]
    detach: bool,
    /// With `--detach`: let that process wait for all timers of the run
    #[arg(long, requires = "detach")]
    wait: bool,
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
}

/// Runs the command. With `--json`, prints the record.
///
/// # Errors
/// The run does not exist, or another process has the journal open.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let db = args.db.hosted_with(&args.models);
    let args = &Args { who: args.who.known_to(&args.db)?, db, ..args.clone() };
    let data = args.data.as_ref().map(|text| event_data(text, "charter send RUN TYPE")).transpose()?;
    let opener = match args.detach {
        true => Opener::Background,
        false => Opener::Here,
    };
    Host::with(&args.db, &args.models, opener, io, |host, io| {
        let info = host.find(&args.run)?;
        keys_stay(host, &info, &args.r#type)?;
        let data = match data {
            Some(data) => data,
            None => {
                let charter = host.try_call(|b| b.charter(info.charter))?;
                charter.map_or_else(|_| json!({}), |charter| charter.machine().absent_data(&args.r#type))
            }
        };
        let send = SendEvent {
            run: info.run.clone(),
            to: args.to.clone(),
            r#type: args.r#type.clone(),
            data,
            by: args.who.principal(),
            id: args.id.clone(),
            expected_seq: args.expect,
        };
        send_and_follow(args, host, &info, send, machine_output, io)
    })
}

/// Refuses to end or pause the run that holds the keys of a server: nobody would be let in then.
fn keys_stay(host: &Host, info: &RunInfo, event: &str) -> Result<(), Failure> {
    if info.run != HOST_RUN || !matches!(event, "charter.cancel" | "charter.pause") {
        return Ok(());
    }
    match host.call(|b| b.charter(info.charter))?.machine().definition().id == HOST_RUN {
        true => Err(Failure::with_help(
            "the run `host` holds the keys of the server of this journal; it is not paused or cancelled",
            "`charter key revoke KEY` ends a key",
        )),
        false => Ok(()),
    }
}

fn send_and_follow(
    args: &Args,
    host: &Host,
    info: &RunInfo,
    send: SendEvent,
    machine_output: bool,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let run = info.run.as_str();
    let events = host.watch(run, Some(info.seq))?;
    if args.detach {
        answers::leave(run, host, io)?;
    }
    let receipt = host.send(send)?;
    let after = After { who: &args.who, db: &args.db, leave: args.detach.then_some(args.wait) };
    after.show(host, run, receipt, events, machine_output, io)
}

/// What follows after an event or an answer was recorded.
pub(super) struct After<'a> {
    pub(super) who: &'a Who,
    pub(super) db: &'a Db,
    /// Leaves the actors to a process in the background; whether it waits for all timers.
    pub(super) leave: Option<bool>,
}

impl After<'_> {
    /// Shows the record, and follows the actors that it starts. The answer is no if it is a
    /// refusal, or the run fails.
    pub(super) fn show(
        &self,
        host: &Host,
        run: &str,
        receipt: Acknowledged,
        events: Watch,
        machine_output: bool,
        io: &mut Io<'_>,
    ) -> Result<Exit, Failure> {
        let record = &receipt.record;
        match machine_output {
            true => {
                let charter = host.try_call(|b| b.charter(record.charter))?.ok();
                let shown = record.shown(charter.as_ref().map(|c| c.machine().as_ref()));
                // Added to the text, because a record may be nested deeper than a parser accepts.
                let members = shown.strip_suffix('}').unwrap_or(&shown);
                writeln!(io.out, "{members},\"journal\":{}}}", head_of(&self.db.db))?;
            }
            false => {
                writeln!(io.out, "{}", short_line(record, Paint(io.color_out)))?;
                for note in details::notes(record, Paint(io.color_out)) {
                    writeln!(io.out, "{note}")?;
                }
                if receipt.repeated {
                    let done = format!("this event was sent before, as record {}; nothing changed", record.seq);
                    writeln!(io.err, "{}", Paint(io.color_err).faint(&done))?;
                }
            }
        }
        io.out.flush()?;
        if receipt.is_refused() {
            if !machine_output {
                report::show_refusal(record, host, io)?;
            }
            return Ok(Exit::No);
        }
        // Nothing is started in a paused run.
        let resumed = match host.view(run)?.snapshot.paused_at() {
            Some(_) => Ok(()),
            None => host.resume(run)?,
        };
        // Of a run that nobody has allowed, the progress or the report says so.
        let resumed = resumed.or_else(|e| match trust::says_untrusted(&e.to_string(), run) {
            true => Ok(()),
            false => Err(e),
        });
        if let (Err(e), false) = (&resumed, machine_output) {
            let why = trust::not_resumed(&e.to_string(), run, &self.db.option());
            writeln!(io.err, "{} {why}", Paint(io.color_err).warning("warning:"))?;
        }
        if let Some(all_timers) = self.leave {
            host.leave(run, all_timers)?;
            return Ok(Exit::Yes);
        }
        // A run that is resumed, or whose actors are allowed to work, continues with everything.
        let since = if record.event.r#type.starts_with("charter.") { 0 } else { record.seq };
        let view = follow::settle(host, run, events, (record.seq, since), io)?;
        if !machine_output {
            report::write(&view, self.who, self.db, false, host, follow::now(), io)?;
        }
        match view.snapshot.status() {
            Status::Failed => Ok(Exit::No),
            _ => Ok(Exit::Yes),
        }
    }
}

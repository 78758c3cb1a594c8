//! Shows the progress of a run on standard error: a line for each change and, on a terminal, a
//! status line with the running actors and their elapsed times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use charter_journal::{Record, SourceKind, Verdict};
use charter_kernel::{EffectId, Machine, Millis, Timestamp};
use charter_runtime::backend::Update;
use charter_runtime::{View, Working};

use super::arriving::Arriving;
use super::host::Host;
use super::{answers, details, trust};
use crate::io::{Failure, Io, Paint};
use crate::journal::text::{clean, elapsed, error, on_one_line, short};

/// Maximum number of characters of the status line.
const WIDTH: usize = 78;

/// Why a run is being followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It has just been started.
    Started,
    /// `charter run --run ID` named an existing run with the same charter and input.
    Existing,
    /// It was resumed by `charter run --resume RUN`.
    Resumed,
}

/// The progress of a run.
pub(crate) struct Progress {
    run: String,
    paint: Paint,
    /// Whether the status line is drawn.
    live: bool,
    /// Whether the run is a dry fork.
    dry: bool,
    drawn: bool,
    turn: usize,
    /// The last record shown.
    seen: Option<u64>,
    /// A refusal that the user has been told.
    told: Option<u64>,
    /// The record with which the following began; tasks that were open before it are no news.
    began: Option<u64>,
    /// Invocations with a result; the end of their actors is not reported.
    answered: BTreeSet<String>,
    machine: Option<Arc<Machine>>,
    arriving: Arriving,
    /// What to tell when an actor begins that another model answers for than before.
    pub(super) answerers: BTreeMap<String, String>,
    /// The option `--db` of suggested commands.
    db: String,
    /// The last error message that was shown: if the next failure has the same one, it is not shown
    /// again.
    failure: Option<String>,
    /// Whether the run is paused and still followed.
    held: bool,
}

impl Progress {
    pub(crate) fn new(run: &str, io: &Io<'_>) -> Progress {
        Progress {
            run: run.to_owned(),
            paint: Paint(io.color_err),
            live: io.terminal,
            dry: false,
            drawn: false,
            turn: 0,
            seen: None,
            told: None,
            began: None,
            answered: BTreeSet::new(),
            machine: None,
            arriving: Arriving::default(),
            answerers: BTreeMap::new(),
            db: String::new(),
            failure: None,
            held: false,
        }
    }

    /// Sets the run and the last record that was shown.
    pub(crate) fn know(&mut self, view: &View, seen: Option<u64>) {
        self.seen = seen;
        self.began = seen;
        self.machine = Some(view.charter.machine().clone());
        self.dry = view.dry;
    }

    /// Notes a refusal that the user has been told.
    pub(super) fn tell(&mut self, refused: u64) {
        self.told = Some(refused);
    }

    /// Sets the host, for its journal file.
    pub(crate) fn observe(&mut self, host: &Host) {
        self.db = host.db.option();
    }

    /// Prints the heading. `changes` is what [`answers::changes`] tells, if it is known.
    pub(crate) fn begin(
        &mut self,
        view: &View,
        beginning: Beginning,
        changes: Option<&BTreeMap<String, String>>,
        host: &Host,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        let db = &host.db;
        let definition = view.charter.machine().definition();
        self.know(view, None);
        self.observe(host);
        self.db = db.option();
        let paint = self.paint;
        // Refusals are records too, but do not change the snapshot.
        let info = host.call(|b| b.run(view.snapshot.run().to_owned()))?;
        let seq = info.map_or(view.snapshot.seq(), |info| info.seq);
        let ended = view.snapshot.status().is_finished();
        let paused = view.snapshot.paused_at().is_some();
        let how = match (beginning, ended) {
            (Beginning::Started, _) => "started".to_owned(),
            (Beginning::Existing, true) => "already exists, and has ended".to_owned(),
            (Beginning::Existing, false) if paused => "already exists, and is paused".to_owned(),
            (Beginning::Existing, false) => format!("already exists; continued after record {seq}"),
            (Beginning::Resumed, true) => "has already ended".to_owned(),
            (Beginning::Resumed, false) if paused => "is paused".to_owned(),
            (Beginning::Resumed, false) => format!("resumed after record {seq}"),
        };
        let title = definition.title.as_deref().unwrap_or(&definition.id);
        writeln!(io.err, "{} {how}: {}", paint.strong(&self.run), clean(title))?;
        if (ended || paused) && beginning != Beginning::Started {
            return Ok(());
        }
        if self.live {
            let leave = match host.other() {
                Some(_) => "Ctrl-C ends this command; the run goes on".to_owned(),
                None => {
                    let more = db.host_options();
                    format!("Ctrl-C interrupts; `charter run --resume {}{more}` continues the run", self.run)
                }
            };
            writeln!(io.err, "{}", paint.faint(&leave))?;
        }
        let found = match (beginning, changes) {
            (Beginning::Started, _) | (_, Some(_)) => BTreeMap::new(),
            (_, None) => answers::changes(&self.run, view, host)?,
        };
        answers::write(&self.run, view, host, changes.unwrap_or(&found), io)?;
        if let Some(client) = host.other() {
            let by = format!("hosted by process {}, which has the journal open", client.pid());
            writeln!(io.err, "{}", paint.faint(&by))?;
        }
        Ok(())
    }

    /// Shows a warning.
    pub(crate) fn warn(&mut self, message: &str, io: &mut Io<'_>) -> Result<(), Failure> {
        self.clear(io)?;
        writeln!(io.err, "{} {}", self.paint.warning("warning:"), clean(message))?;
        Ok(())
    }

    /// Shows an event of the host.
    pub(crate) fn show(&mut self, event: &Update, io: &mut Io<'_>) -> Result<(), Failure> {
        let paint = self.paint;
        let line = match event {
            Update::Recorded(r) => {
                if let Some(invocation) = &r.source.invocation {
                    self.answered.insert(invocation.to_string());
                }
                if self.seen.is_some_and(|seen| r.seq <= seen) {
                    return Ok(());
                }
                self.seen = Some(r.seq);
                // `Retrying` reports the second.
                if self.told == Some(r.seq) || r.source.kind == SourceKind::Attempt {
                    return Ok(());
                }
                // The charter ignores this result.
                if r.source.kind == SourceKind::Done && r.verdict == Verdict::Ignored {
                    return Ok(());
                }
                let more = details::of_record(r, paint);
                let failure = failure(r).map(|why| match self.failure.as_deref() == Some(why) {
                    true => "for the same reason".to_owned(),
                    false => self.failure.insert(why.to_owned()).clone(),
                });
                let machine = self.machine.as_deref();
                std::iter::once(record(r, failure.as_deref(), machine, paint))
                    .chain(more)
                    .collect::<Vec<_>>()
                    .join("\n  ")
            }
            Update::Began(work) | Update::Waiting(work) if self.is_old_task(work) => return Ok(()),
            Update::Began(work) if self.answerers.contains_key(&*work.src) => {
                let line = self.answerers.remove(&*work.src).unwrap_or_default();
                format!("{} {line}\n  {} started", paint.warning(answers::ANOTHER), clean(&work.src))
            }
            Update::Began(work) if work.attempt > 1 => {
                self.arriving.forget(&work.src);
                format!("{} started, attempt {}", clean(&work.src), work.attempt)
            }
            Update::Began(work) => {
                self.arriving.forget(&work.src);
                format!("{} started", clean(&work.src))
            }
            Update::Retrying { work, error, at } => {
                let why = error.get("message").and_then(|m| m.as_str()).unwrap_or("failed");
                let when = if *at == Timestamp::MAX { " after `charter.resume`" } else { "" };
                format!("{}: {}; retrying{when}", paint.warning(&clean(&work.src)), on_one_line(why))
            }
            Update::Waiting(work) if self.dry && *work.kind != *"human" => {
                format!("{} is not started: {}", paint.help(&clean(&work.src)), paint.warning("dry"))
            }
            Update::Waiting(work) => {
                format!("{} is waiting for a person", paint.help(&clean(&work.src)))
            }
            Update::Stopped(work) if self.answered.contains(work.invocation.as_ref()) => {
                return Ok(());
            }
            Update::Stopped(work) => format!("{} cancelled: its result is no longer needed", clean(&work.src)),
            Update::Progress(progress) => match &progress.note {
                None => {
                    self.arriving.keep(progress);
                    return Ok(());
                }
                Some(note) => paint.warning(&format!("{}: {}", clean(&progress.src), clean(note))),
            },
            Update::Logged { label, value, .. } => {
                let label = label.as_deref().map(|l| format!("{}: ", clean(l))).unwrap_or_default();
                let text = match value.as_str() {
                    Some(text) => on_one_line(text),
                    None => short(value, 400),
                };
                format!("{}{text}", paint.strong(&label))
            }
            Update::Emitted { data, .. } if self.machine.as_ref().is_some_and(|m| details::is_move(data, m)) => {
                return Ok(());
            }
            Update::Emitted { r#type, data, .. } => details::of_insight(data, self.failure.as_deref(), paint)
                .unwrap_or_else(|| format!("emits {} {}", clean(r#type), short(data, 60))),
            // The process that ends says so itself.
            Update::Trouble { message, .. } if message == charter_runtime::SHUT_DOWN => return Ok(()),
            Update::Trouble { message, .. } => {
                format!("{} {}", paint.warning("warning:"), trust::with_help(message, &self.run, &self.db))
            }
            Update::Missed(count) => {
                format!("{count} events are not shown here; `charter log {}{}` lists all records", self.run, self.db)
            }
            _ => return Ok(()),
        };
        self.clear(io)?;
        writeln!(io.err, "  {line}")?;
        Ok(())
    }

    /// Whether an invocation is a task for a person that was open before the run was followed.
    fn is_old_task(&self, work: &Working) -> bool {
        let since = EffectId::parse(&work.effect).map(|effect| effect.seq);
        &*work.kind == "human" && since.zip(self.began).is_some_and(|(since, began)| since < began)
    }

    /// Shows a remark.
    pub(super) fn note(&mut self, text: &str, io: &mut Io<'_>) -> Result<(), Failure> {
        self.clear(io)?;
        Ok(writeln!(io.err, "    {}", self.paint.faint(text))?)
    }

    /// Says once, whenever the run is paused, why it is still followed.
    pub(crate) fn hold(&mut self, held: bool, io: &mut Io<'_>) -> Result<(), Failure> {
        if std::mem::replace(&mut self.held, held) || !held {
            return Ok(());
        }
        self.clear(io)?;
        let why = "paused; its actors go on here, and what they answer is held; Ctrl-C interrupts";
        writeln!(io.err, "  {}", self.paint.faint(why))?;
        Ok(())
    }

    /// Updates the status line.
    pub(crate) fn wait(&mut self, view: &View, now: Timestamp, io: &mut Io<'_>) -> Result<(), Failure> {
        if !self.live {
            return Ok(());
        }
        const TURNS: [&str; 4] = ["|", "/", "-", "\\"];
        self.turn = (self.turn + 1) % TURNS.len();
        let since = |since: Timestamp| elapsed(now.since(since));
        let working: Vec<&Working> = view.working.iter().collect();
        let mut parts: Vec<String> = working
            .iter()
            .take(4)
            .map(|w| {
                if w.since > now {
                    return format!("{}: attempt {} in {}", clean(&w.src), w.attempt, elapsed(w.since.since(now)));
                }
                let amount = self.arriving.amount(&w.src);
                format!("{} {}{amount}", clean(&w.src), since(w.since))
            })
            .collect();
        if working.len() > 4 {
            parts.push(format!("{} more", working.len() - 4));
        }
        if parts.is_empty()
            && let Some(timer) = view.snapshot.next_timer()
        {
            let left = timer.due.since(now).max(Millis(0));
            parts.push(format!("waiting for timer {}, {} left", clean(&timer.id), elapsed(left)));
        }
        let turn = TURNS.get(self.turn).copied().unwrap_or_default();
        let mut line = format!("{} {}", turn, parts.join(", "));
        if let [one] = working.as_slice() {
            let room = WIDTH.saturating_sub(line.chars().count().saturating_add(2));
            line = format!("{line}  {}", self.arriving.end(&one.src, room));
        }
        let line: String = line.chars().take(WIDTH).collect();
        write!(io.err, "\r\u{1b}[2K{}", self.paint.faint(&line))?;
        io.err.flush()?;
        self.drawn = true;
        Ok(())
    }

    /// Clears the status line.
    pub(crate) fn clear(&mut self, io: &mut Io<'_>) -> Result<(), Failure> {
        if self.drawn {
            write!(io.err, "\r\u{1b}[2K")?;
            io.err.flush()?;
            self.drawn = false;
        }
        Ok(())
    }
}

/// Renders a record on one line.
fn record(record: &Record, failure: Option<&str>, machine: Option<&Machine>, paint: Paint) -> String {
    let actor = match record.to.as_ref() {
        "root" => String::new(),
        actor => format!("{}: ", paint.strong(&clean(actor))),
    };
    let (from, to) = (record.from.join(", "), record.state.join(", "));
    let moved = match (from == to, from.is_empty()) {
        (true, _) => to,
        (false, true) => paint.good(&to),
        (false, false) => format!("{from} → {}", paint.good(&to)),
    };
    let invocation = record.source.invocation.as_deref().map(clean).unwrap_or_default();
    let what = match record.source.kind {
        SourceKind::Start | SourceKind::Attempt => String::new(),
        SourceKind::External => match record.by.id.as_str() {
            "" => format!("  {}", clean(&record.event.r#type)),
            by => format!("  {} by {}", clean(&record.event.r#type), clean(by)),
        },
        SourceKind::Done => format!("  {invocation} done"),
        SourceKind::Error => {
            format!(
                "  {} {}",
                paint.error(&format!("{invocation} failed:")),
                on_one_line(failure.unwrap_or("no reason given"))
            )
        }
        _ => match error(record) {
            Some(why) => format!("  {} {why}", paint.error(&format!("{}:", clean(&record.event.r#type)))),
            None => format!("  {}", clean(&record.event.r#type)),
        },
    };
    let verdict = match (record.verdict, record.explanation(machine)) {
        (Verdict::Accepted, _) => String::new(),
        (Verdict::Refused, Some(refusal)) => {
            format!("  {} {}", paint.error(&format!("refused ({}):", refusal.code)), clean(&refusal.message))
        }
        (verdict, _) => format!("  {}", paint.warning(verdict.word())),
    };
    format!("{actor}{moved}{what}{verdict}")
}

/// The error message of a failed invocation.
fn failure(record: &Record) -> Option<&str> {
    let error = record.event.data.get("error").filter(|_| record.source.kind == SourceKind::Error);
    error?.get("message")?.as_str()
}

//! The reference: `charter_run::Run` with its records in a list, and nothing else.

use charter_journal::{Record, Verdict};
use charter_kernel::{EffectId, Event, TakenKeys, Timestamp};
use charter_run::{EventInput, Input, InvocationRequest, Kept, Known, Reply, Resume, Run};

use crate::inputs::{AttemptInput, TraceInput};
use crate::subject::{Answer, OTHER, RUN, Setup, Subject, answer_code, idempotent};

/// Upper limit of the inputs that only pass time at one moment; each fires a timer or skips one.
const MAX_DUE: usize = 10_000;

/// A defect of a host, for tests of the suite itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Does not recognize event ids.
    ForgetsIds,
    /// Recognizes only ids that it has seen since it was started.
    ForgetsIdsInRestarts,
    /// Forgets which timers were refused.
    ForgetsRefusedTimers,
    /// Counts attempts from 1 after a restart.
    ForgetsAttempts,
    /// Repeats every interrupted attempt after a restart.
    RepeatsEverything,
    /// Begins the next attempt although the run is paused.
    IgnoresPauses,
    /// Knows only the unique keys of its run, not those of others.
    SharesNoKeys,
    /// Gives a unique key to an event that is refused.
    KeepsKeysOfRefused,
}

/// The core alone.
pub struct Core {
    setup: Setup,
    run: Run,
    records: Vec<Record>,
    /// The unique keys of all runs.
    keys: TakenKeys,
    now: Timestamp,
    /// Whether to restore the run from its stored form before each input.
    forgetful: bool,
    flaw: Option<Flaw>,
    /// Number of records at the last start.
    old: usize,
}

impl Core {
    /// Creates a host that keeps its run in memory, also across restarts.
    #[must_use]
    pub fn new(setup: &Setup) -> Core {
        let mut keys = TakenKeys::default();
        for EventInput { r#type, data, by, .. } in &setup.others {
            let key = setup.machine.unique_key(r#type, data, by).expect("the events of the other run have keys");
            keys.insert(r#type, &key, OTHER);
        }
        Core {
            setup: setup.clone(),
            run: Run::new(RUN, 1),
            records: Vec::new(),
            keys,
            now: Timestamp(0),
            forgetful: false,
            flaw: None,
            old: 0,
        }
    }

    /// Creates a host that restores the run from its stored form before each input.
    #[must_use]
    pub fn forgetful(setup: &Setup) -> Core {
        Core { forgetful: true, ..Core::new(setup) }
    }

    /// Creates a host with a defect.
    #[must_use]
    pub fn flawed(setup: &Setup, flaw: Flaw) -> Core {
        let mut core = Core { flaw: Some(flaw), ..Core::forgetful(setup) };
        if flaw == Flaw::SharesNoKeys {
            core.keys = TakenKeys::default();
        }
        core
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Its records.
    #[must_use]
    pub fn history(&self) -> &[Record] {
        &self.records
    }

    fn restore(&mut self) {
        let mut kept = self.run.kept(&self.setup.machine, self.records.last().cloned());
        match self.flaw {
            Some(Flaw::ForgetsRefusedTimers) => kept = Kept { refused: Default::default(), ..kept },
            Some(Flaw::ForgetsAttempts) => kept.attempts.clear(),
            _ => {}
        }
        self.run = Run::restore(&self.setup.machine, RUN, 1, kept).expect("what a run keeps restores it");
    }

    fn handle(&mut self, input: Input) -> Reply {
        if self.forgetful {
            self.restore();
        }
        let mut known = match self.flaw {
            Some(Flaw::ForgetsIds) => Known { same: None, ..Known::among(&self.records, &input) },
            Some(Flaw::ForgetsIdsInRestarts) => {
                Known { first: self.records.first().cloned(), ..Known::among(&self.records[self.old..], &input) }
            }
            _ => Known::among(&self.records, &input),
        };
        if let Input::Event(EventInput { r#type, data, by, .. }) = &input {
            let event = Event::External { r#type: r#type.clone(), data: data.clone() };
            known.unique = self.keys.look_up(&self.setup.machine, &event, by);
        }
        let handled = self.run.handle(&self.setup.machine, &self.setup.bounds, self.now, input, known);
        for record in handled.appended.iter().map(|a| &a.append.record) {
            let takes = record.verdict == Verdict::Accepted || self.flaw == Some(Flaw::KeepsKeysOfRefused);
            if let Some(unique) = record.unique.as_deref().filter(|_| takes) {
                self.keys.insert(&record.event.r#type, &unique.key, RUN);
            }
        }
        self.records.extend(handled.appended.iter().map(|a| a.append.record.clone()));
        match handled.reply {
            // The index of the record among those of this input.
            Reply::Made(index) => {
                let first = self.records.len() - handled.appended.len();
                Reply::Made(first + index)
            }
            reply => reply,
        }
    }

    fn answer(&mut self, input: Input) -> Answer {
        match self.handle(input) {
            Reply::Made(seq) => Answer::Made(seq as u64),
            Reply::Repeated(record) => Answer::Repeated(record.seq),
            Reply::Denied(denied) => Answer::Denied(answer_code(&denied)),
            Reply::NotAwaited => Answer::NotAwaited,
            other => panic!("{other:?}"),
        }
    }

    fn attempted(&mut self, ended: &AttemptInput) {
        let request = self.run.request(ended.effect).unwrap_or_else(|| unknown(ended.effect));
        let paused = self.run.snapshot().is_some_and(|s| s.paused_at().is_some());
        let ignored = self.flaw == Some(Flaw::IgnoresPauses) && paused;
        if request.attempt == ended.attempt && request.not_before > self.now && !ignored {
            // It has not begun.
            return;
        }
        let request = InvocationRequest { attempt: ended.attempt, ..request };
        let input = Input::attempted(&self.setup.machine, RUN, &request, ended.result.clone(), self.now);
        self.handle(input);
    }

    fn pass_time(&mut self) {
        for _ in 0..MAX_DUE {
            if self.run.next_due().is_none_or(|due| due > self.now) {
                return;
            }
            self.handle(Input::Due);
        }
        panic!("timers never settle");
    }
}

/// A request for an effect that the run does not wait for.
fn unknown(effect: EffectId) -> InvocationRequest {
    let (invocation, src, input) = ("".into(), "".into(), Default::default());
    InvocationRequest { effect, invocation, src, input, attempt: 1, not_before: Timestamp::MIN }
}

impl Subject for Core {
    fn give(&mut self, at: Timestamp, input: &TraceInput) -> Vec<Answer> {
        self.now = self.now.max(at);
        let answers = match input {
            TraceInput::Start { input, by } => {
                vec![self.answer(Input::start(input.clone(), by.clone()))]
            }
            TraceInput::Batch(events, attempt) => {
                let answer = |event: &EventInput| self.answer(Input::Event(event.clone()));
                let answers = events.iter().map(answer).collect();
                attempt.iter().for_each(|ended| self.attempted(ended));
                answers
            }
            TraceInput::Task { effect, answer, by } => vec![self.answer(answer.input(*effect, by))],
            TraceInput::Due => Vec::new(),
        };
        self.pass_time();
        answers
    }

    fn kill(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        self.old = self.records.len();
        for request in self.run.open() {
            let repeat = self.flaw == Some(Flaw::RepeatsEverything)
                || idempotent(self.setup.machine.definition().actors.get(request.src.as_ref()));
            let effect = request.effect;
            if let Resume::Unknown(fault) = self.run.after_restart(request, repeat, self.now) {
                self.handle(Input::answer(effect, Err(fault.json())));
            }
        }
        self.pass_time();
    }

    fn records(&mut self, from: u64) -> Vec<String> {
        self.records.iter().skip(from as usize).map(|r| r.text().to_owned()).collect()
    }
}

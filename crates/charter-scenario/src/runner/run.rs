//! Runs one scenario, step by step, until it ends or a step fails.

use charter_expr::nearest;
use charter_format::scenario::{Act, Computed, Scenario, ScenarioFile, ScenarioStep, Tick};
use charter_format::{Diagnostic, Severity, Span};
use charter_kernel::definition::Delay;
use charter_kernel::{Actor, Machine, Millis, Principal, Timestamp};
use serde_json::{Value as Json, json};

use super::cover::{Cover, Progress};
use super::matching::show;
use super::scope::{EvalFailure, EvalView, Expressions};
use super::sending::{check_refusal, known_principal};
use super::{codes, expect};
use crate::session::{Session, StepOutcome};

/// Upper limit of the steps of one scenario, including repetitions.
const MAX_STEPS: usize = 100_000;

/// The result of running a scenario.
#[derive(Debug)]
pub struct ScenarioResult {
    /// The number of steps that ran.
    pub steps: usize,
    /// The first step that failed, and why.
    pub failure: Option<Diagnostic>,
}

/// Why a step failed.
pub(crate) struct StepFailure {
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

pub(crate) struct Runner<'a> {
    pub(crate) file: &'a ScenarioFile,
    pub(crate) scenario: &'a Scenario,
    pub(crate) expressions: &'a Expressions,
    pub(crate) machine: &'a Machine,
    pub(crate) session: Session<'a>,
    pub(super) cover: &'a mut Cover,
    /// The effects of the last step, as a list.
    pub(crate) effects: Json,
    run: Json,
    /// The input of the run.
    input: Json,
    steps: usize,
}

/// Runs one scenario of a file.
pub fn run(
    file: &ScenarioFile,
    scenario: &Scenario,
    expressions: &Expressions,
    machine: &Machine,
    cover: &mut Cover,
) -> ScenarioResult {
    let mut steps = 0;
    let failure = match begin(file, scenario, expressions, machine, cover) {
        Ok(Some(mut runner)) => {
            let done = runner.steps(&scenario.steps);
            steps = runner.steps;
            done.err()
        }
        Ok(None) => None,
        Err(failure) => Some(failure),
    };
    let diagnostic = |f: StepFailure| file.diagnostic(Severity::Error, f.code, f.span, f.message, f.help);
    ScenarioResult { steps, failure: failure.map(diagnostic) }
}

/// Starts the run. Returns `None` if the start is refused and the scenario expects this.
fn begin<'a>(
    file: &'a ScenarioFile,
    scenario: &'a Scenario,
    expressions: &'a Expressions,
    machine: &'a Machine,
    cover: &'a mut Cover,
) -> Result<Option<Runner<'a>>, StepFailure> {
    let input = match &scenario.input {
        None => json!({}),
        Some(computed) => literal(computed).ok_or_else(|| StepFailure {
            code: codes::SCENARIO,
            span: computed.span,
            message: "the input of a run cannot be computed".into(),
            help: Some("write it as a literal".into()),
        })?,
    };
    let by = match &scenario.starter {
        None => Principal::system(),
        Some(starter) => known_principal(scenario, starter, scenario.span)?,
    };
    match (Session::start_by(machine, "run", input.clone(), by, scenario.at), &scenario.refused) {
        (Ok((session, outcome)), None) => {
            cover.take(outcome.taken.iter().copied());
            cover.reach(&session, || Progress { file: &file.name, scenario: &scenario.name, input: &input, line: 0 });
            let effects = Json::Array(outcome.effects);
            Ok(Some(Runner { effects, input, ..Runner::new(file, scenario, expressions, session, cover) }))
        }
        (Ok(_), Some((span, refusal))) => Err(StepFailure {
            code: codes::NOT_REFUSED,
            span: *span,
            message: format!("the run starts; expected the start to be refused with `{}`", refusal.code),
            help: None,
        }),
        (Err(explanation), Some((span, refusal))) => {
            check_refusal("the start", refusal, &explanation, *span)?;
            cover.refuse(&explanation);
            Ok(None)
        }
        (Err(explanation), None) => Err(StepFailure {
            code: codes::UNEXPECTED_REFUSAL,
            span: scenario.span,
            message: format!("the start is refused ({}): {}", explanation.code, explanation.message),
            help: None,
        }),
    }
}

fn literal(computed: &Computed) -> Option<Json> {
    match &computed.template {
        charter_kernel::definition::Template::Literal(value) => Some(value.clone()),
        _ => None,
    }
}

/// Runs the steps of a scenario in a run that goes on, instead of one that starts.
pub(super) fn resume(
    file: &ScenarioFile,
    scenario: &Scenario,
    expressions: &Expressions,
    session: Session<'_>,
    cover: &mut Cover,
) -> Result<(), String> {
    Runner::new(file, scenario, expressions, session, cover).steps(&scenario.steps).map_err(|failure| failure.message)
}

impl<'a> Runner<'a> {
    fn new(
        file: &'a ScenarioFile,
        scenario: &'a Scenario,
        expressions: &'a Expressions,
        session: Session<'a>,
        cover: &'a mut Cover,
    ) -> Runner<'a> {
        let machine = session.machine();
        let run = json!({"id": "run", "charter": machine.definition().id});
        let (effects, input) = (json!([]), json!({}));
        Runner { file, scenario, expressions, machine, session, cover, effects, run, input, steps: 0 }
    }

    fn steps(&mut self, steps: &[ScenarioStep]) -> Result<(), StepFailure> {
        for step in steps {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(StepFailure {
                    code: codes::SCENARIO,
                    span: step.span,
                    message: format!("the scenario has more than {MAX_STEPS} steps"),
                    help: Some("reduce `times`".into()),
                });
            }
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &ScenarioStep) -> Result<(), StepFailure> {
        match &step.act {
            Act::Send(sending) => self.send(sending, step)?,
            Act::Refused(sending, refusal) => self.refused(sending, refusal, step)?,
            Act::Expect(expectation) => return expect::check(self, expectation),
            Act::Tick(tick) => self.tick(tick, step)?,
            Act::Restore => {}
            Act::Repeat { times, steps } => {
                for _ in 0..*times {
                    self.steps(steps)?;
                }
                return Ok(());
            }
        }
        let (file, scenario, input) = (self.file, self.scenario, &self.input);
        self.cover.reach(&self.session, || {
            let line = line_of(&file.source, step.span.start);
            Progress { file: &file.name, scenario: &scenario.name, input, line }
        });
        // A snapshot must equal its round trip through JSON. This is checked after every step of
        // every scenario.
        let restored = self.session.restore();
        restored.map(drop).map_err(|error| StepFailure {
            code: codes::SCENARIO,
            span: step.span,
            message: error.to_string(),
            help: Some("this is a bug in Charter, not in the scenario: please report it".into()),
        })
    }

    fn tick(&mut self, tick: &Tick, step: &ScenarioStep) -> Result<(), StepFailure> {
        let failure = |code, message: String, help| StepFailure { code, span: step.span, message, help };
        let now = self.session.at();
        let until = match tick {
            Tick::Until(at) => Timestamp(*at),
            Tick::For(delay) => {
                let ms = self.duration(delay).map_err(|(message, help)| failure(codes::SCENARIO, message, help))?;
                now.saturating_add(Millis(i64::try_from(ms).unwrap_or(i64::MAX)))
            }
        };
        if until < now {
            let message = format!("this time is in the past: it is already {}", crate::timestamp::text(now));
            return Err(failure(codes::SCENARIO, message, None));
        }
        let outcome = self.session.tick(until);
        let outcome = outcome.map_err(|e| failure(codes::EXPECTATION, e.to_string(), None))?;
        if let Some(explanation) = &outcome.refusal {
            let message = format!("a timer is refused ({}): {}", explanation.code, explanation.message);
            return Err(failure(codes::UNEXPECTED_REFUSAL, message, None));
        }
        if outcome.timers_refused > 0 {
            let notes: Vec<String> = outcome.notes.iter().map(|n| n.message()).collect();
            return Err(failure(codes::UNEXPECTED_REFUSAL, notes.join("; "), None));
        }
        self.record(outcome);
        Ok(())
    }

    fn duration(&self, delay: &Delay) -> Result<u64, (String, Option<String>)> {
        match delay {
            Delay::Ms(ms) => Ok(*ms),
            Delay::Name(name) => {
                let delays = &self.machine.definition().delays;
                match delays.get(name) {
                    Some(Delay::Ms(ms)) => Ok(*ms),
                    Some(_) => Err((
                        format!("the delay `{name}` is computed, so its duration is not known here"),
                        Some("write the duration, such as `72h`".into()),
                    )),
                    None => {
                        let near = nearest(name, delays.keys().map(String::as_str));
                        let near = near.map(|near| format!("did you mean `{near}`?"));
                        Err((format!("unknown delay `{name}`"), near))
                    }
                }
            }
            Delay::Cel(_) => {
                Err(("a tick cannot be computed".into(), Some("write the duration, such as `72h`".into())))
            }
        }
    }

    /// Records the effects of a step and the transitions that it took.
    pub(super) fn record(&mut self, outcome: StepOutcome<'_>) {
        self.cover.take(outcome.taken.iter().copied());
        self.effects = Json::Array(outcome.effects);
    }

    /// Evaluates a value of the scenario for an actor.
    pub(crate) fn value(&self, computed: &Computed, actor: Option<&str>) -> Result<Json, StepFailure> {
        let value = self.expressions.value(computed, self.view(actor));
        value.map_err(|failed: EvalFailure| StepFailure {
            code: codes::SCENARIO,
            span: match failed.span {
                Some(bytes) => self.file.span_within(&failed.at, bytes),
                None => self.file.span(&failed.at),
            },
            message: failed.message,
            help: failed.help,
        })
    }

    /// Lists the values that a condition reads, for the help of a message.
    pub(crate) fn reads(&self, condition: &Computed, actor: &str) -> Option<String> {
        let reads = self.expressions.reads(condition, self.view(Some(actor)));
        let words = reads.iter().map(|(path, v)| format!("`{path}` is {}", show(v)));
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    fn view(&self, actor: Option<&str>) -> EvalView<'_> {
        let snapshot = self.session.snapshot();
        EvalView {
            snapshot,
            actor: snapshot.actor(actor.unwrap_or("root")),
            now: self.session.at(),
            effects: &self.effects,
            run: &self.run,
            none: &Json::Null,
        }
    }

    /// The ids of the actors of the run.
    pub(crate) fn actor_ids(&self) -> Vec<String> {
        let actors = self.session.snapshot().actors();
        actors.map(Actor::id).map(str::to_owned).collect()
    }
}

pub(crate) fn line_of(source: &str, byte: usize) -> usize {
    let before = source.as_bytes().get(..byte).unwrap_or_default();
    before.iter().filter(|b| **b == b'\n').count() + 1
}

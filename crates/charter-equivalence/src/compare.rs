//! Gives the same moves to several hosts and compares what they store and answer.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use charter_kernel::{Millis, Timestamp};
use charter_run::Bounds;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRng, TestRunner};

use crate::act::{Act, act};
use crate::charters::{Charter, NAMED};
use crate::core::Core;
use crate::director::{Director, Move};
use crate::subject::{Answer, Setup, Subject};

/// Upper limit of the steps of a route that come first in a case.
const MAX_SKIPPED: usize = 20;
/// Upper limit of the moves of a case after them.
const MAX_MOVES: usize = 30;

/// Which charters the cases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// The bundled charters and random ones.
    All,
    /// One of the bundled charters, or a small one: `job`, in which each rule matters, or `shop`,
    /// whose events have unique keys.
    Only(&'static str),
    /// Random charters.
    Random,
}

/// Creates a host for a case. `None`: it refuses the charter, as only hosts may that do not reserve
/// unique keys, and only a charter that has some.
pub type Open<'h> = &'h dyn Fn(&Setup) -> Option<Box<dyn Subject>>;

#[derive(Debug, Clone)]
struct Case {
    /// Selects a charter that has a name, or `None` for a random one.
    named: Option<Index>,
    bytes: Vec<u8>,
    route: Index,
    /// How many steps of the route come first.
    skipped: usize,
    bounds: usize,
    acts: Vec<Act>,
}

fn cases(sources: Sources) -> impl Strategy<Value = Case> {
    let named = match sources {
        Sources::Random => Just(None).boxed(),
        Sources::Only(_) => any::<Index>().prop_map(Some).boxed(),
        Sources::All => proptest::option::weighted(0.6, any::<Index>()).boxed(),
    };
    let bytes = proptest::collection::vec(any::<u8>(), 40..300);
    let acts = proptest::collection::vec(act(), 1..MAX_MOVES);
    let skipped = prop_oneof![Just(0), 0..MAX_SKIPPED];
    let parts = (named, bytes, any::<Index>(), skipped, 0..4usize, acts);
    parts.prop_map(|(named, bytes, route, skipped, bounds, acts)| Case { named, bytes, route, skipped, bounds, acts })
}

impl Case {
    fn charter(&self, sources: Sources) -> Option<Arc<Charter>> {
        Some(match (self.named, sources) {
            (Some(_), Sources::Only(name)) => NAMED.iter().find(|c| c.name == name).expect("a known name").clone(),
            (Some(which), _) => which.get(&NAMED).clone(),
            (None, _) => Arc::new(Charter::random(&self.bytes)?),
        })
    }

    fn bounds(&self) -> Bounds {
        [
            Bounds { records: 0, data_bytes: 0 },
            Bounds { records: 0, data_bytes: 0 },
            Bounds { records: 0, data_bytes: 1_000 },
            Bounds { records: 8, data_bytes: 0 },
        ][self.bounds]
    }
}

/// The first difference between a host and the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The name of the host.
    pub host: String,
    /// The inputs until then, one a line, and what the hosts made of the last one.
    pub text: String,
}

/// Checks that hosts store and answer the same as the reference in random cases.
///
/// # Panics
/// A host differs; the message has the shrunk sequence of inputs.
pub fn compare(cases: u32, sources: Sources, hosts: &[(&str, Open<'_>)]) {
    let runner = TestRunner::new(config(cases));
    if let Some(difference) = search(runner, sources, hosts) {
        panic!("the host `{}` differs:\n{}", difference.host, difference.text);
    }
}

/// Like [`compare`], but always with the same cases, and returns the difference.
#[must_use]
pub fn difference(cases: u32, sources: Sources, hosts: &[(&str, Open<'_>)]) -> Option<Difference> {
    // Shrinks less: what is printed need not be the smallest case.
    let config = Config { max_shrink_iters: 150, ..config(cases) };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    search(TestRunner::new_with_rng(config, rng), sources, hosts)
}

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 1_500, ..Config::default() }
}

fn search(mut runner: TestRunner, sources: Sources, hosts: &[(&str, Open<'_>)]) -> Option<Difference> {
    let last = std::cell::RefCell::new(None);
    let result = runner.run(&cases(sources), |case| match compared(&case, sources, hosts) {
        None => Ok(()),
        Some(difference) => {
            let text = difference.text.clone();
            last.replace(Some(difference));
            Err(TestCaseError::fail(text))
        }
    });
    match result {
        Ok(()) => None,
        // Shrinking ends with a case that may have passed: compare the shrunk one again.
        Err(TestError::Fail(_, case)) => compared(&case, sources, hosts).or(last.into_inner()),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// Compares the hosts in one case.
fn compared(case: &Case, sources: Sources, hosts: &[(&str, Open<'_>)]) -> Option<Difference> {
    let charter = case.charter(sources)?;
    let (machine, stored, others) = (charter.machine.clone(), charter.stored.clone(), charter.others.clone());
    let setup = Setup { machine, stored, bounds: case.bounds(), others };
    let route = case.route.get(&charter.routes);
    let mut core = Core::new(&setup);
    let mut subjects: Vec<(&str, Box<dyn Subject>)> = Vec::new();
    for (name, open) in hosts {
        match open(&setup) {
            Some(subject) => subjects.push((*name, subject)),
            None if setup.machine.unique_event().is_some() => {}
            None => {
                let text =
                    format!("the host `{name}` refuses the charter `{}`, which has no unique keys", charter.name);
                return Some(Difference { host: (*name).into(), text });
            }
        }
    }
    let mut director = Director::new(&charter, &setup, route);
    let mut story = format!("charter `{}`, {:?}\n", charter.name, setup.bounds);
    let start = director.start();
    let follow = std::iter::repeat_n(&Act::Follow { id: None }, case.skipped);
    let mut moves = follow.chain(&case.acts);
    let mut next = Some(Move::Give(start));
    loop {
        if let Some(step) = next.take() {
            let from = core.history().len() as u64;
            let at = director.now;
            let (theirs, answers) = (&mut subjects, give(&mut core, at, &step));
            let records = core.records(from);
            tell(&mut story, at.since(route.begin), &step, &answers, &core, from);
            for (name, subject) in theirs {
                // A panic is a difference, too.
                let done = catch_unwind(AssertUnwindSafe(|| {
                    let answers = give(subject.as_mut(), at, &step);
                    (answers, subject.records(from))
                }));
                match done {
                    Ok((other, found)) if other == answers && found == records => continue,
                    Ok((other, found)) => {
                        let _ = writeln!(story, "the host `{name}` answers {other:?} and stores");
                        found.iter().for_each(|text| story.push_str(&format!("    {text}\n")));
                        let _ = writeln!(story, "instead of");
                        records.iter().for_each(|text| story.push_str(&format!("    {text}\n")));
                    }
                    Err(why) => {
                        let why = why.downcast_ref::<String>().map_or("?", String::as_str);
                        let _ = writeln!(story, "the host `{name}` panics: {why}");
                    }
                }
                if charter.name == "random" {
                    let _ = writeln!(story, "\nthe charter:\n{}", setup.stored.core);
                }
                return Some(Difference { host: (*name).into(), text: story });
            }
            // Without a snapshot, the start was refused.
            core.run().snapshot()?;
        }
        next = director.next(moves.next()?, &core);
    }
}

fn give(subject: &mut dyn Subject, at: Timestamp, step: &Move) -> Vec<Answer> {
    match step {
        Move::Give(input) => subject.give(at, input),
        Move::Kill => {
            subject.kill(at);
            Vec::new()
        }
    }
}

/// Adds a move and its result to the story of a case.
fn tell(story: &mut String, Millis(at): Millis, step: &Move, answers: &[Answer], core: &Core, from: u64) {
    let what = match step {
        Move::Give(input) => input.to_string(),
        Move::Kill => "the host is killed and started again".into(),
    };
    let _ = writeln!(story, "+{at} ms: {what} -> {answers:?}");
    for record in core.history().iter().skip(from as usize) {
        let states = record.state.join(", ");
        let _ = writeln!(story, "    {} {} {}: {states}", record.seq, record.event.r#type, record.verdict.word());
    }
}

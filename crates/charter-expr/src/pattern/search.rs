//! Searches with the set of the states in which an automaton may be: each visit of a state is
//! charged.

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::look::{Look, LookSet};
use regex_automata::util::primitives::StateID;

use crate::Fuel;
use crate::error::EvalError;

/// The visits that cost one unit of fuel.
const VISITS_PER_UNIT: u64 = 8;

/// The visits after which they are paid.
const PAID_TOGETHER: u64 = 1_024;

struct Meter<'f> {
    visits: u64,
    fuel: &'f mut Fuel,
}

impl Meter<'_> {
    fn visit(&mut self, count: u64) -> Result<(), EvalError> {
        self.visits = self.visits.saturating_add(count);
        if self.visits < PAID_TOGETHER {
            return Ok(());
        }
        let units = self.visits / VISITS_PER_UNIT;
        self.visits %= VISITS_PER_UNIT;
        self.fuel.spend(units)
    }

    fn finish(self) -> Result<(), EvalError> {
        self.fuel.spend((self.visits / VISITS_PER_UNIT).saturating_add(1))
    }
}

/// States, each at most once.
struct Set {
    list: Vec<StateID>,
    has: Vec<bool>,
}

impl Set {
    fn new(states: usize) -> Set {
        Set { list: Vec::new(), has: vec![false; states] }
    }

    fn insert(&mut self, id: StateID) -> bool {
        match self.has.get_mut(id.as_usize()) {
            Some(has) if !*has => {
                *has = true;
                self.list.push(id);
                true
            }
            _ => false,
        }
    }

    fn clear(&mut self) {
        for id in self.list.drain(..) {
            if let Some(has) = self.has.get_mut(id.as_usize()) {
                *has = false;
            }
        }
    }
}

/// Whether the pattern is found somewhere in the text.
pub(super) fn is_match(nfa: &NFA, text: &str, fuel: &mut Fuel) -> Result<bool, EvalError> {
    let mut meter = Meter { visits: 0, fuel };
    let found = Search::begin(nfa, text.as_bytes(), &mut meter)?.find(text, &mut meter)?;
    meter.finish()?;
    Ok(found)
}

struct Search<'n> {
    nfa: &'n NFA,
    text: &'n [u8],
    stack: Vec<StateID>,
    now: Set,
    next: Set,
}

impl<'n> Search<'n> {
    fn begin(nfa: &'n NFA, text: &'n [u8], meter: &mut Meter<'_>) -> Result<Search<'n>, EvalError> {
        let states = nfa.states().len();
        meter.visit(states as u64 / 8)?;
        Ok(Search { nfa, text, stack: Vec::new(), now: Set::new(states), next: Set::new(states) })
    }

    fn find(mut self, text: &str, meter: &mut Meter<'_>) -> Result<bool, EvalError> {
        let anchored = self.nfa.is_always_start_anchored();
        for at in 0..=text.len() {
            // A match does not start within a character.
            if (at == 0 || !anchored) && text.is_char_boundary(at) {
                std::mem::swap(&mut self.now, &mut self.next);
                let found = self.enter(self.nfa.start_anchored(), at, meter)?;
                std::mem::swap(&mut self.now, &mut self.next);
                if found {
                    return Ok(true);
                }
            }
            if anchored && self.now.list.is_empty() {
                return Ok(false);
            }
            let Some(byte) = self.text.get(at) else {
                return Ok(false);
            };
            if self.step(*byte, at, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes on by a byte. Returns whether there is a match.
    fn step(&mut self, byte: u8, at: usize, meter: &mut Meter<'_>) -> Result<bool, EvalError> {
        let now = std::mem::take(&mut self.now.list);
        let mut found = false;
        for id in &now {
            let state = self.nfa.state(*id);
            meter.visit(weight(state))?;
            if let Some(next) = next(state, byte) {
                found = self.enter(next, at.saturating_add(1), meter)?;
                if found {
                    break;
                }
            }
        }
        self.now.list = now;
        self.now.clear();
        std::mem::swap(&mut self.now, &mut self.next);
        Ok(found)
    }

    /// Adds a state to `next`, with all that it leads to without a byte. Returns whether there is a
    /// match.
    fn enter(&mut self, id: StateID, at: usize, meter: &mut Meter<'_>) -> Result<bool, EvalError> {
        self.stack.push(id);
        while let Some(id) = self.stack.pop() {
            meter.visit(1)?;
            if !self.next.insert(id) {
                continue;
            }
            match self.nfa.state(id) {
                State::Match { .. } => return Ok(true),
                State::Look { look, next } => {
                    if self.holds(*look, at, meter)? {
                        self.stack.push(*next);
                    }
                }
                state => follow(state, &mut self.stack),
            }
        }
        Ok(false)
    }

    /// Whether a condition holds at a position.
    fn holds(&self, look: Look, at: usize, meter: &mut Meter<'_>) -> Result<bool, EvalError> {
        let around = [at.checked_sub(1), Some(at)];
        let is_ascii = |at: usize| self.text.get(at).is_none_or(u8::is_ascii);
        let look = match look {
            Look::WordUnicode if around.into_iter().flatten().all(is_ascii) => Look::WordAscii,
            Look::WordUnicodeNegate if around.into_iter().flatten().all(is_ascii) => Look::WordAsciiNegate,
            look => look,
        };
        // A character beyond ASCII is looked up in a table.
        let unicode = LookSet::singleton(look).contains_word_unicode();
        meter.visit(if unicode { 32 } else { 1 })?;
        Ok(self.nfa.look_matcher().matches(look, self.text, at))
    }
}

/// The state after a byte.
pub(super) fn next(state: &State, byte: u8) -> Option<StateID> {
    match state {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(sparse) => sparse.matches_byte(byte),
        State::Dense(dense) => dense.matches_byte(byte),
        _ => None,
    }
}

/// What it costs to find the state after a byte, in visits.
pub(super) fn weight(state: &State) -> u64 {
    match state {
        State::Sparse(sparse) => (sparse.transitions.len() as u64 / 8).saturating_add(1),
        _ => 1,
    }
}

/// Adds what a state leads to without a byte and without a condition.
pub(super) fn follow(state: &State, to: &mut Vec<StateID>) {
    match state {
        State::Union { alternates } => to.extend(alternates.iter()),
        State::BinaryUnion { alt1, alt2 } => to.extend([*alt1, *alt2]),
        State::Capture { next, .. } => to.push(*next),
        _ => {}
    }
}

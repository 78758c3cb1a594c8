//! The deterministic automaton of a pattern as a table, if it is small: one look-up for each byte.

use std::collections::{BTreeMap, VecDeque};

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::look::{Look, LookSet};
use regex_automata::util::primitives::StateID;

use super::search::{follow, next, weight};

/// Upper limit of the entries of a table: 128 KB.
const MAX_ENTRIES: usize = 1 << 16;

/// Upper limit of the visits of states of the other automaton while a table is built.
const MAX_VISITS: u64 = 200_000;

/// The state in which no match is possible any more.
const DEAD: u16 = 0;
/// The state in which a match was found.
const FOUND: u16 = 1;

/// A table: a row for each state, a column for each class of bytes.
#[derive(Clone, Debug)]
pub(super) struct Table {
    start: u16,
    classes: Box<[u8; 256]>,
    columns: usize,
    next: Box<[u16]>,
    /// By state: whether the end of the text makes a match.
    ends: Box<[bool]>,
}

impl Table {
    /// Builds the table; `None` if it is too large, or if the pattern looks at the characters
    /// around a position.
    pub(super) fn build(nfa: &NFA) -> Option<Table> {
        let ends_only = LookSet::empty().insert(Look::Start).insert(Look::End);
        if nfa.look_set_any().subtract(ends_only).is_empty() { Builder::new(nfa).build() } else { None }
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        let mut at = self.start;
        for byte in text {
            if at <= FOUND {
                return at == FOUND;
            }
            let class = usize::from(self.classes.get(usize::from(*byte)).copied().unwrap_or_default());
            let place = usize::from(at).saturating_mul(self.columns).saturating_add(class);
            at = self.next.get(place).copied().unwrap_or(DEAD);
        }
        self.ends.get(usize::from(at)).copied().unwrap_or_default()
    }
}

/// The states of the other automaton that a row stands for, in order: those that wait for a byte or
/// for the end of the text.
type Row = Vec<StateID>;

struct Builder<'n> {
    nfa: &'n NFA,
    visits: u64,
    /// By a hash, which is compared faster than long rows with the same beginning.
    rows: BTreeMap<(u64, Row), u16>,
    /// Rows that are not yet filled, in the order of their numbers.
    waiting: VecDeque<Row>,
    ends: Vec<bool>,
    /// The states that a closure has seen.
    seen: Vec<bool>,
}

impl<'n> Builder<'n> {
    fn new(nfa: &'n NFA) -> Builder<'n> {
        let rows = BTreeMap::from([((hash(&[]), Row::new()), DEAD)]);
        let seen = vec![false; nfa.states().len()];
        Builder { nfa, visits: 0, rows, waiting: VecDeque::new(), ends: vec![false, true], seen }
    }

    fn build(mut self) -> Option<Table> {
        let mut classes = Box::new([0; 256]);
        let mut bytes: Vec<u8> = Vec::new();
        for (byte, class) in (0..=u8::MAX).zip(classes.iter_mut()) {
            *class = self.nfa.byte_classes().get(byte);
            if usize::from(*class) == bytes.len() {
                bytes.push(byte);
            }
        }
        let columns = bytes.len();
        let mut next = vec![DEAD; columns];
        next.extend(vec![FOUND; columns]);
        let start = self.row(vec![self.nfa.start_anchored()], true)?;
        while let Some(row) = self.waiting.pop_front() {
            if next.len().saturating_add(columns) > MAX_ENTRIES {
                return None;
            }
            for byte in &bytes {
                next.push(self.after(&row, *byte)?);
            }
        }
        let (next, ends) = (next.into_boxed_slice(), self.ends.into_boxed_slice());
        Some(Table { start, classes, columns, next, ends })
    }

    /// The number of the row after a byte; `None` if that takes too long.
    fn after(&mut self, row: &Row, byte: u8) -> Option<u16> {
        let mut targets = Vec::new();
        if !self.nfa.is_always_start_anchored() {
            targets.push(self.nfa.start_anchored());
        }
        for id in row {
            let state = self.nfa.state(*id);
            self.visits = self.visits.saturating_add(weight(state));
            targets.extend(next(state, byte));
        }
        self.row(targets, false)
    }

    /// The number of the row for states and all that they lead to.
    fn row(&mut self, targets: Vec<StateID>, at_start: bool) -> Option<u16> {
        let (row, found) = self.closure(targets, at_start, false)?;
        if found {
            return Some(FOUND);
        }
        // The row of the start is never shared: what its states lead to is decided at the start.
        let key = (hash(&row), row);
        if !at_start && let Some(known) = self.rows.get(&key) {
            return Some(*known);
        }
        let row = key.1.clone();
        let number = u16::try_from(self.ends.len()).ok()?;
        let (_, ends) = self.closure(row.clone(), at_start, true)?;
        self.ends.push(ends);
        if !at_start {
            self.rows.insert(key, number);
        }
        self.waiting.push_back(row);
        Some(number)
    }

    /// What states lead to without a byte, at the start or the end of the text or at neither, and
    /// whether that is a match.
    fn closure(&mut self, mut stack: Vec<StateID>, at_start: bool, at_end: bool) -> Option<(Row, bool)> {
        let mut row = Row::new();
        let mut seen = Vec::new();
        let mut found = false;
        while let Some(id) = stack.pop().filter(|_| !found) {
            self.visits = self.visits.saturating_add(1);
            if self.visits > MAX_VISITS {
                return None;
            }
            match self.seen.get_mut(id.as_usize()) {
                Some(known) if !*known => *known = true,
                _ => continue,
            }
            seen.push(id);
            match self.nfa.state(id) {
                State::Match { .. } => found = true,
                State::Look { look: Look::End, .. } if !at_end => row.push(id),
                State::Look { look: Look::Start, .. } if !at_start => {}
                State::Look { next, .. } => stack.push(*next),
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => row.push(id),
                state => follow(state, &mut stack),
            }
        }
        for id in seen {
            if let Some(known) = self.seen.get_mut(id.as_usize()) {
                *known = false;
            }
        }
        row.sort_unstable();
        Some((row, found))
    }
}

/// FNV-1a, over states instead of bytes.
fn hash(row: &[StateID]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    row.iter().fold(start, |hash, id| (hash ^ u64::from(id.as_u32())).wrapping_mul(0x0100_0000_01b3))
}

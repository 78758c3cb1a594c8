//! Exact state counts of small charters, compared with `stateright` models of the same machines.

use ::stateright::{Checker, Model, Property};
use charter_check::{Options, explore};
use charter_test_support::machine;

/// Counts states and edges, and names what kept the exploration from covering all behavior.
fn counts_and_cut(source: &str) -> (usize, usize, Vec<String>) {
    let exploration = explore(&machine(source), &Options::default());
    let explored = exploration.explored();
    assert_eq!(explored.complete, explored.cut.is_empty(), "{explored:?}");
    (explored.states, explored.edges, explored.cut.clone())
}

/// Counts states and edges of a charter of which all behavior is covered.
fn counts(source: &str) -> (usize, usize) {
    let (states, edges, cut) = counts_and_cut(source);
    assert!(cut.is_empty(), "{cut:?}");
    (states, edges)
}

fn stateright_count<M: Model + Send + Sync + 'static>(model: M) -> usize
where
    M::State: Send + Sync + Clone + std::fmt::Debug + std::hash::Hash + PartialEq,
    M::Action: Send + Sync + Clone + std::fmt::Debug + PartialEq,
{
    model.checker().spawn_bfs().join().unique_state_count()
}

/// Three cyclic regions, and one transition that leaves all of them.
const REGIONS: &str = "
initial: work
states:
  work:
    type: parallel
    on: {STOP: stopped}
    states:
      a: {initial: x, states: {x: {on: {A: y}}, y: {on: {A: z}}, z: {on: {A: x}}}}
      b: {initial: x, states: {x: {on: {B: y}}, y: {on: {B: z}}, z: {on: {B: x, A: x}}}}
      c: {initial: x, states: {x: {on: {C: y}}, y: {}}}
  stopped: {type: final}
events: {A: {}, B: {}, C: {}, STOP: {}}
";

#[derive(Clone)]
struct Regions;

impl Model for Regions {
    type State = Option<[u8; 3]>;
    type Action = char;
    fn init_states(&self) -> Vec<Self::State> {
        vec![Some([0, 0, 0])]
    }
    fn actions(&self, state: &Self::State, actions: &mut Vec<char>) {
        if state.is_some() {
            actions.extend(['A', 'B', 'C', 'S']);
        }
    }
    fn next_state(&self, last: &Self::State, action: char) -> Option<Self::State> {
        let mut s = (*last)?;
        match action {
            'A' => {
                s[0] = (s[0] + 1) % 3;
                if s[1] == 2 {
                    s[1] = 0;
                }
            }
            'B' => s[1] = (s[1] + 1) % 3,
            'C' if s[2] == 0 => s[2] = 1,
            'C' => return None,
            _ => return Some(None),
        }
        Some(Some(s))
    }
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("bounded", |_, s: &Self::State| s.is_none_or(|s| s[2] < 2))]
    }
}

#[test]
fn regions() {
    // There are 3 * 3 * 2 states and the final one; A, B and STOP are legal in all but that one,
    // and C in half of them.
    assert_eq!(counts(REGIONS), (19, 18 * 3 + 9));
    assert_eq!(stateright_count(Regions), 19);
    // Explore the same charter through the kernel: a property disables the table-driven
    // exploration.
    let slow = format!("{REGIONS}properties: [{{id: p, always: 'true'}}]\n");
    assert_eq!(counts(&slow), (19, 18 * 3 + 9));
}

/// An invocation that is retried three times.
const RETRY: &str = "
actors: {work: {kind: tool, output: {type: object}}}
context: {n: 0, said: null}
states:
  work:
    invoke:
      src: work
      onDone: done
      onError:
        - {target: work, reenter: true, when: context.n < 3, actions: {assign: {n: '= context.n + 1', said: '= event.error.message'}}}
        - failed
  done: {type: final}
  failed: {type: final}
";

#[derive(Clone)]
struct Retry;

impl Model for Retry {
    /// Phase (0 running, 1 done, 2 failed) and the number of retries.
    type State = (u8, u8);
    type Action = bool;
    fn init_states(&self) -> Vec<Self::State> {
        vec![(0, 0)]
    }
    fn actions(&self, state: &Self::State, actions: &mut Vec<bool>) {
        if state.0 == 0 {
            actions.extend([true, false]);
        }
    }
    fn next_state(&self, &(_, n): &Self::State, answered: bool) -> Option<Self::State> {
        Some(match answered {
            true => (1, n),
            false if n < 3 => (0, n + 1),
            false => (2, n),
        })
    }
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("bounded", |_, s: &Self::State| s.1 <= 3)]
    }
}

#[test]
fn retries() {
    // The error message, which no guard reads, does not multiply states; but only some of its
    // values are tried.
    let (states, edges, cut) = counts_and_cut(RETRY);
    assert_eq!((states, edges), (9, 8));
    assert!(matches!(&cut[..], [one] if one.contains("`event.error.message`")), "{cut:?}");
    assert_eq!(stateright_count(Retry), 9);
}

/// A permit for two uses, a quorum of two out of two people, a deadline.
const PERMIT: &str = "
roles: {boss: {}}
events: {GRANT: {by: boss}, USE: {by: boss}}
ledger: {token: {}}
states:
  idle: {on: {GRANT: {target: busy, quorum: {count: 2, of: boss}, actions: {grant: {kind: token, key: t, uses: 2}}}}}
  busy: {on: {USE: {requires: {use: {kind: token, key: t}}}}, after: {1h: over}}
  over: {type: final}
";

#[derive(Clone)]
struct Permit;

impl Model for Permit {
    /// Who has voted (0 nobody, 1 ana, 2 ben), the remaining uses once the permit is granted, and
    /// whether the deadline has passed.
    type State = (u8, Option<u8>, bool);
    type Action = &'static str;
    fn init_states(&self) -> Vec<Self::State> {
        vec![(0, None, false)]
    }
    fn actions(&self, state: &Self::State, actions: &mut Vec<&'static str>) {
        match state {
            (_, None, _) => actions.extend(["ana", "ben"]),
            (_, Some(_), false) => actions.extend(["use", "tick"]),
            _ => {}
        }
    }
    fn next_state(&self, &(vote, left, _): &Self::State, action: &'static str) -> Option<Self::State> {
        match (action, vote, left) {
            ("ana", 0, _) => Some((1, None, false)),
            ("ben", 0, _) => Some((2, None, false)),
            ("ana", 2, _) | ("ben", 1, _) => Some((0, Some(2), false)),
            ("use", _, Some(n)) if n > 0 => Some((0, Some(n - 1), false)),
            ("tick", _, left) => Some((0, left, true)),
            _ => None,
        }
    }
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("bounded", |_, s: &Self::State| s.1.is_none_or(|n| n <= 2))]
    }
}

#[test]
fn permits_and_quorums() {
    // Two people vote; a quorum of other people is the same up to names, which is not proved.
    let (states, edges, cut) = counts_and_cut(PERMIT);
    assert_eq!((states, edges), (9, 2 + 2 + 2 + 3));
    assert!(matches!(&cut[..], [one] if one.contains("groups of principals")), "{cut:?}");
    assert_eq!(stateright_count(Permit), 9);
}

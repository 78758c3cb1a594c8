//! What happens in a case, without the details that depend on the state of the run: proptest
//! generates and shrinks it.

use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Milliseconds pass.
    Wait(i64),
    /// Time passes until the next timer or attempt is due, and some milliseconds more.
    WaitForDue(i64),
    /// The next step of the route.
    Follow {
        id: Option<u8>,
    },
    /// An event of the route, at a wrong moment or from a wrong sender.
    Send(Sent),
    /// Two events at once, and then the end of an attempt.
    Together {
        first: Sent,
        second: Option<Sent>,
        ended: Option<(Index, Ended)>,
    },
    /// An earlier event again, with its id.
    Repeat {
        which: Index,
        other: bool,
    },
    /// An attempt ends.
    Ends {
        which: Index,
        how: Ended,
    },
    /// An attempt ends in hosts that have begun it too early; the others know nothing of it.
    Early {
        which: Index,
        how: Ended,
    },
    /// An attempt ends whose answer the run does not wait for.
    Late {
        which: Index,
        how: Ended,
    },
    Task {
        which: Index,
        done: bool,
        who: u8,
        output: Index,
    },
    Control(&'static str),
    StartAgain {
        other: bool,
    },
    Kill,
}

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) which: Index,
    pub(crate) data: Data,
    pub(crate) who: u8,
    pub(crate) id: Id,
    pub(crate) expected: Expected,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Data {
    AsFound,
    Number(i64),
    Large,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Id {
    None,
    Small(u8),
    Reserved,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    None,
    Last,
    Stale,
    Future,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    Output(Index),
    Junk(i64),
    Fails { retryable: bool },
}

fn ended() -> impl Strategy<Value = Ended> {
    prop_oneof![
        4 => any::<Index>().prop_map(Ended::Output),
        2 => (-1..3i64).prop_map(Ended::Junk),
        2 => any::<bool>().prop_map(|retryable| Ended::Fails { retryable }),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let data = prop_oneof![4 => Just(Data::AsFound), 3 => (-2..5i64).prop_map(Data::Number), 1 => Just(Data::Large)];
    let id = prop_oneof![3 => Just(Id::None), 5 => (0..4u8).prop_map(Id::Small), 1 => Just(Id::Reserved)];
    let expected = prop_oneof![
        6 => Just(Expected::None),
        1 => Just(Expected::Last),
        1 => Just(Expected::Stale),
        1 => Just(Expected::Future),
    ];
    (any::<Index>(), data, 0..6u8, id, expected).prop_map(|(which, data, who, id, expected)| Sent {
        which,
        data,
        who,
        id,
        expected,
    })
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let wait = prop_oneof![Just(0), 1..60i64, 100..900i64, Just(60_000), Just(3_600_000), Just(100_000_000)];
    let control = prop_oneof![3 => Just("charter.pause"), 4 => Just("charter.resume"), 1 => Just("charter.cancel")];
    prop_oneof![
        3 => wait.prop_map(Act::Wait),
        3 => prop_oneof![Just(0), 0..300i64].prop_map(Act::WaitForDue),
        8 => proptest::option::of(0..4u8).prop_map(|id| Act::Follow { id }),
        4 => sent().prop_map(Act::Send),
        2 => (sent(), proptest::option::of(sent()), proptest::option::of((any::<Index>(), ended())))
            .prop_map(|(first, second, ended)| Act::Together { first, second, ended }),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(which, other)| Act::Repeat { which, other }),
        5 => (any::<Index>(), ended()).prop_map(|(which, how)| Act::Ends { which, how }),
        2 => (any::<Index>(), ended()).prop_map(|(which, how)| Act::Early { which, how }),
        1 => (any::<Index>(), ended()).prop_map(|(which, how)| Act::Late { which, how }),
        2 => (any::<Index>(), any::<bool>(), 0..6u8, any::<Index>())
            .prop_map(|(which, done, who, output)| Act::Task { which, done, who, output }),
        2 => control.prop_map(Act::Control),
        1 => any::<bool>().prop_map(|other| Act::StartAgain { other }),
        2 => Just(Act::Kill),
    ]
}

//! Layouts of random statecharts have no overlaps and are deterministic.

use charter_kernel::Definition;
use charter_kernel::definition::{On, State, StateKind, Transition};
use charter_test_support::cases;
use proptest::prelude::*;

use super::geometry::Layout;
use super::layout::layout;
use crate::Overlay;
use crate::drawing::{Drawing, drawings};

/// Builds a statechart from numbers: each state is a child of an earlier state or of the root;
/// arrows are arbitrary.
fn definition(parents: &[(usize, u8)], arrows: &[(usize, usize, u8)]) -> Definition {
    let mut states: Vec<State> = parents.iter().map(|_| State::default()).collect();
    for (from, to, event) in arrows {
        let from = from % states.len();
        let transition = Transition {
            target: vec![format!("#s{}", to % states.len())],
            when: (event % 3 == 0).then(|| "a.b == 'c'".to_owned()),
            ..Transition::default()
        };
        states[from].on.push(On { events: vec![format!("EVENT_{event}")], transitions: vec![transition] });
    }
    let mut root = State { kind: StateKind::Compound, ..State::default() };
    for (id, (parent, kind)) in parents.iter().enumerate().rev() {
        let mut state = std::mem::take(&mut states[id]);
        state.id = Some(format!("s{id}"));
        state.kind = match (state.states.is_empty(), kind) {
            (true, 0..4) => StateKind::Atomic,
            (true, 4) => StateKind::Final,
            (true, _) => StateKind::Shallow,
            (false, 0..5) => StateKind::Compound,
            (false, _) => StateKind::Parallel,
        };
        let above = parent % (id + 1);
        let siblings = if above == id { &mut root.states } else { &mut states[above].states };
        siblings.shift_insert(0, format!("state{id}"), state);
    }
    let mut definition = Definition { id: "t".to_owned(), ..Definition::default() };
    definition.root.state = root;
    definition
}

/// Asserts that children are inside their parents and that siblings do not overlap.
fn assert_apart(drawing: &Drawing<'_>, layout: &Layout) {
    for (id, shape) in drawing.shapes.iter().enumerate() {
        for (number, child) in shape.children.iter().enumerate() {
            let own = layout.boxes[*child];
            let (left, top) = (own.x >= 0.0, own.y >= 0.0);
            assert!(
                left && top && own.x + own.width <= layout.width && own.y + own.height <= layout.height,
                "{child} is off the page: {own:?}"
            );
            if id > 0 {
                let outer = layout.boxes[id];
                assert!(
                    own.x > outer.x
                        && own.y > outer.y
                        && own.x + own.width < outer.x + outer.width
                        && own.y + own.height < outer.y + outer.height,
                    "{child} is not inside {id}"
                );
            }
            for other in &shape.children[number + 1..] {
                assert!(
                    !own.meets(&layout.boxes[*other]),
                    "{child} and {other} overlap: {own:?} {:?}",
                    layout.boxes[*other]
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(3, 32), ..ProptestConfig::default() })]

    #[test]
    fn nothing_overlaps_and_nothing_depends_on_chance(
        parents in proptest::collection::vec((0..1_000_usize, 0..6_u8), 1..30),
        arrows in proptest::collection::vec((0..1_000_usize, 0..1_000_usize, 0..9_u8), 0..45),
    ) {
        let definition = definition(&parents, &arrows);
        let drawings = drawings(&definition, &Overlay::default());
        let first = layout(&drawings[0]);
        assert_apart(&drawings[0], &first);
        prop_assert_eq!(format!("{first:?}"), format!("{:?}", layout(&drawings[0])));
    }
}

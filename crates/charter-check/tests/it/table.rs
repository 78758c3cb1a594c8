//! Compares the table's implementation of the algorithm with that of the kernel, on random
//! charters.

use crate::support::machine;
use charter_check::{Options, explore};
use charter_test_support::cases;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Node {
    parallel: bool,
    children: Vec<Node>,
    /// The event and the target; the number of the target is taken modulo the number of states.
    on: Vec<(u8, usize, bool)>,
}

fn node() -> impl Strategy<Value = Node> {
    let on = prop::collection::vec((0u8..4, 0usize..50, any::<bool>()), 0..3);
    let leaf = on.clone().prop_map(|on| Node { parallel: false, children: Vec::new(), on });
    leaf.prop_recursive(3, 14, 4, move |inner| {
        (
            any::<bool>(),
            prop::collection::vec(inner, 1..4),
            prop::collection::vec((0u8..4, 0usize..50, any::<bool>()), 0..2),
        )
            .prop_map(|(parallel, children, on)| Node { parallel, children, on })
    })
}

fn count(node: &Node) -> usize {
    1 + node.children.iter().map(count).sum::<usize>()
}

/// Writes a state as YAML (flow style). States are named s0, s1, ...; their id is the same as their
/// name.
fn write(node: &Node, number: &mut usize, total: usize, out: &mut String) {
    let own = *number;
    *number += 1;
    out.push_str(&format!("s{own}: {{id: s{own}"));
    if !node.children.is_empty() {
        if node.parallel {
            out.push_str(", type: parallel");
        }
        out.push_str(", states: {");
        for child in &node.children {
            write(child, number, total, out);
            out.push_str(", ");
        }
        out.push('}');
    }
    if !node.on.is_empty() {
        out.push_str(", on: [");
        for (event, target, reenter) in &node.on {
            out.push_str(&format!("{{E{event}: {{target: '#s{}', reenter: {reenter}}}}}, ", target % total));
        }
        out.push(']');
    }
    out.push('}');
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(40, 150), ..ProptestConfig::default() })]
    #[test]
    fn table_and_kernel_agree(children in prop::collection::vec(node(), 1..4)) {
        let total = children.iter().map(count).sum();
        let (mut number, mut states) = (0, String::new());
        for child in &children {
            write(child, &mut number, total, &mut states);
            states.push_str(", ");
        }
        let source = format!("events: {{E0: {{}}, E1: {{}}, E2: {{}}, E3: {{}}}}\nstates: {{{states}}}\n");
        let fast = explore(&machine(&source), &Options::default());
        // A property disables the table.
        let slow = explore(&machine(&format!("{source}properties: [{{id: p, always: 'true'}}]\n")), &Options::default());
        prop_assume!(slow.explored().complete);
        prop_assert_eq!(fast.explored().states, slow.explored().states, "{}", source);
        prop_assert_eq!(fast.taken().collect::<Vec<_>>(), slow.taken().collect::<Vec<_>>(), "{}", source);
        for i in 0..total {
            let path = |e: &charter_check::Exploration| machine(&source).states().find(|(_, p)| p.rsplit('.').next() == Some(&format!("s{i}")))
                .and_then(|(m, p)| e.trace_to_state(m, p)).map(|p| p.events.len());
            prop_assert_eq!(path(&fast), path(&slow), "s{} in {}", i, source);
        }
    }
}

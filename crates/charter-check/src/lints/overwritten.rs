//! A value that is approved must not change before it is used.

use charter_kernel::definition::Action;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::{Item, Visit, template, variable_of};
use crate::model::{Chart, Model, Transition};

/// Upper limit of the states that are followed behind the approvals of a charter.
const MAX_FOLLOWED: usize = 200_000;

/// Reports assignments to the variables that an approval covers, if they happen after the approval
/// and what is assigned can then be used without a new one.
pub(crate) fn overwritten(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let mut left = MAX_FOLLOWED;
    for chart in &model.charts {
        for t in &chart.transitions {
            let Some(cel) = &t.def.approves else { continue };
            let covered: FxHashSet<String> = model.context_reads(cel).into_iter().flatten().collect();
            if covered.is_empty() {
                continue;
            }
            let mut behind =
                Behind { model, chart, approved: t, covered, after: FxHashMap::default(), uses: Vec::new() };
            let Some(found) = behind.overwritten(&mut left) else {
                let message =
                    format!("what follows the approval `{}` was not looked at: there are too many states", t.name);
                findings.push(Finding::new(Severity::Info, codes::APPROVAL_OVERWRITTEN, t.at, message));
                return;
            };
            for (at, variable) in found {
                let message =
                    format!("`context.{variable}` is assigned after `{}` approved it and before it is used", t.name);
                let help = "assign to another variable, or require a new approval";
                findings.push(Finding::new(Severity::Warning, codes::APPROVAL_OVERWRITTEN, at, message).help(help));
            }
        }
    }
}

/// What can happen behind an approval, up to the next one by the same transition.
struct Behind<'m, 'd> {
    model: &'m Model<'d>,
    chart: &'m Chart<'d>,
    approved: &'m Transition<'d>,
    /// The variables that the approval covers.
    covered: FxHashSet<String>,
    /// For each leaf that can be reached, the leaves that can be next.
    after: FxHashMap<u32, Vec<u32>>,
    /// The leaves where an approved variable is used.
    uses: Vec<u32>,
}

/// An assignment (place and variable), and the leaves that can be active after it.
type Assigned = ((String, String), Vec<u32>);

impl<'d> Behind<'_, 'd> {
    fn overwritten(&mut self, left: &mut usize) -> Option<Vec<(String, String)>> {
        let assigned = self.follow(left)?;
        // From where a use can be reached.
        let mut before: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (leaf, next) in &self.after {
            next.iter().for_each(|next| before.entry(*next).or_default().push(*leaf));
        }
        let mut waiting = self.uses.clone();
        let mut reaches: FxHashSet<u32> = waiting.iter().copied().collect();
        while let Some(leaf) = waiting.pop() {
            let more = before.get(&leaf).into_iter().flatten();
            waiting.extend(more.copied().filter(|leaf| reaches.insert(*leaf)));
        }
        let mut found = Vec::new();
        for (assignment, leaves) in assigned {
            if leaves.iter().any(|leaf| reaches.contains(leaf)) && !found.contains(&assignment) {
                found.push(assignment);
            }
        }
        Some(found)
    }

    /// Follows the transitions up to the states that use an approved variable.
    fn follow(&mut self, left: &mut usize) -> Option<Vec<Assigned>> {
        let (model, chart, approved) = (self.model, self.chart, self.approved);
        let mut assigned = Vec::new();
        let mut waiting = self.targets(approved);
        self.assignments(&approved.def.actions, &format!("{}/actions", approved.at), &waiting, &mut assigned);
        while let Some(leaf) = waiting.pop() {
            if self.needs_approval(leaf) || self.after.contains_key(&leaf) {
                continue;
            }
            let states: Vec<u32> = chart.upwards(leaf).filter(|s| !chart.inside(approved.source, *s)).collect();
            for s in &states {
                let state = chart.state(*s);
                for (i, block) in state.def.entry.iter().enumerate() {
                    self.assignments(block, &format!("{}/entry/{i}", state.at), &[leaf], &mut assigned);
                }
            }
            let mut next = Vec::new();
            let mut is_used =
                states.iter().any(|s| self.reads(&|visit| model.visit_state(chart.state(*s).def, "", visit)));
            // What is invoked uses the value that was approved; what comes then is another matter.
            let is_invoked = states.iter().any(|s| self.is_input(*s));
            for t in states.iter().flat_map(|s| &chart.state(*s).transitions).map(|t| chart.transition(*t)) {
                *left = left.checked_sub(1)?;
                let to = match t.targets {
                    [] => vec![leaf],
                    _ => self.targets(t),
                };
                // A transition to where a new approval is needed only prepares it.
                if to.iter().all(|leaf| self.needs_approval(*leaf)) {
                    continue;
                }
                is_used |= self.reads(&|visit| {
                    model.visit_condition(t.def, "", visit);
                    model.visit_block(&t.def.actions, "", visit);
                });
                if !is_invoked {
                    self.assignments(&t.def.actions, &format!("{}/actions", t.at), &to, &mut assigned);
                    next.extend(to);
                }
            }
            if is_used || is_invoked {
                self.uses.push(leaf);
            }
            waiting.extend(next.iter().copied());
            self.after.insert(leaf, next);
        }
        Some(assigned)
    }

    fn targets(&self, t: &Transition<'d>) -> Vec<u32> {
        t.targets.iter().flat_map(|s| self.chart.default_leaves(*s)).collect()
    }

    fn needs_approval(&self, leaf: u32) -> bool {
        leaf == self.approved.source || self.chart.inside(leaf, self.approved.source)
    }

    /// Whether an invocation of the state receives an approved variable as input.
    fn is_input(&self, state: u32) -> bool {
        self.chart
            .state(state)
            .def
            .invoke
            .iter()
            .filter_map(|i| i.input.as_ref())
            .any(|input| self.reads(&|visit| template(input, "", visit)))
    }

    /// Whether an expression that is visited reads an approved variable.
    fn reads(&self, visit: &dyn Fn(Visit<'_, 'd>)) -> bool {
        let mut found = false;
        visit(&mut |_, item| {
            if let Item::Cel(cel) = item {
                let reads = self.model.context_reads(cel);
                found |= reads.into_iter().any(|v| v.is_none_or(|v| self.covered.contains(&v)));
            }
        });
        found
    }

    fn assignments(&self, block: &'d [Action], at: &str, then: &[u32], assigned: &mut Vec<Assigned>) {
        self.model.visit_block(block, at, &mut |at, item| {
            if let Item::Assign(path, _) = item
                && self.covered.contains(variable_of(path))
            {
                assigned.push(((at.to_string(), variable_of(path).to_string()), then.to_vec()));
            }
        });
    }
}

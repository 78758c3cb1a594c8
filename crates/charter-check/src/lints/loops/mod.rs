//! Cycles that a run can follow without any event from outside.

mod counters;
mod graph;

use self::counters::Counters;
use self::graph::Graph;
use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Chart, Model, Trigger};

fn names(chart: &Chart<'_>, path: &[u32]) -> String {
    let mut names: Vec<String> = path.iter().map(|t| format!("`{}`", chart.transition(*t).name)).collect();
    names.dedup();
    names.join(", then ")
}

/// Reports cycles of eventless transitions without a condition.
pub(crate) fn always(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let free = |n: u32| {
            let t = chart.transition(n);
            t.trigger == Trigger::Always && t.is_unconditional() && t.def.by.is_empty()
        };
        if let Some(path) = Graph::new(model, chart, &free).cycle() {
            let at = path.first().map_or("", |t| chart.transition(*t).at);
            let message = format!(
                "this cycle never ends: {}, and so on; every event that leads here is refused as `runaway`",
                names(chart, &path)
            );
            findings.push(
                Finding::new(Severity::Error, codes::ALWAYS_LOOP, at, message)
                    .help("add a guard that ends the cycle to one of the transitions"),
            );
        }
    }
}

/// Reports cycles of answers, completions and eventless transitions that no counter limits.
pub(crate) fn unbounded(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let is_after = |n: u32| chart.transition(n).trigger == Trigger::After;
        let is_free_always =
            |n: u32| chart.transition(n).trigger == Trigger::Always && chart.transition(n).is_unconditional();
        if Graph::new(model, chart, &is_free_always).cycle().is_some() {
            continue; // reported by `always`
        }
        let counters = Counters::new(model, chart);
        let fast = uncounted(model, chart, &counters, &|n| !is_after(n));
        let (path, severity) = match fast {
            Some(path) => (path, Severity::Warning),
            None => match uncounted(model, chart, &counters, &|_| true) {
                Some(path) => (path, Severity::Info),
                None => continue,
            },
        };
        let at = path.first().map_or("", |t| chart.transition(*t).at);
        let message = format!(
            "unbounded loop: {}, and so on, without any event from outside; no condition in it reads a context variable that the loop assigns",
            names(chart, &path)
        );
        let help = "count the iterations in a context variable and test it in a guard";
        findings.push(Finding::new(severity, codes::LOOP_WITHOUT_BOUND, at, message).help(help));
    }
}

/// Finds a cycle that remains after the transitions with a counter are removed.
fn uncounted<'d>(
    model: &Model<'d>,
    chart: &Chart<'d>,
    counters: &Counters<'_, 'd>,
    which: &dyn Fn(u32) -> bool,
) -> Option<Vec<u32>> {
    let counted = counters.counted(&Graph::new(model, chart, which), which);
    Graph::new(model, chart, &|n| which(n) && !counted.contains(&n)).cycle()
}

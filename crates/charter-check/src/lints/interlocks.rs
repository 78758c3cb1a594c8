//! Interlock tables that have no row for a state.

use charter_kernel::definition::{InterlockRule, StateKind};

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::Model;

pub(crate) fn rows(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for (i, lock) in model.def.interlocks.iter().enumerate() {
        let InterlockRule::Table { given, machine, allow, .. } = &lock.rule else {
            continue;
        };
        let chart = if given == "root" { model.charts.first() } else { model.chart_of(given) };
        let Some(chart) = chart else { continue };
        let missing: Vec<&str> = chart
            .numbers()
            .filter(|s| matches!(chart.state(*s).kind, StateKind::Atomic | StateKind::Final))
            .filter(|s| !chart.upwards(*s).any(|up| allow.contains_key(chart.state(up).path)))
            .map(|s| chart.state(s).path)
            .collect();
        if missing.is_empty() {
            continue;
        }
        let names = missing.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
        let message = format!(
            "interlock `{}` has no row for {names}: no actor of `{machine}` may exist while `{given}` is in such a state",
            lock.id
        );
        let help = "add a row for each state; an empty list allows no state";
        findings.push(
            Finding::new(
                Severity::Warning,
                codes::INTERLOCK_WITHOUT_ROW,
                format!("/interlocks/{i}/rule/table/allow"),
                message,
            )
            .help(help),
        );
    }
}

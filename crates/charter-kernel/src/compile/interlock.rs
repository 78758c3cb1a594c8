//! Compiles interlocks: conditions become programs, state names in tables become state ids.

use super::{Compiler, escape};
use crate::definition::InterlockRule;
use crate::machine::{Interlock, Rule};

impl<'d> Compiler<'d> {
    pub(super) fn interlocks(&mut self, charts: &[crate::machine::Chart]) -> Vec<Interlock> {
        let def = self.def;
        let mut compiled: Vec<Interlock> = Vec::new();
        for (i, lock) in def.interlocks.iter().enumerate() {
            let at = format!("/interlocks/{i}");
            if compiled.iter().any(|l| l.id.as_ref() == lock.id) {
                self.problem(
                    "duplicate-name",
                    &format!("{at}/id"),
                    format!("two interlocks have the name `{}`", lock.id),
                    None,
                );
            }
            let rule = match &lock.rule {
                InterlockRule::Assert(cel) => self.cel(cel, &format!("{at}/rule/assert"), &[]).map(Rule::Assert),
                InterlockRule::Table { given, machine, allow, r#final } => {
                    let at = format!("{at}/rule/table");
                    self.table(charts, (given, machine), allow, &at).map(|(chart, allow)| Rule::Table {
                        given: given.clone().into_boxed_str(),
                        chart,
                        allow,
                        r#final: *r#final,
                    })
                }
            };
            if let Some(rule) = rule {
                compiled.push(Interlock { id: lock.id.clone().into_boxed_str(), rule });
            }
        }
        compiled
    }

    /// Resolves the names of a table interlock. `given` is `root`, or the id of an actor whose
    /// machine has the same name as the actor.
    #[allow(clippy::type_complexity)] // a pair used in one place
    pub(super) fn table(
        &mut self,
        charts: &[crate::machine::Chart],
        (given, machine): (&String, &String),
        allow: &indexmap::IndexMap<String, Vec<String>>,
        at: &str,
    ) -> Option<(u32, Vec<(u32, Vec<u32>)>)> {
        let given_chart = if given == "root" { Some(0) } else { self.chart_ids.get(given.as_str()).copied() };
        let Some(given_chart) = given_chart.and_then(|c| charts.get(c as usize)) else {
            let help = Some("`given` is `root`, or a machine of which one actor of the same name runs".to_string());
            self.problem("unknown-machine", &format!("{at}/given"), format!("no actor named `{given}`"), help);
            return None;
        };
        let Some((chart_id, chart)) =
            self.chart_ids.get(machine.as_str()).and_then(|c| Some((*c, charts.get(*c as usize)?)))
        else {
            let help = Some(format!("declared: {}", self.def.machines.keys().cloned().collect::<Vec<_>>().join(", ")));
            self.problem("unknown-machine", &format!("{at}/machine"), format!("no machine named `{machine}`"), help);
            return None;
        };
        let find = |chart: &crate::machine::Chart, path: &str| {
            let at = chart.shape.paths.iter().position(|p| p.as_ref() == path)?;
            u32::try_from(at).ok()
        };
        let mut rows = Vec::new();
        for (state, allowed) in allow {
            let row_at = format!("{at}/allow/{}", escape(state));
            let Some(row) = find(given_chart, state) else {
                self.problem("unknown-state", &row_at, format!("`{given}` has no state `{state}`"), None);
                continue;
            };
            let mut cells = Vec::new();
            for (i, cell) in allowed.iter().enumerate() {
                match find(chart, cell) {
                    Some(cell) => cells.push(cell),
                    None => self.problem(
                        "unknown-state",
                        &format!("{row_at}/{i}"),
                        format!("machine `{machine}` has no state `{cell}`"),
                        None,
                    ),
                }
            }
            rows.push((row, cells));
        }
        Some((chart_id, rows))
    }
}

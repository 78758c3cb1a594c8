//! Interlocks: invariants across the actors of a run, checked on the candidate snapshot after the
//! macrostep.

use crate::definition::FinalRule;
use crate::explain::reads;
use crate::machine::{Chart, Interlock, Machine, Rule, StateId};
use crate::refusal::{Cause, Code, Detail, Refusal};
use crate::snapshot::{Actor, Snapshot, Status};
use crate::transaction::StepTransaction;

impl StepTransaction<'_> {
    pub(crate) fn interlocks(&self, before: Option<&Snapshot>) -> Result<(), Refusal> {
        self.m.interlocks.iter().try_for_each(|lock| match &lock.rule {
            Rule::Assert(program) => {
                let ctx = self.context(0, None, &[]);
                let error = match ctx.holds(program) {
                    Ok(true) => return Ok(()),
                    Ok(false) => None,
                    Err(e) => Some((&e).into()),
                };
                let (expression, read) = (program.source().to_string(), reads(&ctx, program));
                Err(broken(lock, Cause::Assertion { expression, error, read }))
            }
            Rule::Table { given, chart, allow, r#final } => self.table(lock, given, *chart, allow, *r#final, before),
        })
    }

    fn table(
        &self,
        lock: &Interlock,
        given: &str,
        chart: u32,
        allow: &[(StateId, Vec<StateId>)],
        rule: FinalRule,
        before: Option<&Snapshot>,
    ) -> Result<(), Refusal> {
        let Some(given_actor) = self.s.actors.find(given) else {
            return Ok(());
        };
        let given_ended = given_actor.status != Status::Active;
        let was_final = |actor: &Actor| {
            before.and_then(|b| b.actors.find(&actor.identity().id)).is_some_and(|a| a.status != Status::Active)
        };
        // Several states of `given` may be active (regions, or a state and its parent): a state is
        // allowed if the row of any of them allows it.
        let rows = || allow.iter().filter(|(state, _)| given_actor.is_active(*state));
        // Each atomic state is looked up in all cells of these rows.
        let cells = rows().map(|(_, cells)| cells.len()).fold(allow.len(), usize::saturating_add);
        let mut work = allow.len();
        for actor in self.s.actors.iter().filter(|a| a.chart() == chart && !matches!(a.status, Status::Cancelled)) {
            if rule == FinalRule::Settled && !given_ended && was_final(actor) {
                continue;
            }
            work = self.budget.scan_some(work.saturating_add(actor.configuration.len().saturating_mul(cells)));
            self.budget.check()?;
            let node = self.m.chart(chart);
            for state in actor.configuration.iter().filter(|s| node.state(**s).is_atomic()) {
                if !rows().any(|(_, cells)| cells.iter().any(|c| *c == *state || node.inside(*state, *c))) {
                    return Err(incompatible(self.m, lock, given_actor, actor, node, *state, allow));
                }
            }
        }
        Ok(())
    }
}

fn broken(lock: &Interlock, cause: Cause) -> Refusal {
    let detail = Detail { interlock: Some(lock.id.to_string()), cause: Some(cause), ..Detail::default() };
    Refusal::with(Code::Interlock, detail)
}

fn incompatible(
    m: &Machine,
    lock: &Interlock,
    given: &Actor,
    actor: &Actor,
    chart: &Chart,
    state: StateId,
    allow: &[(StateId, Vec<StateId>)],
) -> Refusal {
    let rows = || allow.iter().filter(|(s, _)| given.is_active(*s));
    let given_chart = m.chart(given.chart());
    let active: Vec<String> = rows().map(|(s, _)| given_chart.path(*s).to_string()).collect();
    let cause = Cause::Table {
        actor: actor.identity().id.to_string(),
        state: chart.path(state).to_string(),
        given: given.identity().id.to_string(),
        given_states: if active.is_empty() { given.state().map(str::to_string).collect() } else { active },
        allowed: rows().flat_map(|(_, cells)| cells).map(|c| chart.path(*c).to_string()).collect(),
    };
    broken(lock, cause)
}

//! Interlocks: what must hold across the actors of a run, judged on the candidate snapshot after the macrostep (03, "Several machines").

use crate::definition::FinalRule;
use crate::machine::{Chart, Interlock, Machine, Rule, StateId};
use crate::refusal::{Code, Refusal};
use crate::snapshot::{Actor, Snapshot, Status};
use crate::transaction::StepTransaction;

impl StepTransaction<'_> {
    pub(crate) fn interlocks(&self, before: Option<&Snapshot>) -> Result<(), Refusal> {
        self.m.interlocks.iter().try_for_each(|lock| match &lock.rule {
            Rule::Assert(program) => match self.eyes(0, None, &[]).holds(program) {
                Ok(true) => Ok(()),
                Ok(false) => Err(broken(lock, format!("`{}` would be false", program.source()))),
                Err(e) => Err(broken(lock, format!("`{}` could not be evaluated: {e}", program.source()))),
            },
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
        let Some(judge) = self.s.actors.find(given) else {
            return Ok(());
        };
        let given_ended = judge.status != Status::Active;
        let was_final = |actor: &Actor| {
            before.and_then(|b| b.actors.find(&actor.identity().id)).is_some_and(|a| a.status != Status::Active)
        };
        // Several states of `given` may be active (regions, or a state and its parent): what any of their rows allows is allowed.
        let rows = || allow.iter().filter(|(state, _)| judge.is_active(*state));
        for actor in self.s.actors.0.iter().filter(|a| a.chart() == chart && !matches!(a.status, Status::Cancelled)) {
            if rule == FinalRule::Settled && !given_ended && was_final(actor) {
                continue;
            }
            let node = self.m.chart(chart);
            for state in actor.configuration.iter().filter(|s| node.state(**s).is_atomic()) {
                if !rows().any(|(_, cells)| cells.iter().any(|c| *c == *state || node.inside(*state, *c))) {
                    return Err(incompatible(self.m, lock, judge, actor, node, *state, allow));
                }
            }
        }
        Ok(())
    }
}

fn broken(lock: &Interlock, message: String) -> Refusal {
    Refusal::with(Code::Interlock, Some(lock.id.to_string()), message)
}

fn incompatible(
    m: &Machine,
    lock: &Interlock,
    judge: &Actor,
    actor: &Actor,
    chart: &Chart,
    state: StateId,
    allow: &[(StateId, Vec<StateId>)],
) -> Refusal {
    let judge_chart = m.chart(judge.chart());
    let active: Vec<&str> =
        allow.iter().filter(|(s, _)| judge.is_active(*s)).map(|(s, _)| judge_chart.path(*s).as_ref()).collect();
    let at: Vec<&str> = if active.is_empty() { judge.state().collect() } else { active };
    let allowed = allow.iter().filter(|(s, _)| judge.is_active(*s)).flat_map(|(_, cells)| cells);
    let allowed: Vec<&str> = allowed.map(|c| chart.path(*c).as_ref()).collect();
    let who = format!(
        "`{}` would be in `{}` while `{}` is in `{}`",
        actor.identity().id,
        chart.path(state),
        judge.identity().id,
        at.join(", ")
    );
    let rest = if allowed.is_empty() {
        "where no state is allowed".to_string()
    } else {
        format!("where only {} is allowed", allowed.join(", "))
    };
    broken(lock, format!("{who}, {rest}"))
}

//! What a question would take, estimated before it is asked.

use charter_actors::{Estimate, Fault};
use serde_json::Value as Json;

use crate::actor::ModelActor;
use crate::ask::{MIN_TOKENS, estimate};
use crate::codes;

impl ModelActor {
    /// Estimates the longest of the questions that the actor would ask with this input. What the
    /// input lacks yet counts nothing. `None`: the actor has no prompt.
    ///
    /// # Errors
    /// A prompt is too long to be sent.
    pub fn estimate(&self, input: &Json) -> Result<Option<Estimate>, Fault> {
        let Some(template) = &self.template else {
            return Ok(None);
        };
        let mut input = input.clone();
        for path in template.needs() {
            if let (Some(map), false) = (input.as_object_mut(), path.contains('.')) {
                map.entry(path).or_insert(Json::Null);
            }
        }
        let one = [Json::Null];
        let calls: &[Json] = self.calls.as_deref().unwrap_or(&one);
        let schema = self.schema.as_ref().map_or(0, |schema| schema.to_string().len());
        let mut question = 0u64;
        for call in calls {
            let prompt = template.render(&input, call).map_err(|e| Fault::new(codes::TOO_LARGE, e.message))?;
            let size = prompt.system.len().saturating_add(prompt.user.len()).saturating_add(schema);
            question = question.max(estimate(size).saturating_add(MIN_TOKENS));
        }
        let shares = u64::try_from(calls.len()).unwrap_or(1).max(1);
        Ok(Some(Estimate { question, budget: self.budget.tokens.checked_div(shares).unwrap_or_default() }))
    }
}

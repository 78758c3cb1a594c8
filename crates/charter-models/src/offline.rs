//! Offline rules, which answer if there is no model: a value in the charter in which strings may be
//! expressions (`= ...`) over `input` and `call`.

use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value};
use serde_json::Value as Json;

/// Maximum number of evaluation steps of one expression.
const FUEL: u64 = 100_000;

/// Why an expression in offline rules cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The expression does not compile.
    #[error("invalid expression `{expression}`: {message}")]
    Invalid {
        /// The expression.
        expression: String,
        /// What is wrong with the expression.
        message: String,
    },
    /// The evaluation of the expression fails.
    #[error("cannot evaluate `{expression}`: {message}")]
    Failed {
        /// The expression.
        expression: String,
        /// Why the evaluation fails.
        message: String,
    },
}

/// Computes the answer of the rules.
///
/// # Errors
/// An expression is invalid or fails.
pub fn answer(rules: &Json, input: &Json, call: &Json) -> Result<Json, RuleError> {
    fill(rules, &Variables::new(), Some((input, call, &Json::Null)))
}

/// Computes the answer of rules that may read `results`, too: what the events gave that were sent
/// before.
///
/// # Errors
/// An expression is invalid or fails.
pub(crate) fn answer_after(rules: &Json, input: &Json, call: &Json, results: &Json) -> Result<Json, RuleError> {
    fill(rules, &Variables::with_results(), Some((input, call, results)))
}

/// Checks that all expressions compile, which may read `results`.
///
/// # Errors
/// An expression is invalid.
pub(crate) fn check_after(rules: &Json) -> Result<(), RuleError> {
    fill(rules, &Variables::with_results(), None).map(drop)
}

/// Checks that all expressions compile.
///
/// # Errors
/// An expression is invalid.
pub fn check(rules: &Json) -> Result<(), RuleError> {
    fill(rules, &Variables::new(), None).map(drop)
}

struct Variables {
    env: Env,
    input: RootId,
    results: Option<RootId>,
}

impl Variables {
    fn new() -> Variables {
        let mut env = Env::new();
        let input = env.root("input", Type::Dyn);
        env.root("call", Type::Dyn);
        Variables { env, input, results: None }
    }

    fn with_results() -> Variables {
        let mut variables = Variables::new();
        variables.results = Some(variables.env.root("results", Type::Dyn));
        variables
    }
}

struct Values<'v> {
    input: (RootId, &'v Json),
    call: &'v Json,
    results: (Option<RootId>, &'v Json),
}

impl<'v> Scope<'v> for Values<'v> {
    fn root(&self, id: RootId) -> Option<Value<'v>> {
        let json = match id {
            id if id == self.input.0 => self.input.1,
            id if Some(id) == self.results.0 => self.results.1,
            _ => self.call,
        };
        Some(Value::from_json(json))
    }
}

/// Fills in the expressions. The recursion is bounded: rules are part of a charter, which is at
/// most 128 levels deep.
fn fill(rules: &Json, variables: &Variables, values: Option<(&Json, &Json, &Json)>) -> Result<Json, RuleError> {
    Ok(match rules {
        Json::String(text) => match text.strip_prefix("= ") {
            None => rules.clone(),
            Some(cel) => {
                let cel = cel.trim();
                let program = Program::compile(cel, &variables.env)
                    .map_err(|e| RuleError::Invalid { expression: cel.to_owned(), message: e.message.to_string() })?;
                let Some((input, call, results)) = values else {
                    return Ok(Json::Null);
                };
                let scope = Values { input: (variables.input, input), call, results: (variables.results, results) };
                let value = program.eval(&scope, &mut Fuel::new(FUEL)).and_then(|v| v.to_json());
                value.map_err(|e| RuleError::Failed { expression: cel.to_owned(), message: e.message().to_string() })?
            }
        },
        Json::Array(list) => Json::Array(list.iter().map(|r| fill(r, variables, values)).collect::<Result<_, _>>()?),
        Json::Object(map) => {
            let fields = map.iter().map(|(k, r)| Ok((k.clone(), fill(r, variables, values)?)));
            Json::Object(fields.collect::<Result<_, RuleError>>()?)
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{answer, check};

    #[test]
    fn rules() {
        let rules = json!({"said": "= input.m.lowerAscii().contains('price') ? 'money' : 'no idea'", "by": ["offline rules", "= call.who"], "n": 1});
        let said = answer(&rules, &json!({"m": "PRICES"}), &json!({"who": "me"})).unwrap();
        assert_eq!(said, json!({"said": "money", "by": ["offline rules", "me"], "n": 1}));
        assert_eq!(check(&rules), Ok(()));
        assert!(check(&json!(["= input."])).unwrap_err().to_string().starts_with("invalid expression `input.`"));
        assert_eq!(
            answer(&json!("= input.x"), &json!({}), &json!(null)).unwrap_err().to_string(),
            "cannot evaluate `input.x`: no such field `x`"
        );
    }
}

//! Rules that stand in for a model where there is none: a value in the charter whose texts may be expressions (`= ...`) over `input` and `call`.
//! They are keyword rules and arithmetic, and whoever writes them lets their answers say so.

use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value};
use serde_json::Value as Json;

/// Steps that one expression may take.
const FUEL: u64 = 100_000;

/// The answer of the rules.
///
/// # Errors
/// An expression that cannot be read, or that fails; with its text.
pub fn answer(rules: &Json, input: &Json, call: &Json) -> Result<Json, String> {
    let names = Names::new();
    fill(rules, &names, Some((input, call)))
}

/// Looks whether all expressions can be read.
///
/// # Errors
/// As [`answer`].
pub fn check(rules: &Json) -> Result<(), String> {
    fill(rules, &Names::new(), None).map(drop)
}

struct Names {
    env: Env,
    input: RootId,
}

impl Names {
    fn new() -> Names {
        let mut env = Env::new();
        let input = env.root("input", Type::Dyn);
        env.root("call", Type::Dyn);
        Names { env, input }
    }
}

struct Values<'v> {
    input: (RootId, &'v Json),
    call: &'v Json,
}

impl<'v> Scope<'v> for Values<'v> {
    fn root(&self, id: RootId) -> Option<Value<'v>> {
        let json = if id == self.input.0 { self.input.1 } else { self.call };
        Some(Value::from_json(json))
    }
}

/// Recursion is bounded: the rules come out of a charter, which is at most 128 deep.
fn fill(rules: &Json, names: &Names, values: Option<(&Json, &Json)>) -> Result<Json, String> {
    Ok(match rules {
        Json::String(text) => match text.strip_prefix("= ") {
            None => rules.clone(),
            Some(cel) => {
                let cel = cel.trim();
                let program = Program::compile(cel, &names.env)
                    .map_err(|e| format!("`{cel}` is no expression: {}", e.message))?;
                let Some((input, call)) = values else {
                    return Ok(Json::Null);
                };
                let scope = Values { input: (names.input, input), call };
                let value = program.eval(&scope, &mut Fuel::new(FUEL)).and_then(|v| v.to_json());
                value.map_err(|e| format!("`{cel}` fails: {}", e.message()))?
            }
        },
        Json::Array(list) => Json::Array(list.iter().map(|r| fill(r, names, values)).collect::<Result<_, _>>()?),
        Json::Object(map) => {
            let fields = map.iter().map(|(k, r)| Ok((k.clone(), fill(r, names, values)?)));
            Json::Object(fields.collect::<Result<_, String>>()?)
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
        assert!(check(&json!(["= input."])).unwrap_err().starts_with("`input.` is no expression"));
        assert_eq!(
            answer(&json!("= input.x"), &json!({}), &json!(null)).unwrap_err(),
            "`input.x` fails: no such field `x`"
        );
    }
}

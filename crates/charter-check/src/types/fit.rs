//! Checks whether a value can fit its declaration. Only values that can never fit are reported.

use charter_expr::Type;
use charter_kernel::Schema;
use charter_kernel::definition::Template;
use serde_json::Value as Json;

/// Explains why a value can never fit a schema; `None` if it may fit.
pub(crate) fn misfit(value: Option<&Template>, ty: &Type, schema: &Json) -> Option<String> {
    if let Some(literal) = literal(value) {
        let misfits = Schema::compile(schema).ok()?.misfits(&literal);
        return misfits
            .first()
            .map(|m| if m.at.is_empty() { m.message.clone() } else { format!("at `{}`: {}", m.at, m.message) });
    }
    disjoint(ty, &Type::from_schema(schema), "")
}

/// The value, if no part of it is computed.
fn literal(value: Option<&Template>) -> Option<Json> {
    match value {
        None => Some(Json::Null),
        Some(Template::Literal(json)) => Some(json.clone()),
        Some(_) => None,
    }
}

fn simple(ty: &Type) -> Vec<&Type> {
    match ty {
        Type::Union(types) => types.iter().collect(),
        other => vec![other],
    }
}

/// Explains why no value of type `have` is of type `want`; `None` if there may be one.
pub(crate) fn disjoint(have: &Type, want: &Type, at: &str) -> Option<String> {
    let (have, want) = (simple(have), simple(want));
    let mut reason = None;
    for h in &have {
        for w in &want {
            match pair(h, w, at) {
                Some(why) => reason = reason.or(Some(why)),
                None => return None,
            }
        }
    }
    reason
}

fn pair(have: &Type, want: &Type, at: &str) -> Option<String> {
    let numeric = |t: &Type| matches!(t, Type::Int | Type::Uint | Type::Double | Type::Number);
    // These types are strings in JSON.
    let textual = |t: &Type| matches!(t, Type::String | Type::Timestamp | Type::Duration | Type::Bytes);
    match (have, want) {
        (Type::Dyn, _) | (_, Type::Dyn) => None,
        (Type::List(a), Type::List(b)) => {
            // An empty list fits every list type, whatever its items.
            let _ = (a, b);
            None
        }
        (Type::Object { fields: a, open: a_open }, Type::Object { fields: b, open: b_open }) => {
            for (name, field) in b.iter() {
                match a.get(name) {
                    Some(own) if own.required => {
                        if let Some(why) = disjoint(&own.ty, &field.ty, &format!("{at}/{name}")) {
                            return Some(why);
                        }
                    }
                    None if field.required && !a_open => {
                        return Some(format!("{}`{name}` is missing", place(at)));
                    }
                    _ => {}
                }
            }
            let odd = a.iter().find(|(name, field)| field.required && !b_open && !b.contains_key(*name));
            odd.map(|(name, _)| format!("{}`{name}` is not declared", place(at)))
        }
        (Type::Object { .. } | Type::Map(..), Type::Object { .. } | Type::Map(..)) => None,
        (a, b) if numeric(a) && numeric(b) => None,
        (a, b) if textual(a) && textual(b) => None,
        (a, b) if std::mem::discriminant(a) == std::mem::discriminant(b) => None,
        (a, b) => Some(format!("{}declared as {b}, but the value is {a}", place(at))),
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at `{at}`: ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn why(have: &Json, want: &Json) -> Option<String> {
        disjoint(&Type::of_json(have), &Type::from_schema(want), "")
    }

    #[test]
    fn only_values_that_can_never_fit_are_reported() {
        let want = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
        assert_eq!(why(&json!({"n": 1}), &want), None);
        assert_eq!(why(&json!({"n": null}), &want), None, "null fits any type");
        assert_eq!(why(&json!({}), &want).as_deref(), Some("`n` is missing"));
        assert_eq!(why(&json!({"n": 1, "m": 2}), &want).as_deref(), Some("`m` is not declared"));
        assert_eq!(
            why(&json!({"n": "x"}), &want).as_deref(),
            Some("at `/n`: declared as int, but the value is string")
        );
        assert_eq!(why(&json!("x"), &json!({"type": ["string", "null"]})), None);
    }
}

//! Parses the sender of an input line.

use charter_kernel::Principal;
use serde::de;
use serde_json::Value as Json;

use super::input::wrong_type;
use crate::timestamp::abbreviate;

/// Parses `{id, roles, kind, auth}`; null is no sender.
pub(super) fn principal<E: de::Error>(value: Json) -> Result<Option<Principal>, E> {
    let mut by = Principal::default();
    let fields = match value {
        Json::Null => return Ok(None),
        Json::Object(fields) => fields,
        _ => return Err(wrong_type("by", "an object with `id` and `roles`")),
    };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("id", Json::String(id)) => by.id = id,
            ("kind", Json::String(word)) => by.kind = Some(word.parse().map_err(E::custom)?),
            ("auth", Json::String(word)) => by.auth = Some(word.parse().map_err(E::custom)?),
            ("roles", Json::Array(roles)) => {
                for role in roles {
                    match role {
                        Json::String(role) => by.roles.push(role),
                        _ => return Err(wrong_type("by.roles", "a list of strings")),
                    }
                }
            }
            ("roles", _) => return Err(wrong_type("by.roles", "a list of strings")),
            ("id" | "kind" | "auth", _) => return Err(wrong_type(&format!("by.{key}"), "a string")),
            (other, _) => {
                return Err(E::custom(format!(
                    "unknown key `{}` in `by`: expected `id`, `roles`, `kind` or `auth`",
                    abbreviate(other)
                )));
            }
        }
    }
    by.check_sender().map_err(E::custom)?;
    Ok(Some(by))
}

#[cfg(test)]
mod tests {
    use charter_kernel::{Auth, PrincipalKind};
    use serde_json::json;

    use super::*;

    fn failed(value: Json) -> String {
        principal::<serde_json::Error>(value).unwrap_err().to_string()
    }

    #[test]
    fn a_sender_has_a_kind_and_an_authentication_if_they_are_given() {
        let read = |value| principal::<serde_json::Error>(value).unwrap();
        assert_eq!(read(json!(null)), None);
        assert_eq!(read(json!({"id": "ana", "roles": ["a"]})), Some(Principal::new("ana", &["a"])));
        let bot = Principal::new("bot", &[]).of_kind(PrincipalKind::Agent).authenticated(Auth::Key);
        assert_eq!(read(json!({"id": "bot", "kind": "agent", "auth": "key"})), Some(bot));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            failed(json!({"role": "x"})),
            "unknown key `role` in `by`: expected `id`, `roles`, `kind` or `auth`"
        );
        assert_eq!(failed(json!({"kind": "robot"})), "unknown kind of principal `robot`: use person, agent, service");
        assert!(failed(json!({"auth": "password"})).starts_with("unknown authentication `password`: use key, "));
        let host = "`system` is the host itself; no sender can have this id or role";
        assert_eq!(failed(json!({"id": "system"})), host);
        assert_eq!(failed(json!({"id": "eve", "roles": ["a", "system"]})), host);
        assert_eq!(failed(json!({"kind": 1})), "`by.kind` must be a string");
        assert_eq!(failed(json!({"auth": null})), "`by.auth` must be a string");
        assert_eq!(failed(json!({"roles": "a"})), "`by.roles` must be a list of strings");
    }
}

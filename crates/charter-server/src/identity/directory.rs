//! Who may use the server: a projection of the run `host`.

use std::collections::BTreeMap;

use charter_expr::ExprTimestamp;
use charter_kernel::{Auth, Principal, PrincipalKind, Timestamp};
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Grant, OPERATOR, Secret};
use crate::hooks::Hook;

/// A key: who has it, and what its owner may do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Key {
    /// SHA-256 of its secret, as 64 hex digits.
    pub sha256: String,
    /// The id of the principal.
    pub id: String,
    /// What the principal is.
    pub kind: PrincipalKind,
    /// The roles of the principal.
    pub grants: Vec<Grant>,
    /// When the key ends, as RFC 3339 text.
    #[serde(default)]
    pub expires: Option<String>,
    /// What the person who made it wrote down.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether it was revoked.
    #[serde(default)]
    pub revoked: bool,
}

impl Key {
    /// Its roles, as they are written: `CHARTER/ROLE`.
    #[must_use]
    pub fn roles(&self) -> Vec<String> {
        self.grants.iter().map(ToString::to_string).collect()
    }

    /// Why the key is not accepted at a time; `None` if it is. An end that cannot be read counts as
    /// past.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Option<&'static str> {
        let ended = |text: &str| ExprTimestamp::parse(text).map_or(true, |end| end.millis() <= now.0);
        match &self.expires {
            _ if self.revoked => Some("it was revoked"),
            Some(end) if ended(end) => Some("it has expired"),
            _ => None,
        }
    }
}

/// A principal that was authenticated, with its roles in different places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: PrincipalKind,
    /// How it was authenticated.
    pub auth: Auth,
    /// Its roles; `None`: it has every role of every charter.
    pub grants: Option<Vec<Grant>>,
    /// The id of the key, if it was authenticated with one.
    pub key: Option<String>,
    /// The token, if it was authenticated with one.
    pub token: Option<Token>,
}

/// What a token of an `OpenID` provider gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// When it ends.
    pub until: Timestamp,
    /// The roles that it claims itself.
    pub claimed: Vec<Grant>,
}

impl Caller {
    /// Whether it has a role that is not limited to a charter or run.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        let everywhere = |g: &Grant| g.role == role && g.charter.is_none() && g.run.is_none();
        self.grants.as_ref().is_some_and(|grants| grants.iter().any(everywhere))
    }

    /// The owner of the journal, who has logged in.
    #[must_use]
    pub fn owner(id: &str) -> Caller {
        Caller {
            id: id.to_owned(),
            kind: PrincipalKind::Person,
            auth: Auth::Session,
            grants: None,
            key: None,
            token: None,
        }
    }

    /// Whether it is the owner of the journal: the only one who is authenticated and has every
    /// role.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.grants.is_none() && self.auth == Auth::Session
    }

    /// Whether it has a role in a run, or in a run of a charter that is about to start: one that
    /// the charter declares, or the role of operators. In a charter that declares no roles, any
    /// role counts that is for this charter or run.
    #[must_use]
    pub fn takes_part(&self, charter: &str, run: Option<&str>, declared: &[&str]) -> bool {
        let counts = |g: &Grant| {
            let named = g.charter.is_some() || g.run.is_some();
            let known = declared.contains(&g.role.as_str()) || g.role == OPERATOR || (declared.is_empty() && named);
            known && g.is_for(charter, run)
        };
        self.grants.as_ref().is_none_or(|grants| grants.iter().any(counts))
    }

    /// Whether it may see a run: it takes part in it, or it has the role of administrators or
    /// readers.
    #[must_use]
    pub fn sees(&self, charter: &str, run: Option<&str>, declared: &[&str]) -> bool {
        self.sees_every_run() || self.takes_part(charter, run, declared)
    }

    /// Whether it may see every run, whatever its charter.
    #[must_use]
    pub fn sees_every_run(&self) -> bool {
        self.grants.is_none() || self.has_role(ADMIN) || self.has_role(READER)
    }

    /// Whether it may do what is for administrators: the owner, or a caller with that role; not an
    /// agent, whatever roles it has.
    #[must_use]
    pub fn administers(&self) -> bool {
        let has_role = self.auth != Auth::None && self.has_role(ADMIN) && self.kind != PrincipalKind::Agent;
        self.is_owner() || has_role
    }

    /// The principal that it is in a run, or in a run of this charter that is about to start.
    /// `declared` are the roles of the charter.
    #[must_use]
    pub fn principal<'a>(
        &self,
        charter: &str,
        run: Option<&str>,
        declared: impl Iterator<Item = &'a String>,
    ) -> Principal {
        let mut roles: Vec<String> = match &self.grants {
            Some(grants) => grants.iter().filter(|g| g.is_for(charter, run)).map(|g| g.role.clone()).collect(),
            None => declared.cloned().chain([OPERATOR.to_owned()]).collect(),
        };
        roles.sort();
        roles.dedup();
        Principal { id: self.id.clone(), roles, kind: Some(self.kind), auth: Some(self.auth) }
    }
}

/// The role that may add keys and charters.
pub const ADMIN: &str = "admin";
/// The role that may see every run, and change none.
pub const READER: &str = "reader";

/// The keys of a journal.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Key id -> key.
    keys: BTreeMap<String, Key>,
    /// SHA-256 -> key id.
    by_sha256: BTreeMap<String, String>,
    /// Hook id -> hook, also those that were removed.
    hooks: BTreeMap<String, Hook>,
    /// The last record of the run that it follows; 0 if it follows none.
    seq: u64,
}

impl Directory {
    /// Reads the keys in the data of the run `host` after the record `seq`.
    ///
    /// # Errors
    /// The data is not that of the charter `host`.
    pub fn read(context: &Json, seq: u64) -> Result<Directory, serde_json::Error> {
        #[derive(Deserialize)]
        struct Context {
            keys: BTreeMap<String, Key>,
            #[serde(default)]
            hooks: BTreeMap<String, Hook>,
        }
        let Context { keys, hooks } = Context::deserialize(context)?;
        let by_sha256 = keys.iter().map(|(id, key)| (key.sha256.clone(), id.clone())).collect();
        Ok(Directory { keys, by_sha256, hooks, seq })
    }

    /// Whether it follows this record of the run.
    pub(crate) fn is_after(&self, seq: u64) -> bool {
        self.seq >= seq
    }

    /// Whether the keys and hooks are the same.
    pub(crate) fn says_the_same(&self, other: &Directory) -> bool {
        self.keys == other.keys && self.hooks == other.hooks
    }

    /// The keys, by id; also those that have ended.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &Key)> {
        self.keys.iter().map(|(id, key)| (id.as_str(), key))
    }

    /// Returns a key by its id.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&Key> {
        self.keys.get(id)
    }

    /// The hooks that were not removed, by id.
    pub fn hooks(&self) -> impl Iterator<Item = (&str, &Hook)> {
        self.hooks.iter().filter(|(_, hook)| !hook.removed).map(|(id, hook)| (id.as_str(), hook))
    }

    /// Returns a hook that was not removed.
    #[must_use]
    pub fn hook(&self, id: &str) -> Option<&Hook> {
        self.hooks.get(id).filter(|hook| !hook.removed)
    }

    /// Whether there was a hook that was removed.
    pub(crate) fn was_removed(&self, id: &str) -> bool {
        self.hooks.get(id).is_some_and(|hook| hook.removed)
    }

    /// Whether there has been a key, even if it has ended: from then on, nobody is let in without
    /// one.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Finds the principal with this secret.
    ///
    /// # Errors
    /// No key has this secret, or it has ended.
    pub fn authenticate(&self, secret: &str, now: Timestamp) -> Result<Caller, NotKnown> {
        let secret = Secret::read(secret).ok_or(NotKnown::Malformed)?;
        let id = self.by_sha256.get(&secret.sha256()).ok_or(NotKnown::Unknown)?;
        self.caller(id, Auth::Key, now)
    }

    /// The roles of a principal with a token: those of its keys that have not ended, and those that
    /// the token claims. Keys of another kind are not its own: an agent may have the same name.
    #[must_use]
    pub fn granted_by_token(&self, id: &str, kind: PrincipalKind, token: &Token, now: Timestamp) -> Vec<Grant> {
        let own = self.keys.values().filter(|key| key.id == id && key.kind == kind && key.closed(now).is_none());
        let mut grants: Vec<Grant> = Vec::new();
        for grant in own.flat_map(|key| &key.grants).chain(&token.claimed) {
            if !grants.contains(grant) {
                grants.push(grant.clone());
            }
        }
        grants
    }

    /// Returns the principal of a key that has not ended.
    ///
    /// # Errors
    /// There is no such key, or it has ended.
    pub fn caller(&self, key: &str, auth: Auth, now: Timestamp) -> Result<Caller, NotKnown> {
        let found = self.keys.get(key).ok_or(NotKnown::Unknown)?;
        if let Some(why) = found.closed(now) {
            return Err(NotKnown::Closed { key: key.to_owned(), why });
        }
        let (id, grants) = (found.id.clone(), Some(found.grants.clone()));
        Ok(Caller { id, kind: found.kind, auth, grants, key: Some(key.to_owned()), token: None })
    }
}

/// Why nobody is authenticated by a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotKnown {
    /// The text cannot be a secret.
    #[error("this is not a key: a key begins with `chk_` and has 47 characters")]
    Malformed,
    /// No key has this secret.
    #[error("no key of this server has this secret")]
    Unknown,
    /// The key has ended.
    #[error("the key {key} is not accepted: {why}")]
    Closed {
        /// The id of the key.
        key: String,
        /// Why.
        why: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grant(text: &str) -> Grant {
        text.parse().unwrap()
    }

    fn caller(grants: &[&str]) -> Caller {
        let grants = Some(grants.iter().map(|g| grant(g)).collect());
        Caller { id: "ana".into(), kind: PrincipalKind::Person, auth: Auth::Key, grants, key: None, token: None }
    }

    fn roles(caller: &Caller, charter: &str, run: Option<&str>) -> Vec<String> {
        caller.principal(charter, run, [].into_iter()).roles
    }

    #[test]
    fn roles_are_limited_to_their_place() {
        let ana = caller(&["auditor", "fred/reviewer", "fred/r7/founder"]);
        assert_eq!(roles(&ana, "fred", Some("r7")), ["auditor", "founder", "reviewer"]);
        assert_eq!(roles(&ana, "fred", Some("r8")), ["auditor", "reviewer"]);
        assert_eq!(roles(&ana, "fred", None), ["auditor", "reviewer"]);
        assert_eq!(roles(&ana, "omen", Some("r7")), ["auditor"]);
        let bob = caller(&["fred/r7/founder"]);
        let fred = ["founder", "reviewer"];
        assert!(bob.sees("fred", Some("r7"), &fred));
        assert!(!bob.sees("fred", Some("r8"), &fred) && !bob.sees("fred", None, &fred));
        assert!(!bob.sees("omen", Some("r7"), &["clerk"]) && !caller(&[]).sees("fred", None, &fred));
        // A role that the charter does not know opens nothing.
        assert!(!ana.takes_part("omen", None, &["clerk"]) && ana.takes_part("fred", None, &fred));
        assert!(caller(&["operator"]).takes_part("omen", None, &["clerk"]));
        assert!(
            !caller(&["auditor"]).takes_part("open", None, &[]) && caller(&["open/x"]).takes_part("open", None, &[])
        );
        let reader = caller(&["reader"]);
        assert!(reader.sees("fred", Some("r1"), &fred) && !reader.takes_part("fred", Some("r1"), &fred));
        assert!(caller(&["admin"]).has_role("admin") && !caller(&["fred/admin"]).has_role("admin"));
    }

    #[test]
    fn a_key_that_has_ended_opens_nothing() {
        let secret = Secret::random().unwrap();
        let directory = |more: Json| {
            let mut key = json!({"sha256": secret.sha256(), "id": "ana", "kind": "person", "grants": [{"role": "a"}], "expires": null, "note": null, "revoked": false});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Directory::read(&json!({"owner": "uid:0", "keys": {secret.key(): key}}), 1).unwrap()
        };
        let now = Timestamp(ExprTimestamp::parse("2026-11-23T10:00:00Z").unwrap().millis());
        let found = |more: Json| directory(more).authenticate(secret.reveal(), now).map(|c| (c.id, c.kind, c.auth));
        assert_eq!(found(json!({})), Ok(("ana".into(), PrincipalKind::Person, Auth::Key)));
        assert_eq!(found(json!({"expires": "2026-11-23T10:00:00.001Z"})).map(|c| c.0), Ok("ana".into()));
        let closed = |why| Err(NotKnown::Closed { key: secret.key(), why });
        assert_eq!(found(json!({"expires": "2026-11-23T10:00:00Z"})), closed("it has expired"));
        assert_eq!(found(json!({"expires": "soon"})), closed("it has expired"));
        assert_eq!(found(json!({"revoked": true})), closed("it was revoked"));
        let other = Secret::random().unwrap();
        assert_eq!(directory(json!({})).authenticate(other.reveal(), now), Err(NotKnown::Unknown));
        assert_eq!(directory(json!({})).authenticate("ana", now), Err(NotKnown::Malformed));
    }
}

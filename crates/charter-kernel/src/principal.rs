//! Who sends an event: an id, roles, what it is and how its host authenticated it.

use std::str::FromStr;

use charter_expr::{Object, Str, Value};
use serde::{Deserialize, Serialize};

use crate::sender_name::{InvalidName, SYSTEM, check_name};

/// Upper limit in bytes of the id of a principal who sends an event.
pub const MAX_PRINCIPAL_ID_BYTES: usize = 256;

/// What a principal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum PrincipalKind {
    /// A human being.
    #[default]
    Person,
    /// A program that decides by itself: a model, or a tool that works for one.
    Agent,
    /// Any other program: a host, a command, a server.
    Service,
}

impl PrincipalKind {
    /// All kinds.
    pub const ALL: [PrincipalKind; 3] = [PrincipalKind::Person, PrincipalKind::Agent, PrincipalKind::Service];

    /// The word used in records, expressions and commands.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PrincipalKind::Person => "person",
            PrincipalKind::Agent => "agent",
            PrincipalKind::Service => "service",
        }
    }
}

/// How a host authenticated a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// By a secret key, or by a signature that only its owner can make.
    Key,
    /// By a session that was opened with a key.
    Session,
    /// By the operating system, at a local socket.
    Socket,
    /// By an `OpenID` provider.
    Oidc,
    /// By an SSH key.
    Ssh,
    /// By a passkey.
    Passkey,
    /// Not authenticated, but it has direct access to the journal; its id is what it claims to be.
    #[default]
    Local,
    /// Not authenticated.
    None,
}

impl Auth {
    /// All methods.
    pub const ALL: [Auth; 8] =
        [Auth::Key, Auth::Session, Auth::Socket, Auth::Oidc, Auth::Ssh, Auth::Passkey, Auth::Local, Auth::None];

    /// The word used in records, expressions and commands.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Auth::Key => "key",
            Auth::Session => "session",
            Auth::Socket => "socket",
            Auth::Oidc => "oidc",
            Auth::Ssh => "ssh",
            Auth::Passkey => "passkey",
            Auth::Local => "local",
            Auth::None => "none",
        }
    }
}

/// A word that is not the kind of a principal or a way to authenticate one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{word}`: use {}", .known.join(", "))]
pub struct UnknownWord {
    /// What the word should be.
    what: &'static str,
    /// The word, truncated if it is long.
    word: String,
    /// The words that exist.
    known: Vec<&'static str>,
}

impl UnknownWord {
    fn new(what: &'static str, word: &str, known: Vec<&'static str>) -> UnknownWord {
        const MAX: usize = 40;
        let word = match word.char_indices().nth(MAX) {
            Some((end, _)) => format!("{}…", word.get(..end).unwrap_or_default()),
            None => word.to_owned(),
        };
        UnknownWord { what, word, known }
    }
}

impl FromStr for PrincipalKind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<PrincipalKind, UnknownWord> {
        let known = || PrincipalKind::ALL.into_iter().map(PrincipalKind::word);
        let found = PrincipalKind::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| UnknownWord::new("kind of principal", word, known().collect()))
    }
}

impl FromStr for Auth {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Auth, UnknownWord> {
        let known = || Auth::ALL.into_iter().map(Auth::word);
        let found = Auth::ALL.into_iter().find(|auth| auth.word() == word);
        found.ok_or_else(|| UnknownWord::new("authentication", word, known().collect()))
    }
}

impl std::fmt::Display for PrincipalKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl std::fmt::Display for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// A sender, as the host has authenticated it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(expecting = "an object with `id`, `roles`, `kind`, `auth`")]
pub struct Principal {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its roles.
    #[serde(default)]
    pub roles: Vec<String>,
    /// What it is; [`Principal::kind`] says what `None` means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PrincipalKind>,
    /// How it was authenticated; [`Principal::auth`] says what `None` means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

impl Principal {
    /// Creates a principal with roles. Hosts add [`Principal::of_kind`] and
    /// [`Principal::authenticated`].
    #[must_use]
    pub fn new(id: &str, roles: &[&str]) -> Principal {
        Principal { id: id.into(), roles: roles.iter().map(|r| (*r).to_string()).collect(), kind: None, auth: None }
    }

    /// Returns the principal of the host itself: a service.
    #[must_use]
    pub fn system() -> Principal {
        Principal::new(SYSTEM, &[SYSTEM]).of_kind(PrincipalKind::Service)
    }

    /// Checks that a principal from outside does not claim to be the host, and does not look like
    /// another one. Hosts call it for every sender, whatever has authenticated it.
    ///
    /// # Errors
    /// Its id or one of its roles is not a [name](check_name).
    pub fn check_sender(&self) -> Result<(), InvalidName> {
        std::iter::once(&self.id).chain(&self.roles).try_for_each(|name| check_name(name))
    }

    /// Sets what the principal is.
    #[must_use]
    pub fn of_kind(self, kind: PrincipalKind) -> Principal {
        Principal { kind: Some(kind), ..self }
    }

    /// Sets how the principal was authenticated.
    #[must_use]
    pub fn authenticated(self, auth: Auth) -> Principal {
        Principal { auth: Some(auth), ..self }
    }

    /// What the principal is; a person, if its host did not say.
    #[must_use]
    pub fn kind(&self) -> PrincipalKind {
        self.kind.unwrap_or_default()
    }

    /// How the principal was authenticated; [`Auth::Local`], if its host did not say.
    #[must_use]
    pub fn auth(&self) -> Auth {
        self.auth.unwrap_or_default()
    }
}

impl Object for Principal {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "id" => Some(Value::from(self.id.as_str())),
            "roles" => Some(Value::list(self.roles.iter().map(|r| Value::from(r.as_str())).collect())),
            "kind" => Some(Value::from(self.kind().word())),
            "auth" => Some(Value::from(self.auth().word())),
            _ => None,
        }
    }
    /// Only the fields that were given, as in a record: `by` as a whole has the same value whenever
    /// the record is replayed.
    fn keys(&self) -> Vec<Str<'_>> {
        let given = [("kind", self.kind.is_some()), ("auth", self.auth.is_some())];
        let given = given.into_iter().filter_map(|(key, given)| given.then_some(key));
        ["id", "roles"].into_iter().chain(given).map(Str::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sender_is_not_the_host() {
        assert_eq!(Principal::new("ana", &["operator"]).check_sender(), Ok(()));
        assert_eq!(Principal::default().check_sender(), Ok(()));
        for by in [Principal::system(), Principal::new("system", &[]), Principal::new("eve", &["a", "system"])] {
            assert_eq!(by.check_sender(), Err(InvalidName::Reserved { name: "system".into() }));
        }
    }

    #[test]
    fn every_word_reads_as_what_it_names() {
        for kind in PrincipalKind::ALL {
            assert_eq!(kind.word().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(kind.word()));
        }
        for auth in Auth::ALL {
            assert_eq!(auth.word().parse(), Ok(auth));
            assert_eq!(serde_json::to_value(auth).unwrap(), json!(auth.word()));
        }
    }

    #[test]
    fn an_unknown_word_is_an_error_that_names_the_known_ones() {
        let error = |e: UnknownWord| e.to_string();
        assert_eq!(
            "robot".parse::<PrincipalKind>().map_err(error),
            Err("unknown kind of principal `robot`: use person, agent, service".to_owned())
        );
        assert_eq!(
            "Key".parse::<Auth>().map_err(error),
            Err("unknown authentication `Key`: use key, session, socket, oidc, ssh, passkey, local, none".to_owned())
        );
        let long = "é".repeat(500).parse::<Auth>().unwrap_err().to_string();
        assert!(long.chars().count() < 200, "{long}");
        let json = serde_json::from_value::<Principal>(json!({"id": "ana", "kind": "robot"}));
        assert!(json.unwrap_err().to_string().contains("unknown variant `robot`"));
    }

    #[test]
    fn json_has_only_what_was_given() {
        let bare = Principal::new("ana", &["a"]);
        assert_eq!(serde_json::to_value(&bare).unwrap(), json!({"id": "ana", "roles": ["a"]}));
        let full = bare.clone().of_kind(PrincipalKind::Agent).authenticated(Auth::None);
        let json = json!({"id": "ana", "roles": ["a"], "kind": "agent", "auth": "none"});
        assert_eq!(serde_json::to_value(&full).unwrap(), json);
        assert_eq!(serde_json::from_value::<Principal>(json).unwrap(), full);
        assert_eq!((bare.kind(), bare.auth()), (PrincipalKind::Person, Auth::Local));
        assert_eq!((bare.keys().len(), full.keys().len()), (2, 4));
    }
}

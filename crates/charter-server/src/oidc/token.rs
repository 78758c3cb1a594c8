//! A signed token (RFC 7515, RFC 7519): its head, its signature, and what it claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use charter_kernel::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::keys::{Algorithm, PublicKey};
use super::{Refused, refused};
use crate::identity::Grant;
use crate::options::OidcOptions;

/// Bytes of a token; it is looked at before anybody is known.
const MAX_TOKEN: usize = 16 << 10;
/// How far the clocks of the provider and of this machine may be apart.
const LEEWAY_S: f64 = 60.0;
/// Length of an id, as keys have it.
const MAX_ID: usize = 200;
/// Roles that are taken from a claim.
const MAX_ROLES: usize = 64;

/// Whether a text of `Authorization: Bearer` looks like a token, and not like a key.
pub(crate) fn is_token(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// A token whose signature is not checked yet.
#[derive(Debug)]
pub(super) struct Head<'t> {
    algorithm: Algorithm,
    kid: Option<String>,
    signed: &'t str,
    claims: &'t str,
    signature: &'t str,
}

#[derive(Deserialize)]
struct RawHead {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Json>,
}

fn decoded(text: &str) -> Result<Vec<u8>, Refused> {
    URL_SAFE_NO_PAD.decode(text).or_else(|_| refused("it is not a JWT"))
}

impl<'t> Head<'t> {
    pub(super) fn read(text: &'t str) -> Result<Head<'t>, Refused> {
        if text.len() > MAX_TOKEN {
            return refused(format!("it has more than {} KiB", MAX_TOKEN >> 10));
        }
        let parts = text.rsplit_once('.').and_then(|(signed, s)| Some((signed, signed.split_once('.')?, s)));
        let Some((signed, (head, claims), signature)) = parts else { return refused("it is not a JWT") };
        let Ok(raw) = serde_json::from_slice::<RawHead>(&decoded(head)?) else { return refused("it is not a JWT") };
        let Some(algorithm) = Algorithm::read(&raw.alg) else {
            return refused("its signature must be RS256 or ES256 (`alg`)");
        };
        // Tokens for a logout, for example, have the same issuer and audience.
        let typ = raw.typ.unwrap_or_default().to_ascii_lowercase();
        if !matches!(typ.strip_prefix("application/").unwrap_or(&typ), "" | "jwt" | "at+jwt") {
            return refused("it is neither an ID token nor an access token (`typ`)");
        }
        if raw.crit.is_some() {
            return refused("it has extensions that are not understood (`crit`)");
        }
        Ok(Head { algorithm, kid: raw.kid, signed, claims, signature })
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// What it claims, if the key has signed it.
    pub(super) fn verified(&self, key: &PublicKey) -> Result<Claims, Refused> {
        if !key.has_signed(self.signed.as_bytes(), &decoded(self.signature)?) {
            return refused("its signature is wrong");
        }
        serde_json::from_slice(&decoded(self.claims)?).map(Claims).or_else(|_| refused("its claims are not an object"))
    }
}

/// The claims of a token with a right signature.
#[derive(Debug)]
pub(super) struct Claims(Map<String, Json>);

/// Who a token names.
#[derive(Debug, PartialEq)]
pub(super) struct Who {
    pub(super) id: String,
    /// Whether it was given to a program for itself, without a person.
    pub(super) is_program: bool,
    pub(super) grants: Vec<Grant>,
    pub(super) until: Timestamp,
}

/// Whether a text can be an id or a role, as it can be for keys.
fn is_name(text: &str) -> bool {
    let is_strange = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    (1..=MAX_ID).contains(&text.len()) && !text.contains(is_strange) && charter_kernel::check_name(text).is_ok()
}

impl Claims {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Json::as_str)
    }

    pub(super) fn check(&self, options: &OidcOptions, now: Timestamp) -> Result<Who, Refused> {
        if self.text("iss") != Some(options.issuer.as_str()) {
            return refused("it is of another issuer (`iss`)");
        }
        let audience: Vec<&str> = match self.0.get("aud") {
            Some(Json::String(one)) => vec![one],
            Some(Json::Array(all)) => all.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        if !audience.contains(&options.client.as_str()) {
            return refused("it is for somebody else (`aud`)");
        }
        if audience.len() > 1 && self.text("azp").is_some_and(|party| party != options.client) {
            return refused("it was given to somebody else (`azp`)");
        }
        // Its holder has to prove that it has another key, too, which is not asked for here.
        if self.0.contains_key("cnf") {
            return refused("it is bound to a key of its holder (`cnf`)");
        }
        #[allow(clippy::cast_precision_loss, reason = "milliseconds of this millennium are exact")]
        let seconds = now.0 as f64 / 1_000.0;
        let Some(end) = self.0.get("exp").and_then(Json::as_f64) else { return refused("it has no end (`exp`)") };
        if seconds >= end + LEEWAY_S {
            return refused("it has expired (`exp`)");
        }
        let begin = self.0.get("nbf").map(|begin| begin.as_f64().unwrap_or(f64::INFINITY));
        if begin.is_some_and(|begin| seconds < begin - LEEWAY_S) {
            return refused("it is not valid yet (`nbf`)");
        }
        let id = self.id(options.id_claim.as_deref().unwrap_or("sub"))?;
        // RFC 9068: a token that a program gets for itself has the program as its subject.
        let subject = self.text("sub");
        let is_own = subject.is_some() && ["client_id", "azp"].iter().any(|claim| self.text(claim) == subject);
        // What other providers write.
        let is_program = is_own || self.text("gty") == Some("client-credentials") || self.text("idtyp") == Some("app");
        #[allow(clippy::cast_possible_truncation, reason = "`as` saturates")]
        let until = Timestamp(((end + LEEWAY_S) * 1_000.0) as i64);
        Ok(Who { id, is_program, grants: self.grants(options.roles_claim.as_deref()), until })
    }

    fn id(&self, claim: &str) -> Result<String, Refused> {
        let id = self.text(claim).unwrap_or_default();
        match is_name(id) {
            true => Ok(id.to_owned()),
            false => {
                refused(format!("its claim `{claim}` cannot be an id: 1 to {MAX_ID} characters without blanks or `/`"))
            }
        }
    }

    /// The roles of a claim: a list, or words. `a.b` is the member `b` of `a`, unless a claim has
    /// this name. What is not a role is left out: other programs have theirs there.
    fn grants(&self, claim: Option<&str>) -> Vec<Grant> {
        let Some(claim) = claim else { return Vec::new() };
        let found = self.0.get(claim).or_else(|| {
            let mut parts = claim.split('.');
            let first = self.0.get(parts.next()?)?;
            parts.try_fold(first, |at, part| at.get(part))
        });
        let words: Vec<&str> = match found {
            Some(Json::String(words)) => words.split_whitespace().collect(),
            Some(Json::Array(all)) => all.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let is_role = |word: &&str| word.split('/').all(is_name);
        words.into_iter().filter(is_role).filter_map(|word| word.parse().ok()).take(MAX_ROLES).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::super::keys::Keys;
    use super::*;

    /// A token that `openssl` has signed, and the modulus of its key.
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFt\
         cGxlIiwiYXVkIjoiY2hhcnRlciIsInN1YiI6ImFuYSIsImV4cCI6NDEwMjQ0NDgwMCwibmJmIjoxNjAwMDAwMDAw\
         LCJyZWFsbSI6eyJyb2xlcyI6WyJwYXltZW50L2Jvc3MiLCJhIGdyb3VwIiwicmVhZGVyIl19fQ.RhNG6jRKU7oT-\
         hc5-cO8-z4dPCYoJKZBgbhBxWaCS2g9HZ1Qd-0v0VjqmoC_rzfirzjziwy7BYj497SatiT36ADMvpzJlw8Woj115\
         qeyDsRHBBnWnGqYk0E1aa3e6PgSzP9czGX-ukKrQ5Hmv5L199pzfHzSlUIuAJSOumHsT7Ms_mVWWrMBp1wlgOmKa\
         YlCxuGHKzdAOrZv7jJO73LaZy12Arjdg-rpSLbhE0gCCgN_0uMkA7NcpKSVxtzLjKJ_JwmhMLvoEh9QXQNws7gFH\
         nbUeZilUa3YBmzcD6tvgTxoAvLxUawTr04ZZVoYLRkNEVnQQsLsuZ5NAvEKosgAmw";
    const N: &str = "xT2igVsvtDwLVyN1yecMJFR3ykvVC-LUqUpkPlw40B0nHJfC0TJnS4dF9LrNTwfg_Ilz4CokTqXxdm1RUMB8m0Nl\
         f33_Tz3vSOBfYJBYts60ft8UzN5E6CkaNXVtBAgJjmVy92UU3YmuW45YOglFjlQLCU7llIonE-LiWgCbiQUC9En5\
         rYjVJdoaLv6M0OEzbc8NCKnOKx4g7IBvziturl9v62zL-RSXUviMr7GPBh3JPM-zTZC2HsYWv_jkQvWNhoZeAP-n\
         XhWqAhQEKFL2p60ExpissINFRPa9mNgpOz7wVFwoaAKd0iDyIBv1sOQjYOK9gc1pzbPD7rj8jdoR0w";

    #[test]
    fn a_token_of_another_program_is_verified() {
        let set = |n: &str| serde_json::from_value(json!({"keys": [{"kty": "RSA", "kid": "r1", "n": n, "e": "AQAB"}]}));
        let keys = Keys::read(set(N).unwrap());
        let head = Head::read(TOKEN).unwrap();
        let key = keys.find(head.kid(), head.algorithm()).unwrap().unwrap();
        let options = OidcOptions {
            issuer: "https://issuer.example".into(),
            client: "charter".into(),
            id_claim: None,
            roles_claim: Some("realm.roles".into()),
        };
        let who = head.verified(&key).unwrap().check(&options, Timestamp(1_700_000_000_000)).unwrap();
        let grants: Vec<String> = who.grants.iter().map(ToString::to_string).collect();
        assert_eq!((who.id.as_str(), who.is_program, who.until), ("ana", false, Timestamp(4_102_444_860_000)));
        assert_eq!(grants, ["payment/boss", "reader"]);
        // Every part is signed.
        for (at, _) in TOKEN.char_indices().step_by(37).filter(|(at, _)| TOKEN.as_bytes()[*at] != b'.') {
            let other = if TOKEN.as_bytes()[at] == b'A' { "B" } else { "A" };
            let mut changed = TOKEN.to_owned();
            changed.replace_range(at..=at, other);
            let verified = Head::read(&changed).and_then(|head| head.verified(&key));
            assert!(verified.is_err(), "{at}: {verified:?}");
        }
        let short = Keys::read(set("xT2igVsvtDwLVyN1yecM").unwrap()).find(None, Algorithm::Rs256).unwrap().unwrap();
        assert!(Head::read(TOKEN).unwrap().verified(&short).is_err(), "keys below 2048 bits count for nothing");
    }
}

//! Public keys of a provider (RFC 7517): RSA and P-256, for signatures.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Refused, refused};

/// Keys of a provider, at most; further ones are not used.
const MAX_KEYS: usize = 100;

/// An algorithm of signatures. There is no other: `none` and those with a shared secret would let
/// everybody sign who knows the public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    pub(super) fn read(word: &str) -> Option<Algorithm> {
        match word {
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
        }
    }
}

/// A public key; its kind decides how signatures are checked.
#[derive(Debug, Clone)]
pub(super) enum PublicKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The uncompressed point.
    P256(Vec<u8>),
}

impl PublicKey {
    fn algorithm(&self) -> Algorithm {
        match self {
            PublicKey::Rsa { .. } => Algorithm::Rs256,
            PublicKey::P256(_) => Algorithm::Es256,
        }
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            PublicKey::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            PublicKey::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
        }
    }
}

/// A document of keys.
#[derive(Deserialize)]
pub(super) struct KeySet {
    keys: Vec<Json>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// The key, if it is one for signatures that are understood.
    fn key(&self) -> Option<PublicKey> {
        let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let key = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa { n: bytes(&self.n)?, e: bytes(&self.e)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&self.x)?, bytes(&self.y)?);
                let point = [&[4u8][..], &x, &y].concat();
                (x.len() == 32 && y.len() == 32).then_some(PublicKey::P256(point))?
            }
            _ => return None,
        };
        let for_signatures = self.r#use.as_deref().is_none_or(|word| word == "sig");
        let for_this = self.alg.as_deref().is_none_or(|word| word == key.algorithm().word());
        (for_signatures && for_this).then_some(key)
    }
}

/// The keys of a provider, with their names.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<(Option<String>, PublicKey)>);

impl Keys {
    /// The keys that can be used; others are for other purposes.
    pub(super) fn read(set: KeySet) -> Keys {
        let known = set.keys.into_iter().filter_map(|json| Jwk::deserialize(json).ok());
        let keys = known.filter_map(|jwk| Some((jwk.kid.clone(), jwk.key()?)));
        Keys(keys.take(MAX_KEYS).collect())
    }

    /// Finds the key with this name; without one, the only key for the algorithm.
    pub(super) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Option<PublicKey>, Refused> {
        let of_kind = self.0.iter().filter(|(_, key)| key.algorithm() == algorithm);
        let mut found = of_kind.filter(|(name, _)| kid.is_none() || name.as_deref() == kid).map(|(_, key)| key);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => refused("it does not say which of several keys has signed it (`kid`)"),
            (one, _) => Ok(one.cloned()),
        }
    }
}

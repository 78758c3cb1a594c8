//! JSON with comments, as some clients read it. It is only read: what changes it would lose them.

use charter_expr::strict_json::{self, StrictJson};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde::de::DeserializeSeed as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use crate::client::Client;

/// What a client reads in its configuration. A file that it cannot read has no effect, so neither
/// have the hooks in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    /// Plain JSON.
    Plain,
    /// Comments as well.
    Comments,
    /// Commas behind the last entry as well.
    Commas,
}

impl Dialect {
    /// What a client is known to read: seen with the real ones (`.ci/clients_real.py`); opencode
    /// says so in its documentation.
    pub(super) fn of(client: Client) -> Dialect {
        match client {
            Client::Gemini => Dialect::Comments,
            Client::Opencode => Dialect::Commas,
            Client::Claude | Client::Codex | Client::Copilot | Client::Cursor | Client::Goose => Dialect::Plain,
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Why it is not of this dialect.
    pub(super) fn read(self, text: &str) -> Result<Json, String> {
        if self == Dialect::Plain {
            return strict_json::from_str(text).map_err(|e| e.to_string());
        }
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: self == Dialect::Commas,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let strict: Strict = parse_to_serde_value(text, &options).map_err(|e| e.to_string())?;
        Ok(strict.0)
    }
}

/// A value without duplicate keys.
struct Strict(Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Strict, D::Error> {
        StrictJson.deserialize(from).map(Strict)
    }
}

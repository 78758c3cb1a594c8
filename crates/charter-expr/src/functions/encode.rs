//! The encoders extension: base64.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::Function;
use crate::detail::{EvalDetail, Expected};
use crate::error::EvalError;
use crate::{Fuel, Value};

/// Encodes with padding; decodes with or without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Encodes bytes as base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes base64, with or without padding.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

pub(super) fn call<'a>(f: Function, args: &[Value<'a>], fuel: &mut Fuel) -> Result<Option<Value<'a>>, EvalError> {
    Ok(Some(match (f, args) {
        (Function::Base64Encode, [Value::Bytes(b)]) => {
            fuel.spend_bytes(b.len().saturating_mul(2))?;
            Value::string(base64(b))
        }
        (Function::Base64Decode, [Value::String(s)]) => {
            fuel.spend_bytes(s.len())?;
            let bytes = from_base64(s).ok_or_else(|| EvalDetail::not_a(Expected::Base64, s))?;
            Value::Bytes(bytes.into())
        }
        _ => return Ok(None),
    }))
}

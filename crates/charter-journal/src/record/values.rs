//! Parses the times and whole numbers of records.

use std::borrow::Cow;

use charter_kernel::Timestamp;
use serde::{Deserialize, Deserializer};

use super::timestamp;

pub(super) fn at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let written = <Cow<'de, str>>::deserialize(deserializer)?;
    timestamp::read(&written).ok_or_else(|| {
        serde::de::Error::custom(format!("`at` is not a timestamp such as 2026-11-21T10:00:00.000Z: `{written}`"))
    })
}

pub(super) fn maybe_whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let signed = deserializer.deserialize_any(Whole)?;
    u64::try_from(signed).map(Some).map_err(|_| serde::de::Error::custom("number out of range"))
}

pub(super) fn far_timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let wide = deserializer.deserialize_any(Whole)?;
    i64::try_from(wide).map(|ms| Some(Timestamp(ms))).map_err(|_| serde::de::Error::custom("number out of range"))
}

/// An integer, written as a number within ±(2^53-1) and as a string beyond.
struct Whole;

impl serde::de::Visitor<'_> for Whole {
    type Value = i128;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an integer, or a string with one")
    }
    fn visit_i64<E>(self, v: i64) -> Result<i128, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<i128, E> {
        Ok(v.into())
    }
    fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<i128, E> {
        v.parse().map_err(|_| E::custom("expected an integer, or a string with one"))
    }
}

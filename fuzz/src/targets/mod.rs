//! The targets.

pub(crate) mod charter;
pub(crate) mod dogs;
pub(crate) mod events;
pub(crate) mod exports;
pub(crate) mod expressions;
pub(crate) mod imports;
pub(crate) mod journal;
pub(crate) mod packets;

#![doc = include_str!("../README.md")]
// Large errors are acceptable: an error ends the operation.
#![allow(clippy::result_large_err)]

mod hooks;
mod http;
mod remote;
mod store;

pub use http::BadUrl;
pub use remote::{Me, Remote};
pub use store::RemoteStore;

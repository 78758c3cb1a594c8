//! Differential tests against other crates.

mod cel;
mod stateright;

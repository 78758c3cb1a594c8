//! Integration tests of the expression language, in one binary.

mod conformance;
mod differential;
mod hostile;
mod properties;

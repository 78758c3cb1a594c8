//! Integration tests of the expression language, in one binary.

mod conformance;
mod hostile;
mod properties;

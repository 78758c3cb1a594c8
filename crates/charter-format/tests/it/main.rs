//! The tests of the public API, one binary.

mod hostile;
mod kernel;
mod messages;
mod reading;
mod round_trip;
mod scenarios;
mod schema;
mod spans;

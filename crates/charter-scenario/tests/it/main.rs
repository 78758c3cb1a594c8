//! Integration tests.

mod omen;

//! JSON Schema: compared with the crate `jsonschema`, and with hostile schemas and data.

mod attacks;
mod compared;
mod decided;
mod oracle;
mod refused;

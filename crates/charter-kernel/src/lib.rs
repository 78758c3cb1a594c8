//! The kernel.

pub mod definition;
pub mod digest;
mod problem;

pub use definition::Definition;
pub use digest::Digest;
pub use problem::Problem;

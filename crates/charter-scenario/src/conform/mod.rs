//! Judges a recorded stream against a charter, item by item.

mod item;
mod judge;
mod summary;
mod tape;

pub use item::StreamError;
pub use judge::{Clock, Judge, Judgment, StreamRun};

//! Checks a recorded stream against a charter, item by item.

mod field_set;
mod item;
mod judge;
mod stream_run;
mod summary;
mod tape;

pub use item::StreamError;
pub use judge::{Judge, Judgment, StreamClock};
pub use stream_run::StreamRun;

#![doc = include_str!("../README.md")]

pub use charter_expr as expr;
pub use charter_kernel as kernel;

#[cfg(feature = "runtime")]
pub use charter_actors as actors;
#[cfg(feature = "check")]
pub use charter_check as check;
#[cfg(feature = "diagram")]
pub use charter_diagram as diagram;
#[cfg(feature = "format")]
pub use charter_format as format;
#[cfg(feature = "interop")]
pub use charter_interop as interop;
#[cfg(feature = "journal")]
pub use charter_journal as journal;
#[cfg(feature = "run")]
pub use charter_run as run;
#[cfg(feature = "runtime")]
pub use charter_runtime as runtime;

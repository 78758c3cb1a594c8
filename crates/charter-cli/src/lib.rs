//! The commands of `charter`, as functions over streams: the binary adds the real ones, tests bring their own.
//!
//! ```
//! use charter_cli::{Exit, Io, run};
//!
//! fn eval(args: &[&str]) -> (Exit, Vec<u8>) {
//!     let (mut out, mut err) = (Vec::new(), Vec::new());
//!     let input = Box::new(std::io::empty());
//!     let mut io = Io { out: &mut out, err: &mut err, input, colour_out: false, colour_err: false, terminal: false, screen: None };
//!     let exit = run(args.iter().copied(), &mut io);
//!     drop(io);
//!     (exit, out)
//! }
//!
//! let args = ["charter", "eval", "a + 1", "--with", r#"{"a": 1}"#];
//! assert_eq!(eval(&args), (Exit::Yes, b"2\n".to_vec()));
//! ```

mod args;
pub mod bundled;
pub mod check;
pub mod codes;
pub mod conform;
pub mod eval;
pub mod graph;
mod input;
mod io;
pub mod journal;
pub mod load;
pub mod models;
pub mod new;
mod page;
mod program;
pub mod run;
pub mod step;
#[cfg(feature = "otel")]
pub mod telemetry;
pub mod test;

pub use args::run;
pub use io::{Exit, Failure, Io, Paint};

#![doc = include_str!("../README.md")]

mod clock;
mod fault;
mod fork;
mod handled;
mod handling;
mod input;
mod key_error;
mod policy;
mod portable;
mod position;
mod recent;
mod refused;
mod retry;
mod run;
mod run_id;
mod task;
mod values;

pub use clock::{MAX_AHEAD, MAX_BEHIND, WrongClock, check_clock};
pub use fault::Fault;
pub use handled::{
    Action, Appended, Denied, Handled, InvocationRequest, MAX_EVENT_ID_BYTES, Reply, Trouble, check_event_id,
};
pub use input::{EventInput, Input, Known};
pub use key_error::KeyError;
pub use policy::{ActorPolicy, Retry};
pub use position::{Incoming, Position, RefusedTimers};
pub use recent::{IdState, RecentIds};
pub use retry::{NextAttempt, Resume, after_failure};
pub use run::{Bounds, Kept, KeptError, Run};
pub use run_id::{BadRunId, check_run_id};
pub use task::{Task, open_tasks, tasks};
pub use values::{delay, texts};

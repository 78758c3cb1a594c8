//! The state that system functions access during an execution.

use std::sync::Arc;

use wasmi::Memory;

use crate::run::{Effects, Input, NewCall};
use crate::stable::Stable;

/// The state of one execution, kept in the interpreter's store.
#[derive(Default)]
pub(crate) struct Env {
    pub(crate) memory: Option<Memory>,
    pub(crate) stable: Stable,
    pub(crate) input: Option<Arc<Input>>,
    pub(crate) effects: Effects,
    /// The reply under construction.
    pub(crate) reply: Vec<u8>,
    /// The call under construction.
    pub(crate) call: Option<NewCall>,
    pub(crate) printed: Vec<String>,
}

impl Env {
    pub(crate) fn begin(&mut self, input: &Arc<Input>) {
        self.input = Some(Arc::clone(input));
        self.effects = Effects::default();
        self.reply.clear();
        self.call = None;
        self.printed.clear();
    }

    pub(crate) fn end(&mut self) -> (Effects, Vec<String>) {
        self.input = None;
        (std::mem::take(&mut self.effects), std::mem::take(&mut self.printed))
    }
}

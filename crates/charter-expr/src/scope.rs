//! What an evaluation asks of its host.

use crate::error::{ErrorKind, EvalError};
use crate::{Fuel, FunctionId, RootId, Value};

/// The values of the roots and the functions of the host, for one evaluation.
///
/// Answers must depend on nothing but the data of the evaluation, or replay is not deterministic.
pub trait Scope<'a> {
    /// The value of a root; `None` if it has none, which is the error `Unbound` where it is read.
    fn root(&self, id: RootId) -> Option<Value<'a>>;

    /// Calls a function declared with [`crate::Env::function`]. It spends fuel for the work it does.
    fn call(&self, f: FunctionId, args: &[Value<'a>], fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
        let _ = (f, args, fuel);
        Err(EvalError::new(ErrorKind::Unbound, "the function is not available here"))
    }
}

/// No roots and no functions: for constant expressions.
impl<'a> Scope<'a> for () {
    fn root(&self, _: RootId) -> Option<Value<'a>> {
        None
    }
}

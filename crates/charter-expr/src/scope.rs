//! The interface between an evaluation and its host.

use crate::error::{ErrorKind, EvalError};
use crate::{Fuel, FunctionId, RootId, Value};

/// The values of the roots and the functions of the host, for one evaluation.
///
/// Results must depend only on the data of the evaluation; otherwise, replay is not deterministic.
pub trait Scope<'a> {
    /// Returns the value of a root, or `None` if it has none; reading it is then the error
    /// `Unbound`.
    fn root(&self, id: RootId) -> Option<Value<'a>>;

    /// Calls a function declared with [`crate::Env::function`], which spends fuel for its work.
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

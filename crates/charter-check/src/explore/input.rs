//! Decides whether another input could start a run that was refused.

use charter_kernel::{Cause, RefusalDetails};
use serde_json::Value as Json;

use crate::model::Model;
use crate::model::walk::Item;

/// What differs from start to start.
const GIVEN: [&str; 4] = ["input", "by", "now", "run"];

/// Whether the refusal of a start may depend on the input, or on who starts the run and when. It
/// does not if no expression of the charter reads any of it, or if the value of a variable always
/// fails.
pub(super) fn input_matters<'d>(model: &Model<'d>, details: &RefusalDetails) -> bool {
    if model.def.root.input.as_ref().is_some_and(|schema| schema.get("const").is_some()) {
        return false;
    }
    let mut reads = !details.misfits.is_empty();
    model.visit_all(&mut |_, item: Item<'d>| {
        if let Item::Cel(cel) = item {
            reads |= GIVEN.iter().any(|root| model.reads_root(cel, root));
        }
    });
    reads && !fails_always(model, details)
}

/// Whether the expression that failed is the value of a context variable and reads nothing.
fn fails_always(model: &Model<'_>, details: &RefusalDetails) -> bool {
    let Some(Cause::Unhandled { error, .. }) = &details.cause else {
        return false;
    };
    let failed = error.get("expression").and_then(Json::as_str);
    let mut all = model.def.root.context.values().flat_map(Model::cels);
    all.any(|cel| Some(cel) == failed && model.ast(cel).is_some_and(|ast| ast.reads().is_empty()))
}

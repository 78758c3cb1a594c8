//! Determines the type of each chart's context: declared, or inferred from initial values and
//! assignments.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_expr::{Field, NumberType, Numbers, Type};
use charter_kernel::definition::Template;

use super::env::{Place, Types, event_of};
use crate::model::walk::{Item, variable_of};
use crate::model::{Chart, Model};

/// The types that are assigned to a variable, and whether parts of it are assigned, too.
#[derive(Default)]
struct Assigned {
    whole: Vec<Type>,
    inside: bool,
}

pub(crate) fn contexts(model: &Model<'_>, types: &Types) -> Vec<Type> {
    let mut out = Vec::new();
    for (number, chart) in model.charts.iter().enumerate() {
        out.push(match &chart.def.context_schema {
            Some(schema) => declared(model, types, number, chart, Type::from_schema(schema)),
            None => inferred(model, types, number, chart),
        });
    }
    out
}

/// Returns the declared type of the context. A variable with an initial value always exists,
/// whether or not the schema requires it.
fn declared(model: &Model<'_>, types: &Types, number: usize, chart: &Chart<'_>, schema: Type) -> Type {
    let Type::Object { fields, open } = schema else {
        return schema;
    };
    let mut fields = Arc::unwrap_or_clone(fields);
    for name in chart.def.context.keys() {
        // A variable that the schema does not mention has the number type of its first value.
        let first = || match types.numbers(number, name).and_then(Numbers::number) {
            Some(NumberType::Int) => Type::Int,
            Some(NumberType::Double) => Type::Double,
            None => Type::Dyn,
        };
        fields.entry(name.clone()).or_insert_with(|| Field::optional(first())).required = true;
    }
    for name in &chart.outline.variables {
        let field = || Field { ty: Type::Dyn, required: !model.def.strict };
        fields.entry((*name).to_string()).or_insert_with(field);
    }
    // The context of a strict charter is closed, other than objects elsewhere in schemas.
    let open = match model.def.strict {
        true => chart.def.declared_variables().is_none(),
        false => open && chart.def.context.is_empty(),
    };
    Type::Object { fields: fields.into(), open }
}

fn inferred<'d>(model: &Model<'d>, types: &Types, number: usize, chart: &Chart<'d>) -> Type {
    let place = Place::new(number, Type::Dyn);
    let first: Arc<BTreeMap<String, Field>> = chart
        .def
        .context
        .iter()
        .map(|(name, value)| {
            let ty = template_type(model, types, &place, value).stored(types.numbers(number, name));
            (name.clone(), Field::required(ty))
        })
        .collect::<BTreeMap<_, _>>()
        .into();
    let mut early = types.without_contexts();
    if let Some(place) = early.contexts.get_mut(number) {
        *place = Type::Object { fields: Arc::clone(&first), open: true };
    }
    let mut assigned: BTreeMap<String, Assigned> = BTreeMap::new();
    let mut note = |place: &Place, item: Item<'_>| {
        if let Item::Assign(path, value) = item {
            let slot = assigned.entry(variable_of(path).to_string()).or_default();
            if path.contains(['.', '[']) {
                slot.inside = true;
            } else {
                let ty = template_type(model, &early, place, value);
                slot.whole.push(ty.stored(types.numbers(number, path)));
            }
        }
    };
    for state in &chart.states {
        model.visit_state(state.def, &state.at, &mut |_, item| note(&place, item));
    }
    for t in &chart.transitions {
        let place = Place::new(number, event_of(model, chart, t));
        model.visit_block(&t.def.actions, t.at, &mut |_, item| note(&place, item));
    }
    let mut fields = BTreeMap::new();
    for name in &chart.outline.variables {
        let before = first.get(*name);
        let ty = match (before.map(|f| f.ty.clone()), assigned.remove(*name)) {
            (Some(ty), None) => ty,
            (Some(ty), Some(a)) => {
                let opened = if a.inside { Type::Dyn } else { ty };
                Type::union(std::iter::once(opened).chain(a.whole))
            }
            (None, _) => Type::Dyn,
        };
        // In a lenient charter, the actions that set a variable declare it.
        let required = before.is_some() || !model.def.strict;
        fields.insert((*name).to_string(), Field { ty, required });
    }
    Type::Object { fields: fields.into(), open: false }
}

/// Returns the type of a template, without reporting errors in it.
pub(crate) fn template_type(model: &Model<'_>, types: &Types, place: &Place, value: &Template) -> Type {
    match value {
        Template::Literal(json) => Type::of_json(json),
        Template::Cel(cel) => match charter_expr::parse(cel) {
            Ok(ast) => match charter_expr::check(&ast, &types.env(model, place, false)).0 {
                // A variable that starts as null may receive a value of any type.
                Type::Null => Type::Dyn,
                ty => ty,
            },
            Err(_) => Type::Dyn,
        },
        Template::List(items) => Type::list(Type::union(items.iter().map(|t| template_type(model, types, place, t)))),
        Template::Object(fields) => Type::object(
            fields.iter().map(|(k, t)| (k.clone(), Field::required(template_type(model, types, place, t)))),
        ),
    }
}

//! JSON Schema (2020-12), compiled once. The `jsonschema` crate validates; this module sets its
//! options and error messages, and tries the fast validator in `plain` first.

mod error;
mod misfit;
mod plain;
mod view;

pub use error::SchemaError;
pub use misfit::{Misfit, MisfitDetails};
pub use view::{Kind, View};

use std::sync::Arc;

use charter_expr::Numbers;
use charter_expr::schema::SchemaNode;
use serde_json::Value as Json;

use plain::Plain;

/// A compiled JSON Schema.
pub struct Schema {
    validator: jsonschema::Validator,
    /// The fast validator, if the schema is plain enough for it.
    plain: Option<Plain>,
    /// The types of the numbers in data that matches.
    numbers: Option<Arc<Numbers>>,
    /// The source of the schema, in which the locations of errors are looked up.
    source: Json,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

/// Upper limit of the schema violations reported.
pub(crate) const MAX_MISFITS: usize = 10;

impl Schema {
    /// Compiles a schema. References must stay inside it; nothing is fetched.
    ///
    /// # Errors
    /// The schema is invalid, or refers to something outside itself.
    pub fn compile(schema: &Json) -> Result<Schema, SchemaError> {
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(schema)
            .map(|validator| Schema {
                validator,
                plain: Plain::compile(schema),
                numbers: Numbers::from_schema(schema).map(Arc::new),
                source: schema.clone(),
            })
            .map_err(|e| SchemaError::of(&e))
    }

    /// The types of the numbers in data that matches, if the schema declares any.
    pub(crate) fn numbers(&self) -> Option<&Arc<Numbers>> {
        self.numbers.as_ref()
    }

    /// Whether the value matches.
    #[must_use]
    pub fn fits(&self, value: &Json) -> bool {
        self.surely_fits(value) || self.validator.is_valid(value)
    }

    /// Whether the data certainly matches, determined in one pass over data in any representation.
    /// If false, [`Schema::fits`] decides.
    #[must_use]
    pub fn surely_fits(&self, data: impl View) -> bool {
        self.plain.as_ref().is_some_and(|plain| plain.fits(data))
    }

    /// Returns why a value does not match: at most ten violations, ordered by position.
    #[must_use]
    pub fn misfits(&self, value: &Json) -> Vec<Misfit> {
        self.misfit_details(value).iter().map(Misfit::from).collect()
    }

    /// Like [`Schema::misfits`], but without messages, as records store it.
    #[must_use]
    pub fn misfit_details(&self, value: &Json) -> Vec<MisfitDetails> {
        let mut all: Vec<MisfitDetails> =
            self.validator.iter_errors(value).take(MAX_MISFITS).map(|e| MisfitDetails::of(&e, &self.source)).collect();
        all.sort_by(|a, b| (&a.at, &a.rule).cmp(&(&b.at, &b.rule)));
        all
    }
}

/// Looks up the part of a schema that the `rule` of a violation points to, following `$ref` within
/// the schema.
pub(crate) fn lookup<'s>(schema: &'s Json, path: &str) -> Option<&'s Json> {
    let mut at = schema;
    for part in path.split('/').skip(1) {
        at = if part == "$ref" {
            SchemaNode::within(schema, at).target()?.json()
        } else {
            match at {
                Json::Array(list) => list.get(part.parse::<usize>().ok()?)?,
                _ => at.get(charter_expr::pointer::unescape(part).as_ref())?,
            }
        };
    }
    Some(at)
}

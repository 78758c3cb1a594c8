//! JSON Schema (2020-12), compiled once to a list of nodes and decided by a walk over the data that
//! fuel limits. The crate `jsonschema` is the oracle of the tests.

mod compile;
mod error;
mod evaluated;
mod explain;
mod format;
mod misfit;
mod node;
mod number;
mod object;
mod pattern;
mod same;
mod sample;
mod view;
mod walk;

pub use error::{SchemaError, TooCostly};
pub use misfit::{Misfit, MisfitDetails};
pub use number::ExactNumber;
pub use sample::example_text;
pub use view::{Kind, View};

use std::sync::Arc;

use charter_expr::schema::SchemaNode;
use charter_expr::{Fuel, Numbers};
use serde_json::Value as Json;

use node::Node;
use walk::Walk;

/// A compiled JSON Schema.
pub struct Schema {
    nodes: Vec<Node>,
    /// The types of the numbers in data that matches.
    numbers: Option<Arc<Numbers>>,
    /// The source of the schema, in which the limits of violated keywords are looked up.
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
    /// The fuel for checking a value for which nothing else limits it.
    pub const FUEL: u64 = 1_000_000;

    /// Compiles a schema. References must stay inside it; nothing is fetched.
    ///
    /// # Errors
    /// The schema is invalid, refers to something outside itself, or needs what is not supported:
    /// the error says where, and what to write instead.
    pub fn compile(schema: &Json) -> Result<Schema, SchemaError> {
        let nodes = compile::compile(schema)?;
        Ok(Schema { nodes, numbers: Numbers::from_schema(schema).map(Arc::new), source: schema.clone() })
    }

    /// The types of the numbers in data that matches, if the schema declares any.
    pub(crate) fn numbers(&self) -> Option<&Arc<Numbers>> {
        self.numbers.as_ref()
    }

    /// Whether data in any representation matches. Each subschema that is checked against a value
    /// costs a unit of fuel, and so do 64 bytes that are compared.
    ///
    /// # Errors
    /// The fuel does not suffice.
    pub fn fits(&self, data: impl View, fuel: &mut Fuel) -> Result<bool, TooCostly> {
        Walk::new(&self.nodes, fuel).visit(0, data)
    }

    /// Whether the value matches and can be checked with [`Schema::FUEL`].
    #[must_use]
    pub fn accepts(&self, value: &Json) -> bool {
        self.fits(value, &mut Fuel::new(Schema::FUEL)).unwrap_or(false)
    }

    /// Returns why a value does not match: at most ten violations, ordered by position. There are
    /// fewer, possibly none, if finding them takes more than [`Schema::FUEL`].
    #[must_use]
    pub fn misfits(&self, value: &Json) -> Vec<Misfit> {
        self.misfit_details(value, &mut Fuel::new(Schema::FUEL)).iter().map(Misfit::from).collect()
    }

    /// Like [`Schema::misfits`], but without messages, as records store it.
    #[must_use]
    pub fn misfit_details(&self, value: &Json, fuel: &mut Fuel) -> Vec<MisfitDetails> {
        let mut all = explain::explain(&self.nodes, &self.source, value, MAX_MISFITS, fuel);
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

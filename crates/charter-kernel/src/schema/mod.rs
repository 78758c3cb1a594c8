//! JSON Schema (2020-12), compiled once. The `jsonschema` crate decides; this module fixes options and error texts, and `plain` answers first
//! where it can.

mod plain;

pub use plain::{Kind, View};

use charter_expr::schema::SchemaNode;
use serde_json::Value as Json;

use plain::Plain;

/// A compiled JSON Schema.
pub struct Schema {
    validator: jsonschema::Validator,
    /// The same made for speed, if the schema is plain enough.
    plain: Option<Plain>,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

/// Where a value does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Misfit {
    /// JSON pointer into the value; empty for the whole.
    pub at: String,
    /// JSON pointer into the schema.
    pub rule: String,
    /// What is wrong.
    pub message: String,
}

/// How many misfits are reported at most.
pub(crate) const MAX_MISFITS: usize = 10;

impl Schema {
    /// Compiles a schema. References must stay inside it; nothing is fetched.
    ///
    /// # Errors
    /// Says what is wrong with the schema.
    pub fn compile(schema: &Json) -> Result<Schema, String> {
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(schema)
            .map(|validator| Schema { validator, plain: Plain::compile(schema) })
            .map_err(|e| format!("{e}"))
    }

    /// Does the value fit?
    #[must_use]
    pub fn fits(&self, value: &Json) -> bool {
        self.surely_fits(value) || self.validator.is_valid(value)
    }

    /// Surely fits, told in one walk over data of any form; false: cannot say, ask [`Schema::fits`].
    #[must_use]
    pub fn surely_fits(&self, data: impl View) -> bool {
        self.plain.as_ref().is_some_and(|plain| plain.fits(data))
    }

    /// Why a value does not fit; at most ten, in order of place.
    #[must_use]
    pub fn misfits(&self, value: &Json) -> Vec<Misfit> {
        let mut all: Vec<Misfit> = self
            .validator
            .iter_errors(value)
            .take(MAX_MISFITS)
            .map(|e| Misfit {
                at: e.instance_path().to_string(),
                rule: e.schema_path().to_string(),
                message: shorten(&e.to_string()),
            })
            .collect();
        all.sort_by(|a, b| (&a.at, &a.rule).cmp(&(&b.at, &b.rule)));
        all
    }
}

/// The crate prints the whole offending value into its message; a hostile value must not make a long refusal.
fn shorten(text: &str) -> String {
    const MAX: usize = 200;
    if text.len() <= MAX {
        return text.to_string();
    }
    // Keep the end, where the rule is said.
    let head: String = text.chars().take(60).collect();
    let count = text.chars().count();
    let tail: String = text.chars().skip(count.saturating_sub(120)).collect();
    format!("{head} … {tail}")
}

/// What a misfit's `rule` points to; `$ref` on the way is followed, as far as it stays in the schema.
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

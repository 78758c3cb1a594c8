//! Where a value does not match its schema: as a record holds it, and in words.

use jsonschema::error::ValidationErrorKind as Error;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// Where a value does not match its schema, without a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MisfitDetails {
    /// JSON pointer into the value; empty for the whole.
    pub at: String,
    /// JSON pointer into the schema; it ends with the keyword.
    pub rule: String,
    /// What the keyword demands: a limit, a type, the names of properties, ...
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub limit: Json,
    /// The value, cut if it is long.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub value: Json,
}

/// Where a value does not match its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// JSON pointer into the value; empty for the whole.
    pub at: String,
    /// JSON pointer into the schema.
    pub rule: String,
    /// What is wrong.
    pub message: String,
}

impl From<&MisfitDetails> for Misfit {
    fn from(m: &MisfitDetails) -> Misfit {
        Misfit { at: m.at.clone(), rule: m.rule.clone(), message: m.message() }
    }
}

impl MisfitDetails {
    pub(super) fn of(e: &jsonschema::ValidationError<'_>) -> MisfitDetails {
        MisfitDetails {
            at: e.instance_path().to_string(),
            rule: e.schema_path().to_string(),
            limit: short(limit(e.kind())),
            value: if names_value(e.kind()) { short(e.instance().as_ref().clone()) } else { Json::Null },
        }
    }

    /// The keyword of the schema.
    #[must_use]
    pub fn keyword(&self) -> &str {
        self.rule.rsplit_once('/').map_or(self.rule.as_str(), |(_, keyword)| keyword)
    }

    /// What is wrong, in one sentence.
    #[must_use]
    pub fn message(&self) -> String {
        let (value, limit) = (&self.value, &self.limit);
        match self.keyword() {
            "required" => format!("{limit} is a required property"),
            "type" => match limit {
                Json::Array(types) => format!("{value} is not of types {}", listed(types)),
                _ => format!("{value} is not of type {limit}"),
            },
            "additionalProperties" | "unevaluatedProperties" => {
                format!("unexpected properties: {}", listed(limit.as_array().map_or(&[], Vec::as_slice)))
            }
            "additionalItems" | "unevaluatedItems" => "the list has too many items".to_string(),
            "enum" => match limit {
                Json::Array(options) => format!("{value} is not one of {}", listed(options)),
                _ => format!("{value} is not one of {limit}"),
            },
            "const" => format!("{value} is not {limit}"),
            "minimum" => format!("{value} is less than the minimum of {limit}"),
            "maximum" => format!("{value} is greater than the maximum of {limit}"),
            "exclusiveMinimum" => format!("{value} is less than or equal to the minimum of {limit}"),
            "exclusiveMaximum" => format!("{value} is greater than or equal to the maximum of {limit}"),
            "multipleOf" => format!("{value} is not a multiple of {limit}"),
            "minLength" => format!("{value} is shorter than {} characters", limit),
            "maxLength" => format!("{value} is longer than {} characters", limit),
            "minItems" => format!("the list has fewer than {limit} items"),
            "maxItems" => format!("the list has more than {limit} items"),
            "minProperties" => format!("the object has fewer than {limit} properties"),
            "maxProperties" => format!("the object has more than {limit} properties"),
            "uniqueItems" => "the list has equal items".to_string(),
            "contains" => "no item of the list matches the schema under `contains`".to_string(),
            "pattern" => format!("{value} does not match the pattern {limit}"),
            "format" => format!("{value} is not a {limit}"),
            "anyOf" => format!("{value} matches none of the schemas under `anyOf`"),
            "oneOf" if limit == "several" => format!("{value} matches more than one of the schemas under `oneOf`"),
            "oneOf" => format!("{value} matches none of the schemas under `oneOf`"),
            "not" => format!("{value} matches the schema under `not`"),
            "propertyNames" => format!("the object has a property name that is not allowed: {limit}"),
            keyword => format!("{value} does not match `{keyword}`"),
        }
    }
}

fn listed(items: &[Json]) -> String {
    items.iter().map(Json::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether the sentence says the value. Of an object without a property it does not.
fn names_value(kind: &Error) -> bool {
    !matches!(
        kind,
        Error::Required { .. }
            | Error::AdditionalProperties { .. }
            | Error::UnevaluatedProperties { .. }
            | Error::AdditionalItems { .. }
            | Error::UnevaluatedItems { .. }
            | Error::MinItems { .. }
            | Error::MaxItems { .. }
            | Error::MinProperties { .. }
            | Error::MaxProperties { .. }
            | Error::UniqueItems
            | Error::Contains
            | Error::PropertyNames { .. }
    )
}

fn limit(kind: &Error) -> Json {
    match kind {
        Error::AdditionalProperties { unexpected } | Error::UnevaluatedProperties { unexpected } => json!(unexpected),
        Error::Constant { expected_value } => Json::clone(expected_value),
        Error::Enum { options } => Json::clone(options),
        Error::ExclusiveMaximum { limit }
        | Error::ExclusiveMinimum { limit }
        | Error::Maximum { limit }
        | Error::Minimum { limit } => limit.clone(),
        Error::MaxItems { limit }
        | Error::MaxLength { limit }
        | Error::MaxProperties { limit }
        | Error::MinItems { limit }
        | Error::MinLength { limit }
        | Error::MinProperties { limit } => json!(limit),
        Error::MultipleOf { multiple_of } => json!(multiple_of),
        Error::Format { format } => json!(format),
        Error::Pattern { pattern } => json!(pattern),
        Error::Required { property } => property.clone(),
        Error::PropertyNames { error } => error.instance().as_ref().clone(),
        Error::OneOfMultipleValid { .. } => json!("several"),
        Error::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(ty) => json!(ty.to_string()),
            jsonschema::error::TypeKind::Multiple(types) => types.iter().map(|ty| json!(ty.to_string())).collect(),
        },
        _ => Json::Null,
    }
}

/// A hostile value must not make a large refusal.
fn short(value: Json) -> Json {
    const MAX: usize = 100;
    let cut = |text: &str| Json::String(format!("{}…", text.chars().take(MAX).collect::<String>()));
    match &value {
        Json::String(s) if s.chars().count() > MAX => cut(s),
        Json::Array(_) | Json::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX { cut(&text) } else { value }
        }
        _ => value,
    }
}

//! The violations that the crate `jsonschema` finds, in our form.

use charter_kernel::MisfitDetails;
use jsonschema::error::{TypeKind, ValidationErrorKind as Error};
use serde_json::{Value as Json, json};

/// Compiles a schema with the options that charters have.
pub(crate) fn compile(schema: &Json) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
    options.build(schema).map_err(|e| e.to_string())
}

/// All violations, ordered by position.
pub(crate) fn misfits(validator: &jsonschema::Validator, schema: &Json, value: &Json) -> Vec<MisfitDetails> {
    let mut all: Vec<MisfitDetails> = validator.iter_errors(value).map(|e| misfit(&e, schema)).collect();
    all.sort_by(|a, b| (&a.at, &a.rule).cmp(&(&b.at, &b.rule)));
    all
}

fn misfit(e: &jsonschema::ValidationError<'_>, schema: &Json) -> MisfitDetails {
    let (at, rule) = (e.instance_path().to_string(), e.schema_path().to_string());
    let (kind, name) = match e.kind() {
        Error::PropertyNames { error } => (error.kind(), error.instance().as_str().map(short_text)),
        // `propertyNames: false` is reported as the schema `false` for the whole object.
        Error::FalseSchema if rule.ends_with("/propertyNames") && !at.ends_with("/propertyNames") => {
            (e.kind(), e.instance().as_object().and_then(|object| object.keys().next()).map(|name| short_text(name)))
        }
        kind => (kind, None),
    };
    let dependent = rule.split('/').rev().take(2).find(|part| matches!(*part, "dependentRequired" | "dependencies"));
    let (keyword, given) = match kind {
        Error::FalseSchema => (Some("false".to_string()), None),
        Error::Required { property } if dependent.is_some() => {
            (Some("dependentRequired".to_string()), trigger(schema, &rule, property, e.instance()))
        }
        _ => (None, None),
    };
    let counted = match kind {
        Error::Contains => schema.pointer(&rule).filter(|limit| limit.is_number()).cloned(),
        _ => None,
    };
    let limit = short(counted.unwrap_or_else(|| limit(kind)));
    let value = if name.is_none() && names_value(kind) { short(e.instance().as_ref().clone()) } else { Json::Null };
    let misfit = json!({"at": at, "rule": rule, "limit": limit, "value": value, "keyword": keyword, "name": name, "given": given});
    serde_json::from_value(misfit).unwrap()
}

fn trigger(schema: &Json, rule: &str, required: &Json, object: &Json) -> Option<String> {
    let keyword = if rule.contains("/dependentRequired") { "/dependentRequired" } else { "/dependencies" };
    let table = schema.pointer(&rule[..rule.rfind(keyword)? + keyword.len()])?.as_object()?;
    let demands = |list: &Json| list.as_array().is_some_and(|list| list.contains(required));
    let given = table.iter().find(|(name, list)| object.get(name.as_str()).is_some() && demands(list));
    given.map(|(name, _)| short_text(name))
}

fn names_value(kind: &Error) -> bool {
    !matches!(
        kind,
        Error::Required { .. }
            | Error::AdditionalProperties { .. }
            | Error::UnevaluatedProperties { .. }
            | Error::UnevaluatedItems { .. }
            | Error::MinItems { .. }
            | Error::MaxItems { .. }
            | Error::MinProperties { .. }
            | Error::MaxProperties { .. }
            | Error::UniqueItems
            | Error::Contains
            | Error::FalseSchema
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
        Error::OneOfMultipleValid { .. } => json!("several"),
        Error::Type { kind: TypeKind::Single(ty) } => json!(ty.to_string()),
        Error::Type { kind: TypeKind::Multiple(types) } => types.iter().map(|ty| json!(ty.to_string())).collect(),
        _ => Json::Null,
    }
}

fn short(value: Json) -> Json {
    let text = value.to_string();
    match &value {
        Json::String(s) => short_text(s).into(),
        Json::Array(_) | Json::Object(_) if text.len() > 100 => cut(&text).into(),
        _ => value,
    }
}

fn short_text(text: &str) -> String {
    if text.chars().count() > 100 { cut(text) } else { text.to_string() }
}

fn cut(text: &str) -> String {
    format!("{}…", text.chars().take(100).collect::<String>())
}

//! The input of a run that starts: what is wrong with it, and what the charter needs.

use charter_kernel::{Code, Envelope, Machine, Schema};
use charter_scenario::example;
use serde_json::{Map, Value as Json};

use super::hint::typed_as;
use super::{Args, follow};
use crate::io::Failure;
use crate::journal::text::{clean, further, quoted, short_text};
use crate::program;

/// Maximum number of fields that are listed, and length of their types, in characters.
const MAX_FIELDS: usize = 20;
const MAX_TYPE: usize = 80;

/// Validates the input before the journal file is created.
pub(super) fn check(machine: &Machine, input: &Json, args: &Args) -> Result<(), Failure> {
    let start = Envelope::start(input.clone(), args.who.principal(), follow::now());
    let Err(refusal) = machine.start("run", &start) else {
        return Ok(());
    };
    if refusal.code != Code::Schema {
        return Ok(());
    }
    let explanation = machine.explain(None, &start, &refusal);
    let mut message = explanation.message.clone();
    for line in further(&explanation.misfits) {
        message.push('\n');
        message.push_str(&line);
    }
    let Some(schema) = &machine.definition().root.input else {
        return Err(Failure::new(message));
    };
    Err(Failure::with_help(message, help(schema, args)))
}

/// Says which fields a charter needs, and prints a command with them.
fn help(schema: &Json, args: &Args) -> String {
    let command = format!("{} run {}", program::name(), quoted(args.charter.as_deref().unwrap_or_default()));
    let run = args.run.as_ref().map_or_else(String::new, |run| format!(" --run {}", quoted(run)));
    let needs = match needed(schema) {
        fields if fields.is_empty() => String::new(),
        fields => format!("the charter needs {}\n", fields.join(", ")),
    };
    match example(schema) {
        Some(input) => format!("{needs}e.g. {command} --input {}{run}{}", quoted(&input.to_string()), args.db.option()),
        None => format!("{needs}{command} --input JSON{run}{}", args.db.option()),
    }
}

/// The last example of the schema that it accepts, or data that is made for it.
fn example(schema: &Json) -> Option<Json> {
    let compiled = Schema::compile(schema).ok()?;
    let examples = schema.get("examples").and_then(Json::as_array).into_iter().flatten();
    let written = examples.rev().find(|example| compiled.accepts(example)).cloned();
    let made = || Some(example::find(Some(schema), None)).filter(|made| made.fits).map(|made| made.data);
    written.or_else(made)
}

/// The required fields with their types: `amount` (number).
fn needed(schema: &Json) -> Vec<String> {
    let names = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    let empty = Map::new();
    let fields = schema.get("properties").and_then(Json::as_object).unwrap_or(&empty);
    let field = |name: &str| {
        let name_of = |field: &Json| {
            let values =
                field.get("enum").map(|values| format!("one of {}", short_text(&values.to_string(), MAX_TYPE)));
            values.or_else(|| field.get("type")?.as_str().map(|kind| typed_as(kind, field)))
        };
        match fields.get(name).and_then(name_of) {
            Some(kind) => format!("`{}` ({kind})", clean(name)),
            None => format!("`{}`", clean(name)),
        }
    };
    names.take(MAX_FIELDS).map(field).collect()
}

//! `docs/language.md` and `docs/scenarios.md` describe every key of the language and no other, and
//! their examples use every key.

use std::collections::{BTreeMap, BTreeSet};

use charter_format::source::{Syntax, parse};
use charter_format::{json_schema, scenario_json_schema};
use charter_kernel::Code;
use serde_json::Value as Json;

const LANGUAGE: &str = include_str!("../../../../docs/language.md");
const SCENARIOS: &str = include_str!("../../../../docs/scenarios.md");

/// Keys without an example: a failure is refused only if the charter cannot handle it.
const WITHOUT_EXAMPLE: &[(&str, &str)] = &[("refused", "error")];

/// A row of a table that describes keys.
struct Row {
    /// The objects that have the keys, by their names in the schema.
    objects: Vec<String>,
    keys: Vec<String>,
    /// The third column of tables that have a column for defaults.
    default: Option<String>,
    line: String,
}

/// Returns the words between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the rows of the tables below a comment `<!-- MARK: NAMES -->`, without header and
/// separator, with the names.
fn tables<'p>(page: &'p str, mark: &str) -> Vec<(&'p str, Vec<&'p str>)> {
    let begin = format!("<!-- {mark}: ");
    let parts = page.split(begin.as_str()).skip(1);
    let table = |part: &'p str| {
        let (names, rest) = part.split_once(" -->\n").unwrap();
        (names, rest.lines().take_while(|line| line.starts_with('|')).collect())
    };
    parts.map(table).collect()
}

fn rows(page: &str) -> Vec<Row> {
    let mut found = Vec::new();
    for (names, lines) in tables(page, "keys") {
        let has_default = lines[0].contains("| default |");
        let column = if lines[0].contains("| value |") { 3 } else { 2 };
        for line in &lines[2..] {
            let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
            found.push(Row {
                objects: names.split(' ').map(str::to_owned).collect(),
                keys: quoted(cells[0]),
                default: has_default.then(|| cells[column - 1].to_owned()),
                line: (*line).to_owned(),
            });
        }
    }
    found
}

/// The objects of a schema with known keys, by name; `root` is the name of the document.
fn objects<'s>(schema: &'s Json, root: &'s str) -> BTreeMap<&'s str, &'s Json> {
    let defs = schema["$defs"].as_object().unwrap().iter().map(|(name, def)| (name.as_str(), def));
    defs.chain([(root, schema)]).collect()
}

fn described(page: &str, schema: &Json, root: &str) {
    let objects = objects(schema, root);
    let mut missing: BTreeSet<(String, String)> = BTreeSet::new();
    for (name, object) in &objects {
        missing.extend(object["properties"].as_object().unwrap().keys().map(|k| ((*name).to_owned(), k.clone())));
    }
    for row in rows(page) {
        assert!(!row.keys.is_empty(), "no key: {}", row.line);
        for (object, key) in row.objects.iter().flat_map(|o| row.keys.iter().map(move |k| (o, k))) {
            assert!(
                missing.remove(&(object.clone(), key.clone())),
                "`{object}` has no key `{key}`, or two rows describe it: {}",
                row.line
            );
            let of = objects[object.as_str()];
            let required = of["required"].as_array().is_some_and(|list| list.iter().any(|k| k == key));
            let says = row.default.as_deref() == Some("required");
            assert_eq!(says, required && row.default.is_some(), "`{object}.{key}`: {}", row.line);
            agrees(&of["properties"][key], page, &row.line);
        }
    }
    assert!(missing.is_empty(), "not described: {missing:?}");
}

/// The row names the default of the schema, and the page all of its words.
fn agrees(key: &Json, page: &str, row: &str) {
    let about = key["description"].as_str().unwrap();
    if let Some((_, rest)) = about.split_once("(default ") {
        let default = rest.split([')', ';', ':', ',']).next().unwrap().trim_matches('`');
        assert!(default.contains(' ') || row.contains(default), "default `{default}`: {row}");
    }
    for word in key["enum"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        assert!(page.contains(&format!("`{word}`")) || LANGUAGE.contains(&format!("`{word}`")), "`{word}`: {row}");
    }
}

#[test]
fn every_key_of_a_charter_is_described_and_every_described_key_exists() {
    described(LANGUAGE, &json_schema(), "charter");
}

#[test]
fn every_key_of_a_scenario_is_described_and_every_described_key_exists() {
    described(SCENARIOS, &scenario_json_schema(), "scenarioFile");
}

/// Collects the keys that a value uses, with the objects of the schema that have them.
struct Used<'s> {
    schema: &'s Json,
    root: &'s str,
    keys: BTreeSet<(String, String)>,
}

impl<'s> Used<'s> {
    fn resolve(&self, node: &'s Json) -> (Option<&'s str>, &'s Json) {
        match node["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
            Some(name) => (Some(name), &self.schema["$defs"][name]),
            None => (std::ptr::eq(node, self.schema).then_some(self.root), node),
        }
    }

    fn walk(&mut self, value: &Json, node: &'s Json) {
        if let Some(any) = node["anyOf"].as_array() {
            return any.iter().for_each(|form| self.walk(value, form));
        }
        let (name, node) = self.resolve(node);
        if let (Some(items), Some(list)) = (node.get("items"), value.as_array()) {
            list.iter().for_each(|item| self.walk(item, items));
        }
        let Some(map) = value.as_object() else { return };
        let known = node["properties"].as_object();
        let closed = node["additionalProperties"] == Json::Bool(false);
        if closed && map.keys().any(|key| !known.is_some_and(|known| known.contains_key(key))) {
            return; // Another form of `anyOf`.
        }
        for (key, value) in map {
            match known.and_then(|known| known.get(key)) {
                Some(form) => {
                    self.keys.extend(name.map(|name| (name.to_owned(), key.clone())));
                    self.walk(value, form);
                }
                None if node["additionalProperties"].is_object() => self.walk(value, &node["additionalProperties"]),
                None => {}
            }
        }
    }
}

/// Asserts that the examples of a page that `take` accepts match the schema and use its keys.
fn exemplified(page: &str, schema: &Json, root: &str, take: fn(&Json) -> bool) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let mut used = Used { schema, root, keys: BTreeSet::new() };
    for block in page.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let value = parse(text, "example.yaml", Syntax::Auto).unwrap_or_else(|e| panic!("{e:?}\n{text}")).root.json();
        if take(&value) {
            assert!(validator.is_valid(&value), "{:?}\n{text}", validator.iter_errors(&value).next());
            used.walk(&value, schema);
        }
    }
    let (objects, mut missing) = (objects(schema, root), Vec::new());
    for row in rows(page) {
        for key in &row.keys {
            let about = objects[row.objects[0].as_str()]["properties"][key]["description"].as_str().unwrap();
            let import = about.contains("(imports)") || about.contains("(SCXML)");
            // Objects of the same row share the key.
            let shown = row.objects.iter().any(|object| used.keys.contains(&(object.clone(), key.clone())));
            let without = row.objects.iter().any(|object| WITHOUT_EXAMPLE.contains(&(object, key)));
            assert!(!(shown && without), "`{}` has an example", row.line);
            if !import && !shown && !without {
                missing.push(row.line.clone());
            }
        }
    }
    assert!(missing.is_empty(), "not in any example:\n{}", missing.join("\n"));
}

/// Fragments of charters on other pages; those of `actors.md` are tested with the host.
#[test]
fn the_examples_of_other_pages_have_known_keys() {
    let pages = [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/cli.md"),
        include_str!("../../../../docs/models.md"),
        include_str!("../../../../docs/xstate.md"),
    ];
    let (schema, mut count) = (json_schema(), 0);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for block in pages.iter().flat_map(|page| page.split("```yaml\n").skip(1)) {
        let text = block.split("```").next().unwrap();
        let head = if text.starts_with("charter: 1") { "" } else { "charter: 1\nid: page\n" };
        let parsed = parse(&format!("{head}{text}"), "example.yaml", Syntax::Auto);
        let value = parsed.unwrap_or_else(|e| panic!("{e:?}\n{text}")).root.json();
        assert!(validator.is_valid(&value), "{:?}\n{text}", validator.iter_errors(&value).next());
        count += 1;
    }
    assert!(count > 4);
}

fn is_charter(example: &Json) -> bool {
    example["charter"] == 1
}

#[test]
fn the_examples_use_every_key_of_a_charter() {
    exemplified(LANGUAGE, &json_schema(), "charter", is_charter);
}

#[test]
fn the_examples_use_every_key_of_a_scenario() {
    exemplified(SCENARIOS, &scenario_json_schema(), "scenarioFile", |example| !is_charter(example));
}

/// Returns the names in the first column of the table that is marked with `names: MARK`.
fn names(mark: &str) -> Vec<String> {
    let found: Vec<_> = tables(LANGUAGE, "names").into_iter().filter(|(name, _)| *name == mark).collect();
    assert_eq!(found.len(), 1, "{mark}");
    found[0].1[2..].iter().flat_map(|line| quoted(line.split(" | ").next().unwrap())).collect()
}

#[test]
fn the_names_that_expressions_can_read_are_those_of_the_kernel() {
    let (mut described, mut roots) = (names("roots"), charter_kernel::ROOTS.map(str::to_owned).to_vec());
    described.sort();
    roots.sort();
    assert_eq!(described, roots);
}

#[test]
fn the_codes_are_those_of_the_kernel_in_their_order() {
    assert_eq!(names("codes"), Code::ALL.map(|code| code.word().to_owned()));
}

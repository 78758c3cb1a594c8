//! The schemas of unknown values, with their parts: each is read once, and references are followed.

use std::cell::RefCell;
use std::rc::Rc;

use charter_expr::schema::SchemaNode;
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::domain::{ANY, INT, LIST, MAP, OTHER, STRING, Values};

/// A schema by its number in [`Values::schema`].
struct Known {
    /// The whole schema, to which references refer.
    root: Rc<Json>,
    json: Json,
}

/// What a schema says about a field of a map.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) values: Values,
    /// Every map has it.
    pub(super) required: bool,
    /// No map has it.
    pub(super) absent: bool,
}

/// Fields by the number of the schema and their names.
type Fields = FxHashMap<(u32, Rc<str>), Rc<Field>>;

/// The schemas that were met in a search.
#[derive(Default)]
pub(super) struct Schemas {
    known: RefCell<Vec<Known>>,
    fields: RefCell<Fields>,
    items: RefCell<FxHashMap<u32, Values>>,
}

/// Any value that data can be.
fn anything() -> Values {
    Values::of(ANY & !OTHER)
}

impl Schemas {
    /// The values that match a whole schema.
    pub(super) fn values(&self, schema: &Json) -> Values {
        self.part(&Rc::new(schema.clone()), schema)
    }

    /// The values that match a part of a schema. Beside a reference, the other keywords are left
    /// out, which excludes less.
    fn part(&self, root: &Rc<Json>, part: &Json) -> Values {
        let json = match names_resources(root) {
            true => part,
            false => SchemaNode::within(root, part).resolved().json(),
        };
        let mut known = self.known.borrow_mut();
        let number = u32::try_from(known.len()).unwrap_or(u32::MAX);
        known.push(Known { root: root.clone(), json: json.clone() });
        Values::matching(json, number)
    }

    fn get(&self, number: u32) -> Option<(Rc<Json>, Json)> {
        self.known.borrow().get(number as usize).map(|known| (known.root.clone(), known.json.clone()))
    }

    /// A field of the maps that match a schema; `None`: of any map.
    pub(super) fn field(&self, schema: Option<u32>, name: &str) -> Rc<Field> {
        let any = || Rc::new(Field { values: anything(), required: false, absent: false });
        let Some(number) = schema else { return any() };
        let key = (number, Rc::from(name));
        if let Some(known) = self.fields.borrow().get(&key) {
            return known.clone();
        }
        let Some((root, schema)) = self.get(number) else { return any() };
        let part = schema.get("properties").and_then(|p| p.get(name));
        let closed =
            schema.get("additionalProperties") == Some(&Json::Bool(false)) && schema.get("patternProperties").is_none();
        let required = SchemaNode::new(&schema).required().any(|required| required == name);
        let values = part.map_or_else(anything, |part| self.part(&root, part));
        let field = Rc::new(Field { values, required, absent: part.is_none() && closed });
        self.fields.borrow_mut().insert(key, field.clone());
        field
    }

    /// The items of the lists that match a schema.
    pub(super) fn items(&self, schema: Option<u32>) -> Values {
        let Some(number) = schema else { return anything() };
        if let Some(known) = self.items.borrow().get(&number) {
            return known.clone();
        }
        let values = self.get(number).and_then(|(root, schema)| {
            // A list whose first items have schemas of their own has no common one.
            let items = schema.get("items").filter(|items| items.is_object() && schema.get("prefixItems").is_none());
            items.map(|items| self.part(&root, items))
        });
        let values = values.unwrap_or_else(anything);
        self.items.borrow_mut().insert(number, values.clone());
        values
    }

    /// The sizes of strings, lists or maps.
    pub(super) fn size(&self, values: &Values) -> Values {
        let (least, most) = match values.types {
            STRING => ("minLength", "maxLength"),
            LIST => ("minItems", "maxItems"),
            MAP => ("minProperties", "maxProperties"),
            _ => return Values::between(INT, 0.0, f64::INFINITY),
        };
        let known = self.known.borrow();
        let schema = values.schema.and_then(|number| known.get(number as usize));
        let bound = |key: &str| schema.and_then(|known| known.json.get(key)).and_then(Json::as_f64);
        Values::between(INT, bound(least).unwrap_or(0.0), bound(most).unwrap_or(f64::INFINITY))
    }
}

/// Whether a part of a schema is a resource of its own, to which the references in it refer.
fn names_resources(schema: &Json) -> bool {
    match schema {
        Json::Object(map) => map.contains_key("$id") || map.values().any(names_resources),
        Json::Array(items) => items.iter().any(names_resources),
        _ => false,
    }
}

//! JSON that keeps the order of its keys: the order of states and transitions in a charter matters,
//! but `serde_json` sorts keys.

use indexmap::IndexMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

/// A JSON value whose objects keep the order of their keys.
pub enum OrderedJson {
    /// A value in which the order of keys does not matter.
    Json(Json),
    /// A list.
    List(Vec<OrderedJson>),
    /// An object.
    Object(OrderedObject),
}

/// An object with its keys in order of insertion.
#[derive(Default)]
pub struct OrderedObject(Vec<(String, OrderedJson)>);

impl OrderedObject {
    /// Appends an entry. Keys are not checked for duplicates.
    pub fn put(&mut self, key: &str, value: impl Into<OrderedJson>) {
        self.0.push((key.to_owned(), value.into()));
    }

    /// Appends an entry if there is a value.
    pub fn put_some<T: Into<OrderedJson>>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Appends a map unless it is empty.
    pub fn put_map<T>(&mut self, key: &str, map: &IndexMap<String, T>, mut write: impl FnMut(&T) -> OrderedJson) {
        if !map.is_empty() {
            let entries: OrderedObject = map.iter().map(|(key, value)| (key.clone(), write(value))).collect();
            self.put(key, entries);
        }
    }

    /// Appends a list unless it is empty.
    pub fn put_list<T>(&mut self, key: &str, list: &[T], write: impl FnMut(&T) -> OrderedJson) {
        if !list.is_empty() {
            self.put(key, OrderedJson::List(list.iter().map(write).collect()));
        }
    }

    /// Appends names as a string or a list, or nothing if there are none.
    pub fn put_names(&mut self, key: &str, names: &[String]) {
        match names {
            [] => {}
            [name] => self.put(key, name.as_str()),
            names => self.put(key, names.to_vec()),
        }
    }

    /// Appends the entries of another object.
    pub fn append(&mut self, rest: OrderedObject) {
        self.0.extend(rest.0);
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<(String, OrderedJson)> for OrderedObject {
    fn from_iter<I: IntoIterator<Item = (String, OrderedJson)>>(entries: I) -> Self {
        OrderedObject(entries.into_iter().collect())
    }
}

impl From<OrderedObject> for OrderedJson {
    fn from(object: OrderedObject) -> OrderedJson {
        OrderedJson::Object(object)
    }
}

macro_rules! from_json {
    ($($kind:ty),+) => {
        $(impl From<$kind> for OrderedJson {
            fn from(value: $kind) -> OrderedJson {
                OrderedJson::Json(value.into())
            }
        })+
    };
}
from_json!(&str, String, bool, u32, u64, Json, Vec<String>);

impl Serialize for OrderedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrderedJson::Json(value) => value.serialize(serializer),
            OrderedJson::List(items) => serializer.collect_seq(items),
            OrderedJson::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.0.len()))?;
                for (key, value) in &object.0 {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

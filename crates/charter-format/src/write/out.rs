//! JSON that keeps the order of its keys: in a charter their order is meaning.

use indexmap::IndexMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

pub(crate) enum Out {
    Json(Json),
    List(Vec<Out>),
    Object(Object),
}

#[derive(Default)]
pub(crate) struct Object(Vec<(String, Out)>);

impl Object {
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Out>) {
        self.0.push((key.to_owned(), value.into()));
    }

    pub(crate) fn maybe<T: Into<Out>>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// A map, unless it is empty.
    pub(crate) fn map<T>(&mut self, key: &str, map: &IndexMap<String, T>, mut write: impl FnMut(&T) -> Out) {
        if !map.is_empty() {
            let entries: Object = map.iter().map(|(key, value)| (key.clone(), write(value))).collect();
            self.put(key, entries);
        }
    }

    /// A list, unless it is empty.
    pub(crate) fn list<T>(&mut self, key: &str, list: &[T], write: impl FnMut(&T) -> Out) {
        if !list.is_empty() {
            self.put(key, Out::List(list.iter().map(write).collect()));
        }
    }

    /// Names: nothing, one, or a list.
    pub(crate) fn names(&mut self, key: &str, names: &[String]) {
        match names {
            [] => {}
            [name] => self.put(key, name.as_str()),
            names => self.put(key, names.to_vec()),
        }
    }

    pub(crate) fn append(&mut self, rest: Object) {
        self.0.extend(rest.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<(String, Out)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Out)>>(entries: I) -> Self {
        Object(entries.into_iter().collect())
    }
}

impl From<Object> for Out {
    fn from(object: Object) -> Out {
        Out::Object(object)
    }
}

/// Whatever JSON can be made of.
macro_rules! out_from {
    ($($kind:ty),+) => {
        $(impl From<$kind> for Out {
            fn from(value: $kind) -> Out {
                Out::Json(value.into())
            }
        })+
    };
}
out_from!(&str, String, bool, u32, u64, Json, Vec<String>);

impl Serialize for Out {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Out::Json(value) => value.serialize(serializer),
            Out::List(items) => serializer.collect_seq(items),
            Out::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.0.len()))?;
                for (key, value) in &object.0 {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

//! Compiles a schema to a list of nodes, without recursion: hostile schemas nest deeply.

mod graph;
mod keywords;
mod resources;
mod values;

use std::collections::HashMap;

use serde_json::Value as Json;

use super::error::SchemaError;
use super::node::{Id, Node};
use resources::Resources;

/// Upper limit of the subschemas of a schema.
const MAX_NODES: usize = 100_000;
/// Upper limit of the nesting of the JSON of a schema, the same as for data.
const MAX_DEPTH: usize = charter_expr::MAX_DATA_DEPTH;

/// Compiles a schema; the first node is the whole schema.
pub(super) fn compile(schema: &Json) -> Result<Vec<Node>, SchemaError> {
    check_depth(schema)?;
    let mut compiler =
        Compiler { resources: Resources::of(schema)?, nodes: Vec::new(), known: HashMap::new(), waiting: Vec::new() };
    compiler.schema(schema, String::new(), 0)?;
    while let Some(task) = compiler.waiting.pop() {
        let node = compiler.node(&task)?;
        if let Some(place) = compiler.nodes.get_mut(task.id as usize) {
            *place = node;
        }
    }
    graph::finish(&mut compiler.nodes)?;
    Ok(compiler.nodes)
}

/// A schema that has an index, but is not compiled yet.
struct Task<'s> {
    id: Id,
    json: &'s Json,
    path: String,
    resource: usize,
}

struct Compiler<'s> {
    resources: Resources<'s>,
    nodes: Vec<Node>,
    /// By the address of the source, so that a schema with many references is compiled once.
    known: HashMap<*const Json, Id>,
    waiting: Vec<Task<'s>>,
}

impl<'s> Compiler<'s> {
    /// Returns the index of a schema, which is compiled later.
    fn schema(&mut self, json: &'s Json, path: String, resource: usize) -> Result<Id, SchemaError> {
        if let Some(id) = self.known.get(&std::ptr::from_ref(json)) {
            return Ok(*id);
        }
        let id = Id::try_from(self.nodes.len()).unwrap_or(Id::MAX);
        if self.nodes.len() >= MAX_NODES {
            return Err(SchemaError::invalid(&path, format!("the schema has more than {MAX_NODES} subschemas")));
        }
        self.nodes.push(Node::default());
        self.known.insert(std::ptr::from_ref(json), id);
        let resource = self.resources.within(json, resource);
        self.waiting.push(Task { id, json, path, resource });
        Ok(id)
    }

    /// Returns the index of the schema that a reference names.
    fn reference(&mut self, task: &Task<'s>, keyword: &str, reference: &str) -> Result<Id, SchemaError> {
        let target = self.resources.target(task.resource, keyword, reference, &task.path)?;
        self.schema(target.json, target.path, target.resource)
    }
}

fn check_depth(schema: &Json) -> Result<(), SchemaError> {
    let mut level = vec![schema];
    for _ in 0..MAX_DEPTH {
        let mut next = Vec::new();
        for value in level {
            match value {
                Json::Array(list) => next.extend(list),
                Json::Object(map) => next.extend(map.values()),
                _ => {}
            }
        }
        if next.is_empty() {
            return Ok(());
        }
        level = next;
    }
    let message = format!("the schema nests deeper than {MAX_DEPTH}; move parts of it to `$defs` and use `$ref`");
    Err(SchemaError::invalid("", message))
}

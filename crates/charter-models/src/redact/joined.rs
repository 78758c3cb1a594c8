//! Finds the strings of a stream that belong together: servers send a text in pieces, and so may a
//! secret be.

use std::collections::{BTreeMap, BTreeSet};

use charter_actors::Secrets;
use serde_json::Value as Json;

/// Keys under which servers put the text of a model.
const TEXTS: [&str; 10] = [
    "arguments",
    "content",
    "partial_json",
    "reasoning",
    "reasoning_content",
    "refusal",
    "signature",
    "text",
    "thinking",
    "thoughtSignature",
];

/// Removes the secrets from the strings of the chunks of a stream. Each way to join strings is
/// tried with the strings as they were sent, so that what one finds does not hide a secret from
/// another.
pub(super) fn redact(secrets: &Secrets, chunks: &mut [Json]) {
    let mut found = Found::default();
    for chunk in chunks.iter_mut() {
        let at = Place { block: block_of(chunk), ..Place::default() };
        found.collect(chunk, &at);
    }
    let groups: BTreeSet<Vec<usize>> =
        found.groups.into_values().map(|pieces| pieces.into_values().collect()).collect();
    secrets.redact_pieces(&mut found.texts, &groups);
}

/// Where a string is in its chunk.
#[derive(Debug, Clone, Default)]
struct Place {
    /// The path, with and without the indexes of lists, and with what tells blocks apart.
    path: String,
    names: String,
    blocks: String,
    /// The index of the block that the chunk belongs to, as its server counts.
    block: u64,
    key: String,
}

/// Which strings are the pieces of one text: those at the same place of each chunk, of the same
/// block, under the same names; or under the same last name, at the beginning of a block and in
/// what is added to it, in the order in which they were sent or in that of the blocks.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Belong {
    Place(String),
    Block(String),
    Names(String),
    Key(String),
    KeyOfBlock(String, u64),
    KeyByBlock(String),
    Text,
    TextOfBlock(u64),
    TextByBlock,
}

#[derive(Default)]
struct Found<'j> {
    texts: Vec<&'j mut String>,
    /// The pieces of each text, by their order.
    groups: BTreeMap<Belong, BTreeMap<(u64, usize), usize>>,
}

impl<'j> Found<'j> {
    fn collect(&mut self, value: &'j mut Json, at: &Place) {
        match value {
            Json::String(text) => self.add(text, at),
            Json::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = format!("{}/{index}", at.path);
                    self.collect(item, &Place { path, ..at.clone() });
                }
            }
            Json::Object(map) => {
                let block = ["index", "thought"].map(|key| map.get(key).map(Json::to_string).unwrap_or_default());
                let block = block.join("#");
                for (key, item) in map.iter_mut() {
                    let at = Place {
                        path: format!("{}/{key}", at.path),
                        names: format!("{}/{key}", at.names),
                        blocks: format!("{}#{block}/{key}", at.blocks),
                        block: at.block,
                        key: key.clone(),
                    };
                    self.collect(item, &at);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn add(&mut self, text: &'j mut String, at: &Place) {
        let (index, key, block) = (self.texts.len(), || at.key.clone(), at.block);
        self.texts.push(text);
        let mut put = |group: Belong, order: u64| {
            self.groups.entry(group).or_default().insert((order, index), index);
        };
        put(Belong::Place(at.path.clone()), 0);
        put(Belong::Block(at.blocks.clone()), 0);
        put(Belong::Names(at.names.clone()), 0);
        put(Belong::Key(key()), 0);
        put(Belong::KeyOfBlock(key(), block), 0);
        put(Belong::KeyByBlock(key()), block);
        if TEXTS.contains(&at.key.as_str()) {
            put(Belong::Text, 0);
            put(Belong::TextOfBlock(block), 0);
            put(Belong::TextByBlock, block);
        }
    }
}

/// The index of the block to which a chunk belongs; without one, it is the first.
fn block_of(chunk: &Json) -> u64 {
    chunk.get("index").and_then(Json::as_u64).unwrap_or_default()
}

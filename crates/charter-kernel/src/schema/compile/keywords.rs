//! Reads the keywords of one schema.

use charter_expr::pointer;
use serde_json::{Map, Value as Json};

use super::super::error::SchemaError;
use super::super::format::Format;
use super::super::node::{Condition, Contains, Dependent, Id, ListRule, Mixed, Node, NumberRule};
use super::super::node::{ObjectName, ObjectRule, TextRule};
use super::super::number::{Decimal, ExactNumber};
use super::super::pattern::Matcher;
use super::values::kind;
use super::{Compiler, Task};

/// The form of a keyword's value, as far as it holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Schema,
    List,
    Map,
    Other,
}

pub(super) fn form(keyword: &str) -> Form {
    match keyword {
        "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Form::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Form::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" | "properties" => Form::Map,
        _ => Form::Other,
    }
}

/// The names that the keywords of an object mention.
#[derive(Default)]
struct Names<'s>(Vec<(&'s str, Option<Id>)>);

impl<'s> Names<'s> {
    fn new(map: &'s Map<String, Json>) -> Names<'s> {
        let texts = |list: &'s Json| list.as_array().into_iter().flatten().filter_map(Json::as_str);
        let mut names: Vec<&str> = map.get("required").into_iter().flat_map(texts).collect();
        for keyword in ["properties", "dependentRequired", "dependentSchemas", "dependencies"] {
            for (name, value) in map.get(keyword).and_then(Json::as_object).into_iter().flatten() {
                names.push(name);
                if keyword != "properties" {
                    names.extend(texts(value));
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        Names(names.into_iter().map(|name| (name, None)).collect())
    }

    fn place(&self, name: &str) -> usize {
        self.0.binary_search_by(|(known, _)| (*known).cmp(name)).unwrap_or(usize::MAX)
    }
}

/// Reads one schema.
pub(super) struct Reader<'c, 's, 't> {
    compiler: &'c mut Compiler<'s>,
    task: &'t Task<'s>,
    map: &'s Map<String, Json>,
    names: Names<'s>,
    node: Node,
}

impl<'s> Compiler<'s> {
    pub(super) fn node(&mut self, task: &Task<'s>) -> Result<Node, SchemaError> {
        let node = Node { path: task.path.as_str().into(), ..Node::default() };
        let map = match task.json {
            Json::Bool(always) => return Ok(Node { never: !always, ..node }),
            Json::Object(map) => map,
            other => {
                let message = format!("a schema is an object, `true` or `false`, not {}", kind(other));
                return Err(SchemaError::invalid(&task.path, message));
            }
        };
        let mut reader = Reader { compiler: self, task, map, names: Names::new(map), node };
        for (keyword, value) in map {
            reader.keyword(keyword, value)?;
        }
        let names = std::mem::take(&mut reader.names.0);
        if !names.is_empty() {
            reader.object().names = names.into_iter().map(|(name, id)| ObjectName::new(name, id)).collect();
        }
        Ok(reader.node)
    }
}

impl<'s> Reader<'_, 's, '_> {
    pub(super) fn error<T>(&self, keyword: &str, message: String) -> Result<T, SchemaError> {
        Err(SchemaError::invalid(&pointer::join(&self.task.path, keyword), message))
    }

    fn number(&mut self) -> &mut NumberRule {
        self.node.number.get_or_insert_default()
    }
    fn text(&mut self) -> &mut TextRule {
        self.node.text.get_or_insert_default()
    }
    fn list(&mut self) -> &mut ListRule {
        self.node.list.get_or_insert_default()
    }
    fn object(&mut self) -> &mut ObjectRule {
        self.node.object.get_or_insert_default()
    }
    fn mixed(&mut self) -> &mut Mixed {
        self.node.mixed.get_or_insert_default()
    }

    fn keyword(&mut self, keyword: &'s str, value: &'s Json) -> Result<(), SchemaError> {
        match keyword {
            "type" => self.node.kinds = self.kinds(value)?,
            "const" => self.node.constant = Some(Box::new(self.options(keyword, std::slice::from_ref(value))?)),
            "enum" => {
                let list = self.array(keyword, value)?;
                self.node.options = Some(Box::new(self.options(keyword, list)?));
            }
            "minimum" => self.number().minimum = Some(self.a_number(keyword, value)?),
            "maximum" => self.number().maximum = Some(self.a_number(keyword, value)?),
            "exclusiveMinimum" => self.number().above = Some(self.a_number(keyword, value)?),
            "exclusiveMaximum" => self.number().below = Some(self.a_number(keyword, value)?),
            "multipleOf" => {
                let number = self.a_number(keyword, value)?;
                if number.order(ExactNumber::Int(0)).is_le() {
                    return self.error(keyword, format!("`multipleOf` must be greater than 0, not {value}"));
                }
                self.number().multiple_of = Some(Decimal::of(number));
            }
            "minLength" => self.text().shortest = self.size(keyword, value)?,
            "maxLength" => self.text().longest = Some(self.size(keyword, value)?),
            "pattern" => {
                let pattern = self.text_of(keyword, value)?;
                self.text().pattern = Some(self.pattern(keyword, pattern)?);
            }
            "format" => {
                let name = self.text_of(keyword, value)?;
                if let Some(format) = Format::named(name) {
                    self.text().format = Some(format);
                }
            }
            "minItems" => self.list().fewest = self.size(keyword, value)?,
            "maxItems" => self.list().most = Some(self.size(keyword, value)?),
            "uniqueItems" => self.list().unique = self.truth(keyword, value)?,
            "prefixItems" => self.list().first = self.some_schemas(keyword, value)?,
            "items" => self.list().items = Some(self.items(keyword, value)?),
            "unevaluatedItems" => self.list().unevaluated = Some(self.schema(keyword, value)?),
            "contains" => self.contains(keyword, value)?,
            "minContains" | "maxContains" => self.size(keyword, value).map(drop)?,
            "minProperties" => self.object().fewest = self.size(keyword, value)?,
            "maxProperties" => self.object().most = Some(self.size(keyword, value)?),
            "additionalProperties" => self.object().additional = Some(self.schema(keyword, value)?),
            "propertyNames" => self.object().name = Some(self.schema(keyword, value)?),
            "unevaluatedProperties" => self.object().unevaluated = Some(self.schema(keyword, value)?),
            "required" => self.object().required = self.required(keyword, value)?,
            "properties" | "patternProperties" | "dependentRequired" | "dependentSchemas" | "dependencies" => {
                self.properties(keyword, value)?;
            }
            "allOf" => self.mixed().all = self.some_schemas(keyword, value)?,
            "anyOf" => self.mixed().any = self.some_schemas(keyword, value)?,
            "oneOf" => self.mixed().one = self.some_schemas(keyword, value)?,
            "not" => self.mixed().not = Some(self.schema(keyword, value)?),
            "if" => self.condition(keyword, value)?,
            "$ref" | "$dynamicRef" => {
                let target = self.compiler.reference(self.task, keyword, self.text_of(keyword, value)?)?;
                self.mixed().refs.push(target);
            }
            _ => self.annotation(keyword, value)?,
        }
        Ok(())
    }

    /// Keywords without effect on their own. They still have to have the right form.
    fn annotation(&mut self, keyword: &'s str, value: &'s Json) -> Result<(), SchemaError> {
        match keyword {
            "then" | "else" | "contentSchema" => self.schema(keyword, value).map(drop)?,
            "$defs" | "definitions" => {
                for (name, schema) in self.map_of(keyword, value)? {
                    self.schema_at(&pointer::join(keyword, name), schema)?;
                }
            }
            "title" | "description" | "$comment" | "contentEncoding" | "contentMediaType" => {
                self.text_of(keyword, value)?;
            }
            "deprecated" | "readOnly" | "writeOnly" => self.truth(keyword, value).map(drop)?,
            "examples" => self.array(keyword, value).map(drop)?,
            "$id" => {
                let id = self.text_of(keyword, value)?;
                if id.trim_end_matches('#').contains('#') {
                    return self.error(
                        keyword,
                        format!("`{id}` has a fragment; remove it, and use `$anchor` to name a subschema"),
                    );
                }
            }
            "$anchor" | "$dynamicAnchor" => {
                let name = self.text_of(keyword, value)?;
                let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
                if !fits {
                    return self
                        .error(keyword, format!("invalid anchor `{name}`: use letters, digits, `-`, `_` and `.`"));
                }
            }
            "$schema" => {
                let dialect = self.text_of(keyword, value)?.trim_end_matches('#');
                if !self.task.path.is_empty() && dialect != "https://json-schema.org/draft/2020-12/schema" {
                    return self.error(keyword, format!("`{dialect}` is not supported; write 2020-12"));
                }
            }
            "$recursiveRef" => {
                return self
                    .error(keyword, "`$recursiveRef` is not part of 2020-12; use `$dynamicRef` or `$ref`".into());
            }
            "additionalItems" if self.map.contains_key("prefixItems") => {
                return self.error(keyword, "`additionalItems` is not part of 2020-12; use `items`".into());
            }
            _ => {}
        }
        Ok(())
    }

    fn pattern(&self, keyword: &str, pattern: &str) -> Result<Matcher, SchemaError> {
        Matcher::compile(pattern).or_else(|why| self.error(keyword, why))
    }

    fn schema_at(&mut self, at: &str, value: &'s Json) -> Result<Id, SchemaError> {
        self.compiler.schema(value, format!("{}/{at}", self.task.path), self.task.resource)
    }

    fn schema(&mut self, keyword: &str, value: &'s Json) -> Result<Id, SchemaError> {
        self.schema_at(keyword, value)
    }

    fn schemas(&mut self, keyword: &str, value: &'s Json) -> Result<Vec<Id>, SchemaError> {
        let list = self.array(keyword, value)?;
        list.iter().zip(0usize..).map(|(schema, i)| self.schema_at(&format!("{keyword}/{i}"), schema)).collect()
    }

    fn some_schemas(&mut self, keyword: &str, value: &'s Json) -> Result<Vec<Id>, SchemaError> {
        let schemas = self.schemas(keyword, value)?;
        if schemas.is_empty() {
            return self.error(keyword, format!("`{keyword}` needs at least one schema"));
        }
        Ok(schemas)
    }

    fn items(&mut self, keyword: &str, value: &'s Json) -> Result<Id, SchemaError> {
        if value.is_array() {
            return self.error(keyword, "`items` is one schema in 2020-12; write the list as `prefixItems`".into());
        }
        self.schema(keyword, value)
    }

    fn contains(&mut self, keyword: &str, value: &'s Json) -> Result<(), SchemaError> {
        let size = |keyword: &str| self.map.get(keyword).map(|value| self.size(keyword, value)).transpose();
        let (fewest, most) = (size("minContains")?, size("maxContains")?);
        let item = self.schema(keyword, value)?;
        self.list().contains = Some(Contains { item, fewest, most });
        Ok(())
    }

    fn condition(&mut self, keyword: &str, value: &'s Json) -> Result<(), SchemaError> {
        let map = self.map;
        let test = self.schema(keyword, value)?;
        let then = map.get("then").map(|schema| self.schema("then", schema)).transpose()?;
        let otherwise = map.get("else").map(|schema| self.schema("else", schema)).transpose()?;
        self.mixed().condition = Some(Condition { test, then, otherwise });
        Ok(())
    }

    /// A list of different names, as places.
    fn required(&self, keyword: &str, value: &'s Json) -> Result<Vec<usize>, SchemaError> {
        let mut places = Vec::new();
        for name in self.array(keyword, value)? {
            let Some(name) = name.as_str() else {
                return self.error(keyword, format!("`{keyword}` lists names, not {}", kind(name)));
            };
            places.push(self.names.place(name));
        }
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < places.len() {
            return self.error(keyword, format!("`{keyword}` lists a name twice"));
        }
        Ok(places)
    }

    /// The keywords that are objects by name of property.
    fn properties(&mut self, keyword: &str, value: &'s Json) -> Result<(), SchemaError> {
        for (name, value) in self.map_of(keyword, value)? {
            let at = pointer::join(keyword, name);
            let given = self.names.place(name);
            match keyword {
                "properties" => {
                    let id = self.schema_at(&at, value)?;
                    if let Some((_, place)) = self.names.0.get_mut(given) {
                        *place = Some(id);
                    }
                }
                "patternProperties" => {
                    let matcher = self.pattern(keyword, name)?;
                    let id = self.schema_at(&at, value)?;
                    self.object().patterns.push((matcher, id));
                }
                "dependentRequired" => {
                    let required = self.required(keyword, value)?;
                    let keyword = "dependentRequired";
                    self.object().dependent_required.push(Dependent { given, required, keyword });
                }
                "dependencies" if value.is_array() => {
                    let required = self.required(keyword, value)?;
                    let keyword = "dependencies";
                    self.object().dependent_required.push(Dependent { given, required, keyword });
                }
                _ => {
                    let id = self.schema_at(&at, value)?;
                    self.object().dependent.push((given, id));
                }
            }
        }
        Ok(())
    }
}

//! The members of a request.

use serde_json::{Map, Value as Json};

use super::{Client, ReadError};

/// The members of a request of a client.
pub(super) struct Fields<'a> {
    pub(super) client: Client,
    members: &'a Map<String, Json>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(client: Client, members: &'a Map<String, Json>) -> Fields<'a> {
        Fields { client, members }
    }

    pub(super) fn get(&self, member: &str) -> Option<&'a Json> {
        self.members.get(member).filter(|value| !value.is_null())
    }

    fn missing(&self, member: &'static str, what: &'static str) -> ReadError {
        ReadError::Missing { client: self.client, member, what }
    }

    /// A text that may be missing.
    pub(super) fn maybe(&self, member: &str) -> Option<String> {
        self.get(member).and_then(Json::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A text.
    pub(super) fn text(&self, member: &'static str) -> Result<String, ReadError> {
        self.maybe(member).ok_or_else(|| self.missing(member, "a text"))
    }

    pub(super) fn flag(&self, member: &str) -> bool {
        self.get(member).and_then(Json::as_bool).unwrap_or_default()
    }

    /// The arguments of a tool. Some clients write them as a text that is JSON; a text that is not
    /// stays one.
    pub(super) fn input(&self, member: &'static str) -> Result<Json, ReadError> {
        match self.members.get(member) {
            Some(Json::String(text)) => {
                Ok(charter_expr::strict_json::from_str(text).unwrap_or_else(|_| Json::String(text.clone())))
            }
            Some(Json::Null) => Ok(Json::Object(Map::new())),
            Some(input) => Ok(input.clone()),
            None => Err(self.missing(member, "the arguments of the tool")),
        }
    }
}

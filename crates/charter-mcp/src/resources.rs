//! Resources: the charter, the run, its last records, and each record.

use charter_runtime::RuntimeError;
use serde_json::{Map, Value as Json, json};

use crate::endpoint::{Endpoint, failed, object};
use crate::message::RpcError;
use crate::tools;
use crate::version::Version;

/// Records of the resource with the last ones.
const LAST: u64 = 20;
/// Bytes of a resource.
const MAX_BYTES: usize = 1 << 20;

impl Endpoint {
    /// The address of the run.
    pub(crate) fn uri(&self) -> String {
        format!("charter://runs/{}", self.run)
    }

    /// Whether a resource changes with the run, so that there can be news of it.
    pub(crate) fn is_live(&self, uri: &str) -> bool {
        let own = self.uri();
        uri == own || uri == format!("{own}/records")
    }
}

/// `resources/list`.
pub(crate) fn list(endpoint: &Endpoint) -> Map<String, Json> {
    let uri = endpoint.uri();
    let id = &endpoint.machine().definition().id;
    object(json!({"resources": [
        {
            "uri": format!("{uri}/charter"), "name": "charter", "title": format!("The charter `{id}`"),
            "description": "The rules of the run: states, events, roles, guards, permits, limits.",
            "mimeType": "application/json",
        },
        {
            "uri": uri, "name": "run", "title": "The run", "mimeType": "application/json",
            "description": "State and data of the run, and what is legal; there is news of it with every change.",
        },
        {
            "uri": format!("{uri}/records"), "name": "records", "title": "The last records",
            "description": "The last records of the run, accepted and refused, the newest last.",
            "mimeType": "application/json",
        },
    ]}))
}

/// `resources/templates/list`.
pub(crate) fn templates(endpoint: &Endpoint) -> Map<String, Json> {
    object(json!({"resourceTemplates": [{
        "uriTemplate": format!("{}/records/{{seq}}", endpoint.uri()), "name": "record", "title": "A record",
        "description": "A record of the run, by its number from 0.", "mimeType": "application/json",
    }]}))
}

/// `resources/read`.
pub(crate) async fn read(
    endpoint: &Endpoint,
    params: &Map<String, Json>,
    version: Version,
) -> Result<Map<String, Json>, RpcError> {
    let uri = params.get("uri").and_then(Json::as_str);
    let uri = uri.ok_or_else(|| RpcError::params("`params.uri` must be the address of a resource"))?;
    let unknown = || {
        let code = if version.is_stateless() { RpcError::PARAMS } else { RpcError::NO_RESOURCE };
        let message = "unknown resource; `resources/list` and `resources/templates/list` list what there is";
        RpcError { data: Some(json!({"uri": uri})), ..RpcError::new(code, message) }
    };
    let own = endpoint.uri();
    let rest = uri.strip_prefix(&own).ok_or_else(unknown)?;
    let text = match rest {
        "" => run(endpoint).await.map_err(|e| failed(&e))?,
        "/charter" => charter(endpoint),
        "/records" => last(endpoint).await.map_err(|e| failed(&e))?,
        other => {
            let number = other.strip_prefix("/records/").ok_or_else(unknown)?;
            // `parse` would accept a sign.
            let seq = number.parse().ok().filter(|_| number.bytes().all(|b| b.is_ascii_digit())).ok_or_else(unknown)?;
            let found = endpoint.backend.records(endpoint.run.clone(), seq, 1).await.map_err(|e| failed(&e))?;
            found.first().filter(|record| record.seq == seq).ok_or_else(unknown)?.text().to_owned()
        }
    };
    if text.len() > MAX_BYTES {
        let message = format!("the resource has {} bytes, more than {MAX_BYTES}; `charter show` prints it", text.len());
        return Err(RpcError { data: Some(json!({"uri": uri})), ..RpcError::params(message) });
    }
    Ok(object(json!({"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]})))
}

/// The charter as it is written, or, if the language cannot express it, in its core form.
fn charter(endpoint: &Endpoint) -> String {
    let definition = endpoint.machine().definition();
    charter_format::json(definition).unwrap_or_else(|_| serde_json::to_string(definition).unwrap_or_default())
}

async fn run(endpoint: &Endpoint) -> Result<String, RuntimeError> {
    let look = endpoint.look().await?;
    let mut all = look.json(true);
    all.insert("message".to_owned(), look.next_step().into());
    all.insert("details".to_owned(), tools::details(&look));
    Ok(Json::Object(all).to_string())
}

/// The last records that fit, as a list.
async fn last(endpoint: &Endpoint) -> Result<String, RuntimeError> {
    let unknown = || RuntimeError::UnknownRun(endpoint.run.clone());
    let info = endpoint.backend.run(endpoint.run.clone()).await?.ok_or_else(unknown)?;
    let from = info.seq.saturating_add(1).saturating_sub(LAST);
    let records = endpoint.backend.records(endpoint.run.clone(), from, LAST as usize).await?;
    let mut texts: Vec<&str> = records.iter().map(|record| record.text()).collect();
    while texts.len() > 1 && texts.iter().map(|text| text.len()).sum::<usize>() > MAX_BYTES / 2 {
        texts.remove(0);
    }
    Ok(format!("[{}]", texts.join(",")))
}

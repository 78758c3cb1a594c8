//! `attachments` of an actor: images and PDF documents that the model reads beside the prompt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_actors::{ConfigError, Fault, Folder};
use charter_kernel::Digest;
use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use crate::codes;
use crate::offline;

/// Key of the configuration.
pub(crate) const KEY: &str = "attachments";
/// Maximum number of attachments of one question.
const MAX_COUNT: usize = 16;
/// Maximum size of all attachments of one question together, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Tokens of an image, or of a small document, about.
const TOKENS: u64 = 2_000;
/// Bytes of a document that take one token, about.
const BYTES_PER_TOKEN: usize = 50;

/// The media types.
const TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

/// The media type of a content, by how it begins.
fn media_type_of(content: &[u8]) -> Option<&'static str> {
    let is_webp = content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP");
    let [png, jpeg, gif, webp, pdf] = TYPES;
    Some(match content {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png,
        [0xff, 0xd8, 0xff, ..] => jpeg,
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => gif,
        _ if is_webp => webp,
        [b'%', b'P', b'D', b'F', b'-', ..] => pdf,
        _ => return None,
    })
}

/// An image or a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its media type: `image/png`, `image/jpeg`, `image/gif`, `image/webp`, `application/pdf`.
    pub media_type: String,
    /// Its content in base64.
    pub data: String,
}

impl Attachment {
    /// The digest of its content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(&self.content())
    }

    /// Its content.
    pub(crate) fn content(&self) -> Vec<u8> {
        STANDARD.decode(&self.data).unwrap_or_default()
    }

    /// Whether it is a document, not an image.
    #[must_use]
    pub fn is_document(&self) -> bool {
        self.media_type == "application/pdf"
    }

    /// The number of tokens that it takes, about: providers count pixels and pages.
    pub(crate) fn tokens(&self) -> u64 {
        let by_size = u64::try_from(self.data.len() / BYTES_PER_TOKEN).unwrap_or(u64::MAX);
        if self.is_document() { by_size.max(TOKENS) } else { TOKENS }
    }
}

/// The names of the files that a configuration attaches.
pub(crate) fn files(actor: &ActorDecl) -> Vec<String> {
    let entries = entries(actor.config.get(KEY));
    entries.iter().filter_map(|entry| Some(entry.get("file")?.as_str()?.to_owned())).collect()
}

fn entries(given: Option<&Json>) -> Vec<Json> {
    match given {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(list)) => list.clone(),
        Some(one) => vec![one.clone()],
    }
}

/// Reads `attachments`: values in which strings may be expressions, with the files in them.
pub(crate) fn read(actor: &ActorDecl, folder: &Folder) -> Result<Vec<Json>, ConfigError> {
    let entries = entries(actor.config.get(KEY)).into_iter().map(|entry| {
        let is_value = entry.is_object() || entry.as_str().is_some_and(|text| text.starts_with('='));
        if !is_value {
            let expected = "an expression such as `= input.scan`, `{file: NAME}`, or `{mediaType, data}`";
            return Err(ConfigError::invalid(KEY, expected, &entry));
        }
        let Some(name) = entry.get("file") else {
            offline::check(&entry).map_err(|e| ConfigError::Other(format!("`{KEY}`: {e}")))?;
            return Ok(entry);
        };
        let invalid = || ConfigError::invalid("attachments.file", "the name of a file beside the charter", name);
        let path = name.as_str().ok_or_else(invalid)?;
        let content = folder.bytes(path)?;
        let media_type = media_type_of(&content)
            .ok_or_else(|| ConfigError::Other(format!("`{KEY}`: `{path}` has none of the types {}", known_types())))?;
        let read = json!({"mediaType": media_type, "data": STANDARD.encode(content)});
        // Strings that are no expressions stay as they are; base64 never begins with `=`.
        check(std::slice::from_ref(&read)).map_err(|why| ConfigError::Other(format!("`{path}`: {why}")))?;
        Ok(read)
    });
    entries.collect()
}

/// The attachments of a question.
///
/// # Errors
/// An expression fails, or a value is not an attachment.
pub(crate) fn of(entries: &[Json], input: &Json, call: &Json) -> Result<Vec<Attachment>, Fault> {
    let fault = |why: String| Fault::new(codes::CONFIG, format!("`{KEY}`: {why}"));
    let mut values = Vec::new();
    for entry in entries {
        match offline::answer(entry, input, call).map_err(|e| fault(e.to_string()))? {
            Json::Null => {}
            Json::Array(list) => values.extend(list),
            one => values.push(one),
        }
    }
    check(&values).map_err(fault)
}

fn known_types() -> String {
    format!("`{}`", TYPES.join("`, `"))
}

fn check(values: &[Json]) -> Result<Vec<Attachment>, String> {
    if values.len() > MAX_COUNT {
        return Err(format!("there are {} attachments; the limit is {MAX_COUNT}", values.len()));
    }
    let mut left = MAX_BYTES;
    let mut all = Vec::new();
    for value in values {
        let text = |key: &str| value.get(key).and_then(Json::as_str);
        let Some(data) = text("data") else {
            return Err("an attachment needs `data`, its content in base64".into());
        };
        left = left
            .checked_sub(data.len())
            .ok_or_else(|| format!("the attachments have more than {MAX_BYTES} bytes in base64 together"))?;
        let content = STANDARD.decode(data).map_err(|e| format!("`data` is not base64: {e}"))?;
        let Some(media_type) = media_type_of(&content) else {
            return Err(format!("the content has none of the types {}", known_types()));
        };
        if let Some(said) = text("mediaType").filter(|said| *said != media_type) {
            return Err(format!("the content is `{media_type}`, not `{}`", said.escape_debug()));
        }
        all.push(Attachment { media_type: media_type.to_owned(), data: data.to_owned() });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use charter_actors::Folder;
    use charter_kernel::definition::ActorDecl;
    use serde_json::{Value as Json, json};

    use super::{of, read};

    fn attached(config: Json, input: &Json) -> Result<Vec<String>, String> {
        let decl = ActorDecl { config: serde_json::from_value(config).unwrap(), ..ActorDecl::default() };
        let files = [("a.pdf", "%PDF-1.7"), ("c.png", "<html>")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let folder = Folder::Texts(Arc::new(files.into()));
        let entries = read(&decl, &folder).map_err(|e| e.to_string())?;
        let all = of(&entries, input, &Json::Null).map_err(|fault| fault.message)?;
        Ok(all.into_iter().map(|one| format!("{} {}", one.media_type, one.data)).collect())
    }

    #[test]
    fn from_input_and_files() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
        let input = json!({"scan": {"mediaType": "image/png", "data": png}, "no": null});
        let config =
            json!({"attachments": ["= input.scan", "= [input.scan, input.scan]", "= input.no", {"file": "a.pdf"}]});
        let (image, document) =
            (format!("image/png {png}"), format!("application/pdf {}", STANDARD.encode("%PDF-1.7")));
        assert_eq!(attached(config, &input).unwrap(), [image.clone(), image.clone(), image, document]);
        assert_eq!(attached(json!({}), &input).unwrap().len(), 0);
    }

    #[test]
    fn types_are_those_of_the_content() {
        for (content, media_type) in [
            (&b"\x89PNG\r\n\x1a\n"[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"%PDF-2.0", "application/pdf"),
        ] {
            let data = STANDARD.encode(content);
            let found = attached(json!({"attachments": "= input"}), &json!({"data": data})).unwrap();
            assert_eq!(found, [format!("{media_type} {data}")]);
        }
    }

    #[test]
    fn what_is_no_attachment_is_refused() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
        let of = |value: Json| attached(json!({"attachments": "= input.x"}), &json!({"x": value})).unwrap_err();
        for (value, message) in [
            (json!("text"), "needs `data`"),
            (json!({"mediaType": "image/svg+xml", "data": png}), "is `image/png`, not `image/svg+xml`"),
            (json!({"data": STANDARD.encode("<svg/>")}), "has none of the types `image/png`, `image/jpeg`"),
            (json!({"data": STANDARD.encode(b"RIFF....WAVE")}), "has none of the types"),
            (json!({"mediaType": "image/png", "data": "%%"}), "`data` is not base64"),
            (json!({"mediaType": "image/gif", "data": png}), "the content is `image/png`, not `image/gif`"),
            (json!(vec![json!({}); 17]), "there are 17 attachments; the limit is 16"),
            (json!({"mediaType": "image/png", "data": "A".repeat(9 << 20)}), "more than 8388608 bytes"),
        ] {
            let error = of(value);
            assert!(error.contains(message), "{error}");
        }
        for (config, message) in [
            (json!({"attachments": {"file": 7}}), "invalid `attachments.file`"),
            (json!({"attachments": {"file": "c.png"}}), "`attachments`: `c.png` has none of the types"),
            (json!({"attachments": {"file": "b.png"}}), "no file `b.png` beside the charter"),
            (json!({"attachments": "= ("}), "invalid expression"),
            (
                json!({"attachments": "logo.png"}),
                "invalid `attachments`: expected an expression such as `= input.scan`",
            ),
            (json!({"attachments": [7]}), "invalid `attachments`"),
        ] {
            let error = attached(config, &json!({})).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}

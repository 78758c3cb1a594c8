//! `attachments` of an actor: images and PDF documents that the model reads beside the prompt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_actors::{ConfigError, Fault, Folder};
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

/// A type of attachments: its name, the ends of names of files, and how its content begins.
struct Kind {
    media_type: &'static str,
    ends: &'static [&'static str],
    begin: &'static [u8],
}

const KINDS: [Kind; 5] = [
    Kind { media_type: "image/png", ends: &["png"], begin: b"\x89PNG" },
    Kind { media_type: "image/jpeg", ends: &["jpg", "jpeg"], begin: b"\xff\xd8\xff" },
    Kind { media_type: "image/gif", ends: &["gif"], begin: b"GIF8" },
    Kind { media_type: "image/webp", ends: &["webp"], begin: b"RIFF" },
    Kind { media_type: "application/pdf", ends: &["pdf"], begin: b"%PDF" },
];

/// An image or a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its media type: `image/png`, `image/jpeg`, `image/gif`, `image/webp`, `application/pdf`.
    pub media_type: String,
    /// Its content in base64.
    pub data: String,
}

impl Attachment {
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
        let expected = "the name of a file beside the charter that ends in `.png`, `.jpg`, `.gif`, `.webp` or `.pdf`";
        let invalid = || ConfigError::invalid("attachments.file", expected, name);
        let path = name.as_str().ok_or_else(invalid)?;
        let end = path.rsplit_once('.').map(|(_, end)| end.to_lowercase()).unwrap_or_default();
        let kind = KINDS.iter().find(|kind| kind.ends.contains(&end.as_str())).ok_or_else(invalid)?;
        let read = json!({"mediaType": kind.media_type, "data": STANDARD.encode(folder.bytes(path)?)});
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

fn check(values: &[Json]) -> Result<Vec<Attachment>, String> {
    if values.len() > MAX_COUNT {
        return Err(format!("there are {} attachments; the limit is {MAX_COUNT}", values.len()));
    }
    let mut left = MAX_BYTES;
    let mut all = Vec::new();
    for value in values {
        let text = |key: &str| value.get(key).and_then(Json::as_str);
        let (Some(media_type), Some(data)) = (text("mediaType"), text("data")) else {
            return Err("an attachment needs `mediaType` and `data`, its content in base64".into());
        };
        let Some(kind) = KINDS.iter().find(|kind| kind.media_type == media_type) else {
            let known = KINDS.map(|kind| kind.media_type).join("`, `");
            return Err(format!("cannot attach `{}`; known types: `{known}`", media_type.escape_debug()));
        };
        left = left
            .checked_sub(data.len())
            .ok_or_else(|| format!("the attachments have more than {MAX_BYTES} bytes in base64 together"))?;
        let content = STANDARD.decode(data).map_err(|e| format!("`data` is not base64: {e}"))?;
        if !content.starts_with(kind.begin) {
            return Err(format!("the content is not of the type `{media_type}`"));
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
        let folder = Folder::Texts(Arc::new([("a.pdf".to_owned(), "%PDF-1.7".to_owned())].into()));
        let entries = read(&decl, &folder).map_err(|e| e.to_string())?;
        let all = of(&entries, input, &Json::Null).map_err(|fault| fault.message)?;
        Ok(all.into_iter().map(|one| format!("{} {}", one.media_type, one.data)).collect())
    }

    #[test]
    fn from_input_and_files() {
        let png = STANDARD.encode(b"\x89PNG....");
        let input = json!({"scan": {"mediaType": "image/png", "data": png}, "no": null});
        let config =
            json!({"attachments": ["= input.scan", "= [input.scan, input.scan]", "= input.no", {"file": "a.pdf"}]});
        let (image, document) =
            (format!("image/png {png}"), format!("application/pdf {}", STANDARD.encode("%PDF-1.7")));
        assert_eq!(attached(config, &input).unwrap(), [image.clone(), image.clone(), image, document]);
        assert_eq!(attached(json!({}), &input).unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_attachment_is_refused() {
        let png = STANDARD.encode(b"\x89PNG....");
        let of = |value: Json| attached(json!({"attachments": "= input.x"}), &json!({"x": value})).unwrap_err();
        for (value, message) in [
            (json!("text"), "needs `mediaType` and `data`"),
            (json!({"mediaType": "image/svg+xml", "data": png}), "cannot attach `image/svg+xml`"),
            (json!({"mediaType": "image/png", "data": "%%"}), "`data` is not base64"),
            (json!({"mediaType": "image/gif", "data": png}), "the content is not of the type `image/gif`"),
            (json!(vec![json!({}); 17]), "there are 17 attachments; the limit is 16"),
            (json!({"mediaType": "image/png", "data": "A".repeat(9 << 20)}), "more than 8388608 bytes"),
        ] {
            let error = of(value);
            assert!(error.contains(message), "{error}");
        }
        for (config, message) in [
            (json!({"attachments": {"file": "b.exe"}}), "invalid `attachments.file`"),
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

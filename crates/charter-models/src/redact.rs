//! Removes secrets from a response, before anything reads, shortens or stores it. A stream can
//! contain a secret in pieces, and a message can end in the middle of one. A request is sent as it
//! is; secrets are removed from what is kept of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use charter_actors::Secrets;
use charter_expr::strict_json;
use serde_json::Value as Json;

use crate::sse;
use crate::transport::Response;

/// Removes secrets from a response. Doing it twice changes nothing more.
pub(crate) fn redact(secrets: &Secrets, response: &mut Response) {
    if secrets.is_empty() {
        return;
    }
    response.body = match response.is_stream() {
        true => stream(secrets, &response.body),
        false => secrets.redact_document(&response.body),
    };
    let texts = [Some(&mut response.content_type), response.retry_after.as_mut(), response.date.as_mut()];
    for text in texts.into_iter().flatten() {
        *text = secrets.redact(text).into_owned();
    }
}

/// The body of a request without secrets. JSON stays JSON.
pub(crate) fn redact_body<'b>(secrets: &Secrets, body: &'b str) -> Cow<'b, str> {
    if secrets.is_empty() {
        return Cow::Borrowed(body);
    }
    let Ok(before) = strict_json::from_str(body) else {
        return secrets.redact(body);
    };
    let after = secrets.redact_json(before.clone());
    if after == before { Cow::Borrowed(body) } else { Cow::Owned(after.to_string()) }
}

fn stream(secrets: &Secrets, text: &str) -> String {
    let events = sse::events(text);
    let parsed = |(_, data): &(String, String)| strict_json::from_str(data).unwrap_or_else(|_| data.clone().into());
    let before: Vec<Json> = events.iter().map(parsed).collect();
    let mut after = before.clone();
    for belong in [Belong::Place, Belong::Block, Belong::Name] {
        let mut texts = BTreeMap::new();
        for chunk in &mut after {
            belong.collect(chunk, String::new(), &mut texts);
        }
        texts.into_values().for_each(|pieces| secrets.redact_pieces(pieces));
    }
    // Also their keys and numbers.
    let after: Vec<Json> = after.into_iter().map(|chunk| secrets.redact_json(chunk)).collect();
    if after == before {
        return secrets.redact_cut(text).into_owned();
    }
    let written = events.iter().zip(&before).zip(after).map(|(((name, data), before), after)| {
        let data = match (after == *before, after) {
            (true, _) => data.clone(),
            // What is not JSON was taken as a string.
            (false, Json::String(text)) if before.as_str() == Some(data) => text,
            (false, changed) => changed.to_string(),
        };
        let name = secrets.redact(name);
        let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
        format!("{name}data: {}\n\n", data.replace('\n', "\ndata: "))
    });
    written.collect()
}

/// Which strings of the chunks of a stream belong together: providers put the pieces of a text at
/// the same place of each chunk, of the same block, or under the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Belong {
    Place,
    Block,
    Name,
}

impl Belong {
    fn collect<'j>(self, value: &'j mut Json, place: String, texts: &mut BTreeMap<String, Vec<&'j mut String>>) {
        match value {
            Json::String(text) => texts.entry(place).or_default().push(text),
            Json::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let at = if self == Belong::Place { format!("{place}/{index}") } else { place.clone() };
                    self.collect(item, at, texts);
                }
            }
            Json::Object(map) => {
                let block = ["index", "thought"].map(|key| map.get(key).map(Json::to_string).unwrap_or_default());
                for (key, item) in map.iter_mut() {
                    let at = match self {
                        Belong::Block => format!("{place}#{}/{key}", block.join("#")),
                        _ => format!("{place}/{key}"),
                    };
                    self.collect(item, at, texts);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use charter_actors::{Secret, Secrets};
    use serde_json::{Value as Json, json};

    use super::redact;
    use crate::transport::Response;

    const KEY: &str = "sk-very-secret-0123456789";

    fn redacted(content_type: &str, body: &str) -> String {
        let secrets: Secrets = [Secret::new(format!("Bearer {KEY}"))].iter().collect();
        let mut response = Response { content_type: content_type.into(), body: body.into(), ..Response::default() };
        redact(&secrets, &mut response);
        let once = response.clone();
        redact(&secrets, &mut response);
        assert_eq!(once, response, "doing it again changes nothing");
        response.body
    }

    /// Whether a piece of the key of 8 characters is in a text.
    fn shows(text: &str) -> bool {
        let pieces = KEY.as_bytes().windows(8).map(|piece| std::str::from_utf8(piece).unwrap());
        pieces.into_iter().any(|piece| text.contains(piece))
    }

    fn chunks(chunk: impl Fn(usize, &str) -> Json, size: usize) -> String {
        let text = format!("the key is {KEY}, as you know");
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
        pieces.enumerate().map(|(n, piece)| format!("event: e\ndata: {}\n\n", chunk(n, &piece))).collect()
    }

    #[test]
    fn pieces_of_a_stream() {
        let forms: [fn(usize, &str) -> Json; 5] = [
            |_, piece| json!({"choices": [{"index": 0, "delta": {"content": piece, "refusal": null}}]}),
            |n, piece| json!({"choices": [{"index": n % 2, "delta": {"refusal": piece}}]}),
            |_, piece| json!({"type": "content_block_delta", "index": 1, "delta": {"partial_json": piece}}),
            |n, piece| json!({"candidates": [{"content": {"parts": [{"text": piece, "thought": n < 3}]}}]}),
            |n, piece| match n % 2 {
                0 => json!({"parts": [{"thought": true, "text": "hm"}, {"text": piece}]}),
                _ => json!({"parts": [{"text": piece}, {"thought": true, "text": "so"}]}),
            },
        ];
        for (form, chunk) in forms.iter().enumerate() {
            for size in [1, 3, 8, 11, 60] {
                let body = chunks(chunk, size);
                let said = redacted("text/event-stream", &body);
                let texts: String = crate::sse::events(&said).into_iter().map(|(_, data)| data).collect();
                let values = crate::sse::events(&said).into_iter().map(|(_, d)| serde_json::from_str(&d).unwrap());
                let joined: String = values.map(|v: Json| strings(&v)).collect();
                assert!(joined.contains("[secret]"), "form {form}, size {size}: {joined}");
                assert!(!shows(&texts) && !shows(&joined), "form {form}, size {size}: {joined}");
            }
        }
    }

    fn strings(value: &Json) -> String {
        match value {
            Json::String(text) if ["hm", "so"].contains(&text.as_str()) => String::new(),
            Json::String(text) if text == "content_block_delta" => String::new(),
            Json::String(text) => text.clone(),
            Json::Array(items) => items.iter().map(strings).collect(),
            Json::Object(map) => map.values().map(strings).collect(),
            _ => String::new(),
        }
    }

    #[test]
    fn messages_that_end_in_the_middle_of_a_key() {
        let cut = &KEY[..14];
        for (kind, body) in [
            ("text/plain", format!("no, {cut}")),
            ("text/event-stream", format!("data: {{\"choices\": [{{\"delta\": {{\"content\": \"no {cut}")),
            (
                "text/event-stream",
                format!("data: {{\"text\": \"no {}\"}}\n\ndata: {{\"text\": \"{}\"}}\n\n", &cut[..5], &cut[5..]),
            ),
        ] {
            let said = redacted(kind, &body);
            assert!(said.contains("no") && said.contains("[secret]") && !said.contains("sk-ve"), "{said}");
        }
    }

    #[test]
    fn documents_stay_json() {
        let secrets: Secrets = [Secret::new("1234567890")].iter().collect();
        let body = r#"{"n": 12345678901, "1234567890": [true], "t": "a 1234567890"}"#.to_owned();
        let mut response = Response { body, ..Response::default() };
        redact(&secrets, &mut response);
        let value: Json = serde_json::from_str(&response.body).unwrap();
        assert_eq!(value, json!({"n": "[secret]1", "[secret]": [true], "t": "a [secret]"}));
        assert_eq!(redacted("", "{\"a\":  1}"), "{\"a\":  1}", "nothing else changes");
    }
}

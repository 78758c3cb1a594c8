//! Removes secrets from a response, before anything reads, shortens or stores it. A stream can
//! contain a secret in pieces, and a message can end in the middle of one. A request is sent as it
//! is; secrets are removed from what is kept of it.

mod joined;
mod unread;

use std::borrow::Cow;

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
        false => document(secrets, &response.body),
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

/// A body that is no stream. It may have the pieces of a text all the same, such as the blocks of a
/// message.
fn document(secrets: &Secrets, text: &str) -> String {
    let Ok(before) = strict_json::from_str(text) else {
        return secrets.redact_cut(&unread::redact(secrets, text)).into_owned();
    };
    let mut after = [before.clone()];
    joined::redact(secrets, &mut after);
    let [after] = after;
    let changed = (after != before).then(|| after.to_string());
    secrets.redact_document(changed.as_deref().unwrap_or(text))
}

fn stream(secrets: &Secrets, text: &str) -> String {
    let events = sse::events(text);
    let is_read = |data: &str| data.trim() == "[DONE]" || strict_json::from_str(data).is_ok();
    if !events.iter().all(|(_, data)| is_read(data)) {
        let text = unread::redact(secrets, &written(secrets, &events));
        return secrets.redact_cut(&events_without(secrets, &text)).into_owned();
    }
    if sse::has_more_than_events(text) {
        // Comments and the like may have pieces of a secret, too, and nothing reads them.
        return events_without(secrets, &written(secrets, &events));
    }
    events_without(secrets, text)
}

/// The events of a stream, and nothing else.
fn written(secrets: &Secrets, events: &[(String, String)]) -> String {
    let one = |(name, data): &(String, String)| {
        let name = secrets.redact(name);
        let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
        format!("{name}data: {}\n\n", data.replace('\n', "\ndata: "))
    };
    events.iter().map(one).collect()
}

/// Removes the secrets from the events of a stream.
fn events_without(secrets: &Secrets, text: &str) -> String {
    let events = sse::events(text);
    let parsed = |(_, data): &(String, String)| strict_json::from_str(data).unwrap_or_else(|_| data.clone().into());
    let before: Vec<Json> = events.iter().map(parsed).collect();
    let mut after = before.clone();
    joined::redact(secrets, &mut after);
    // Also their keys and numbers.
    let after: Vec<Json> = after.into_iter().map(|chunk| secrets.redact_json(chunk)).collect();
    if after == before {
        return secrets.redact_cut(text).into_owned();
    }
    let changed = events.iter().zip(&before).zip(after).map(|(((name, data), before), after)| {
        let data = match (after == *before, after) {
            (true, _) => data.clone(),
            // What is not JSON was taken as a string.
            (false, Json::String(text)) if before.as_str() == Some(data) => text,
            (false, changed) => changed.to_string(),
        };
        (name.clone(), data)
    });
    written(secrets, &changed.collect::<Vec<_>>())
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

    /// The text of a body without what is around it, so that pieces of a key meet.
    fn meets(body: &str) -> String {
        let is_key = |part: &str| ["choices", "delta", "content"].contains(&part);
        body.split('"').filter(|part| !part.contains([':', '{', '}']) && !is_key(part)).collect()
    }

    #[test]
    fn lines_may_end_with_a_carriage_return() {
        let body = chunks(|_, piece| json!({"choices": [{"delta": {"content": piece}}]}), 6).replace('\n', "\r");
        let said = redacted("text/event-stream", &body);
        assert!(meets(&said).contains("as you know") && said.contains("[secret]") && !shows(&meets(&said)), "{said}");
    }

    #[test]
    fn what_is_not_understood_is_kept_without_pieces_of_a_key() {
        let stream = |size| chunks(|_, piece| json!({"choices": [{"delta": {"content": piece}}]}), size);
        for size in [1, 3, 8, 11] {
            let list = stream(size).replace("event: e\ndata: ", "").replace("\n\n", ",\n");
            for (case, kind, body) in [
                ("an event that is no JSON", "text/event-stream", format!("{}data: {{\n\n", stream(size))),
                ("another field", "text/event-stream", stream(size).replace("data: ", "text: ")),
                ("comments", "text/event-stream", format!("data: {{}}\n\n{}", stream(size).replace("data", ""))),
                ("no type", "", format!("\n{}", stream(size))),
                ("a list", "application/json", format!("[{}]", list.trim_end_matches(",\n"))),
                ("a list without an end", "application/json", format!("[{list}")),
                ("lines of JSON", "application/x-ndjson", list.replace(",\n", "\n")),
                ("a quote before it", "application/json", format!("5\" of [{list}")),
            ] {
                let said = redacted(kind, &body);
                assert!(!shows(&said) && !shows(&meets(&said)), "{case}, size {size}: {said}");
            }
        }
        let said = redacted("text/html", &format!("<p>{}</p><p>{}</p>", &KEY[..13], &KEY[13..]));
        assert_eq!(said, "<p>[secret]</p><p>[secret]</p>");
        let said = redacted("", "{\"error\": \"no such model\", }");
        assert_eq!(said, "{\"error\": \"no such model\", }", "nothing else changes");
    }

    #[test]
    fn a_block_may_begin_with_a_piece_of_a_key() {
        let (first, rest) = KEY.split_at(12);
        let start =
            |index: u64, block: Json| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = |index: u64, delta: Json| json!({"type": "content_block_delta", "index": index, "delta": delta});
        for chunks in [
            vec![start(0, json!({"type": "text", "text": first})), delta(0, json!({"text": rest}))],
            vec![
                start(0, json!({"thinking": first, "signature": first})),
                delta(0, json!({"thinking": rest})),
                delta(0, json!({"signature": rest})),
            ],
            vec![
                json!({"message": {"content": [{"text": first}]}}),
                start(0, json!({"text": ""})),
                delta(0, json!({"text": rest})),
            ],
            vec![json!({"message": {"content": first}}), delta(0, json!({"text": rest}))],
            // The blocks one after another have it, but not what was sent.
            vec![
                start(1, json!({"text": &rest[..4]})),
                delta(0, json!({"text": first})),
                delta(2, json!({"thinking": "hm"})),
                delta(1, json!({"text": &rest[4..]})),
            ],
            // Two texts at the same time, each of which has it.
            vec![
                start(0, json!({"text": first})),
                start(1, json!({"text": first})),
                delta(0, json!({"text": rest})),
                delta(1, json!({"text": rest})),
            ],
        ] {
            let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
            let said = redacted("text/event-stream", &body);
            assert!(said.contains("[secret]"), "{said}");
            for piece in [&first[..8], &rest[..4], &rest[rest.len() - 8..]] {
                assert!(!said.contains(piece), "{piece}: {said}");
            }
        }
        let blocks = json!({"content": [{"type": "text", "text": first}, {"type": "text", "text": rest}]}).to_string();
        let said = redacted("application/json", &blocks);
        assert_eq!(said, r#"{"content":[{"text":"[secret]","type":"text"},{"text":"","type":"text"}]}"#);
    }
}

//! `attachments` of an actor of kind `model`: what the model gets, and what the host keeps.

use crate::providers::{Server, charter};
use crate::support::Scratch;
use crate::tool_calls::reply;
use crate::usage::sql;
use serde_json::json;

/// The content of a small image of each type, and of a document.
const CONTENTS: [(&str, &[u8]); 5] = [
    ("image/png", b"\x89PNG\r\n\x1a\n...."),
    ("image/jpeg", b"\xff\xd8\xff\xe0...."),
    ("image/gif", b"GIF89a...."),
    ("image/webp", b"RIFF....WEBPVP8 "),
    ("application/pdf", b"%PDF-1.7...."),
];

fn base64(content: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let number = bytes.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        let digit = |n: usize| char::from(alphabet[(number >> (18 - 6 * n)) as usize & 63]);
        (0..4).map(|n| if n <= bytes.len() { digit(n) } else { '=' }).collect::<String>()
    };
    content.chunks(3).map(group).collect()
}

fn asking(name: &str, kind: &str, server: &Server) -> Scratch {
    let scratch = Scratch::new(name);
    let charter = "\
charter: 1
id: reads
input: {type: object}
context: {said: ''}
actors:
  reader:
    kind: model
    prompt: p.md
    model: near:a
    attachments: ['= input.scan', {file: logo}]
    output: {type: object, required: [said], properties: {said: {type: string}}}
    timeout: 30s
initial: asks
states:
  asks:
    invoke:
      src: reader
      input: {scan: '= input.scan'}
      onDone: {target: done, actions: [{assign: {said: '= event.output.said'}}]}
      onError: {target: done, actions: [{assign: {said: '= event.error.message'}}]}
  done: {type: final}
";
    scratch.file("c.yaml", charter);
    scratch.file("p.md", "You read.\n---\nWhat is it?");
    std::fs::write(scratch.0.join("logo"), CONTENTS[0].1).unwrap();
    scratch.file("m.toml", format!("[providers.near]\nkind = \"{kind}\"\naddress = \"{}\"\n", server.url));
    scratch
}

#[test]
fn attachments_are_kept_by_their_digest() {
    for kind in ["openai", "anthropic", "gemini"] {
        for (media_type, content) in CONTENTS {
            let (data, logo) = (base64(content), base64(CONTENTS[0].1));
            let (sent, icon) = (data.clone(), logo.clone());
            let server = Server::new(move |body| {
                assert!(body.contains(media_type) && body.contains(&sent) && body.contains(&icon), "{body}");
                reply(kind, &[("answer", json!({"said": "a fox"}))])
            });
            let name = format!("attached-{kind}-{}", media_type.replace('/', "-"));
            let scratch = asking(&name, kind, &server);
            scratch.file("input.json", json!({"scan": {"data": data}}).to_string());
            let run = "run c.yaml --models m.toml --input @input.json";
            let (output, text) = charter(&scratch, &format!("{run} --run r --record-models cassette"), None);
            assert!(output.status.success(), "{name}: {text}");
            let (_, text) = charter(&scratch, "show r", None);
            if (kind, media_type) == ("gemini", "image/gif") {
                assert!(text.contains("Gemini takes no `image/gif`"), "{name}: {text}");
                assert_eq!(server.times(), 0, "{name}");
                continue;
            }
            assert!(text.contains("a fox"), "{name}: {text}");
            // The cassette and the exchange have the digest, and the journal has the content.
            let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
            let select = format!("SELECT digest FROM blobs WHERE hex(data) = upper('{hex}')");
            let found = sql(&scratch, &select);
            let digest = found.split('"').find(|text| text.starts_with("sha256:")).unwrap();
            let cassette = std::fs::read_to_string(scratch.0.join("cassette")).unwrap();
            assert!(cassette.contains(digest) && !cassette.contains(&data), "{name}: {cassette}");
            let exchange = "SELECT json_extract(b.data, '$.exchanges[0].said[0].request') FROM usage u JOIN blobs b ON b.digest = u.exchange";
            assert!(sql(&scratch, exchange).contains(digest), "{name}");
            let (output, text) = charter(&scratch, &format!("{run} --run again --replay-models cassette"), None);
            assert!(output.status.success() && server.times() == 1, "{name}: {text}");
            let (_, text) = charter(&scratch, "show again", None);
            assert!(text.contains("a fox"), "{name}: {text}");
        }
    }
}

#[test]
fn what_is_no_image_is_refused_before_a_request() {
    let server = Server::new(|_| reply("openai", &[("answer", json!({"said": "?"}))]));
    let scratch = asking("attached-not", "openai", &server);
    scratch.file("input.json", json!({"scan": {"data": base64(b"RIFF....WAVEfmt ")}}).to_string());
    let (_, text) = charter(&scratch, "run c.yaml --models m.toml --input @input.json --run r", None);
    let (_, shown) = charter(&scratch, "show r", None);
    assert!(shown.contains("the content has none of the types `image/png`"), "{text}{shown}");
    scratch.file("logo", "<svg/>");
    let (output, text) = charter(&scratch, "check c.yaml", None);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("`logo` has none of the types `image/png`"), "{text}");
    assert_eq!(server.times(), 0);
}

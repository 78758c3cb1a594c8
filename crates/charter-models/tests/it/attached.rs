//! Attachments in the requests of the three wire formats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_actors::Folder;
use charter_kernel::definition::ActorDecl;
use charter_models::actor::{ModelActor, Source};
use charter_models::cassette::{Cassette, Recorder};
use charter_models::{Model, Request, Response, Transport, TransportError};
use serde_json::{Value as Json, json};

/// Keeps the request, and answers nothing.
struct Keeping(Mutex<Json>);

impl Transport for Keeping {
    fn send(
        &self,
        request: &Request,
        _: Duration,
        _: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        *self.0.lock().unwrap() = serde_json::from_str(&request.body).unwrap();
        Ok(Response { status: 400, ..Response::default() })
    }
}

#[test]
fn each_provider_gets_images_and_documents() {
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
    let pdf = STANDARD.encode("%PDF-1.7");
    let config = json!({"prompt": "p.md", "attachments": ["= input.scan", {"file": "a.pdf"}]});
    let files = [("p.md", "You read.\n---\nWhat is it?"), ("a.pdf", "%PDF-1.7")];
    let folder = Folder::Texts(Arc::new(files.map(|(name, text)| (name.to_owned(), text.to_owned())).into()));
    let decl =
        ActorDecl { kind: "model".into(), config: serde_json::from_value(config).unwrap(), ..ActorDecl::default() };
    let actor = ModelActor::read(&decl, &folder).unwrap();
    let input = json!({"scan": {"mediaType": "image/png", "data": png}});
    for (name, pointer, expected) in [
        (
            "openai:m",
            "/messages/1/content",
            json!([
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{png}")}},
                {"type": "file", "file": {"filename": "document.pdf", "file_data": format!("data:application/pdf;base64,{pdf}")}},
                {"type": "text", "text": "What is it?"},
            ]),
        ),
        (
            "anthropic:m",
            "/messages/0/content",
            json!([
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": pdf}},
                {"type": "text", "text": "What is it?"},
            ]),
        ),
        (
            "gemini:m",
            "/contents/0/parts",
            json!([
                {"inlineData": {"mimeType": "image/png", "data": png}},
                {"inlineData": {"mimeType": "application/pdf", "data": pdf}},
                {"text": "What is it?"},
            ]),
        ),
    ] {
        let (model, transport) = (Model::parse(name).unwrap(), Keeping(Mutex::default()));
        let source = Source::Model(&model, &[], &transport, &[]);
        let (_, exchanges) = actor.answer(source, &input, Duration::from_secs(5), &());
        assert_eq!(transport.0.lock().unwrap().pointer(pointer), Some(&expected), "{name}");
        assert_eq!(exchanges.len(), 1);
    }
}

#[test]
fn what_is_kept_of_an_attachment_is_its_digest() {
    let gif = STANDARD.encode(b"GIF89a....");
    let config = json!({"prompt": "p.md", "attachments": "= input"});
    let files = [("p.md".to_owned(), "You read.\n---\nWhat is it?".to_owned())];
    let folder = Folder::Texts(Arc::new(files.into()));
    let decl =
        ActorDecl { kind: "model".into(), config: serde_json::from_value(config).unwrap(), ..ActorDecl::default() };
    let actor = ModelActor::read(&decl, &folder).unwrap();
    let ask = |name: &str, transport: &dyn Transport| {
        let model = Model::parse(name).unwrap();
        actor.answer(Source::Model(&model, &[], transport, &[]), &json!({"data": gif}), Duration::from_secs(5), &())
    };
    let digest = charter_kernel::Digest::of_bytes(b"GIF89a....").to_string();
    for name in ["openai:m", "anthropic:m"] {
        let cassette = Kept::default();
        let recorder = Recorder::new(Keeping(Mutex::default()), cassette.clone());
        let (_, exchanges) = ask(name, &recorder);
        assert_eq!(recorder_body(&cassette).matches(&digest).count(), 1, "{name}");
        let said = &exchanges[0].messages[0].request;
        assert!(said.contains(&digest) && !said.contains(&gif), "{name}: {said}");
        let text = String::from_utf8(cassette.0.lock().unwrap().clone()).unwrap();
        assert!(!text.contains(&gif), "{name}: {text}");
        // A replay finds the same request.
        let (answer, _) = ask(name, &Cassette::parse(&text).unwrap());
        assert_eq!(answer.unwrap_err().details["status"], 400, "{name}");
    }
    let (answer, exchanges) = ask("gemini:m", &Keeping(Mutex::default()));
    let fault = answer.unwrap_err();
    assert!(fault.code == "request" && fault.message.starts_with("Gemini takes no `image/gif`"), "{fault:?}");
    assert_eq!(exchanges[0].requests, 0);
}

/// A file in memory.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn recorder_body(kept: &Kept) -> String {
    let line: Json = serde_json::from_slice(&kept.0.lock().unwrap()).unwrap();
    line["request"]["body"].to_string()
}

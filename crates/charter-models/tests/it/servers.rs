//! A server on the loopback interface that sends the responses that a test sets, and keeps the
//! requests.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value as Json, json};

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub line: String,
    pub headers: Vec<String>,
    pub body: Json,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find_map(|h| h.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)))
            .map(|(_, v)| v)
    }
}

/// What the server does with a request.
#[derive(Clone)]
pub enum Act {
    /// Status, headers, body.
    Say(u16, &'static str, String),
    /// Announces more bytes than it sends, then closes the connection.
    Break(String),
    /// Like `Break`, but the connection is reset.
    Reset(String),
    /// Headers, then bytes that may be no text, announced with their length.
    Bytes(&'static str, Vec<u8>),
    /// A body, announced with a byte more than it has.
    Short(String),
    /// Status, then bytes that may be no text.
    Status(u16, Vec<u8>),
    /// Begins a stream, then sends nothing for this long.
    Stall(String, Duration),
    /// Sends nothing for this long.
    Hang(Duration),
}

pub struct Server {
    pub url: String,
    pub asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// Starts a server that performs these actions in order and repeats the last one.
pub fn server(acts: Vec<Act>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let Some(act) = acts.get(n).or(acts.last()).cloned() else {
                return;
            };
            let seen = seen.clone();
            std::thread::spawn(move || drop(serve(stream.unwrap(), &act, &seen)));
        }
    });
    Server { url, asked }
}

fn serve(mut stream: TcpStream, act: &Act, seen: &Mutex<Vec<ReceivedRequest>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        headers.push(header.trim().to_owned());
    }
    let mut asked = ReceivedRequest { line: line.trim().to_owned(), headers, body: Json::Null };
    let length: usize = asked.header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if let Act::Reset(begin) = act {
        // A connection that is closed with unread bytes is reset.
        reader.read_exact(&mut body[..length - 1])?;
        asked.body = Json::Null;
        seen.lock().unwrap().push(asked);
        drop(reader);
        write!(stream, "HTTP/1.1 200 OK\r\n{STREAM}\r\n{begin}")?;
        std::thread::sleep(Duration::from_millis(50));
        return Ok(());
    }
    reader.read_exact(&mut body)?;
    asked.body = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push(asked);
    match act {
        Act::Say(status, headers, body) => write!(
            stream,
            "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ),
        Act::Break(body) => {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
        }
        Act::Reset(_) => Ok(()),
        Act::Bytes(headers, bytes) => {
            write!(stream, "HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", bytes.len())?;
            stream.write_all(bytes)
        }
        Act::Short(body) => {
            write!(stream, "HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n{body}", body.len() + 1)
        }
        Act::Status(status, bytes) => {
            write!(stream, "HTTP/1.1 {status} X\r\n{JSON}content-length: {}\r\n\r\n", bytes.len())?;
            stream.write_all(bytes)
        }
        Act::Stall(begin, time) => {
            write!(stream, "HTTP/1.1 200 OK\r\n{STREAM}\r\n{begin}")?;
            std::thread::sleep(*time);
            Ok(())
        }
        Act::Hang(time) => {
            std::thread::sleep(*time);
            Ok(())
        }
    }
}

pub const STREAM: &str = "content-type: text/event-stream\r\n";
pub const JSON: &str = "content-type: application/json\r\n";

/// Returns OpenAI's stream of an answer, cut into small pieces.
pub fn openai(answer: &str) -> Act {
    let mut body = format!(
        "data: {}\n\n",
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m-2026", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}], "usage": null})
    );
    let chars: Vec<char> = answer.chars().collect();
    for piece in chars.chunks(7) {
        let piece: String = piece.iter().collect();
        let chunk = json!({"model": "m-2026", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}], "usage": null});
        body.push_str(&format!("data: {chunk}\n\n"));
    }
    for chunk in [
        json!({"model": "m-2026", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": null}),
        json!({"model": "m-2026", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}}),
    ] {
        body.push_str(&format!("data: {chunk}\n\n"));
    }
    body.push_str("data: [DONE]\n\n");
    Act::Say(200, STREAM, body)
}

/// Returns Anthropic's stream of a tool's input.
pub fn anthropic(answer: &str) -> Act {
    let mut body = String::new();
    let mut event = |name: &str, data: Json| body.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    event(
        "message_start",
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c-2026", "content": [], "usage": {"input_tokens": 20, "output_tokens": 1}}}),
    );
    event(
        "content_block_start",
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "answer", "input": {}}}),
    );
    event("ping", json!({"type": "ping"}));
    let chars: Vec<char> = answer.chars().collect();
    for piece in chars.chunks(5) {
        let piece: String = piece.iter().collect();
        event(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}),
        );
    }
    event("content_block_stop", json!({"type": "content_block_stop", "index": 0}));
    event(
        "message_delta",
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
    );
    event("message_stop", json!({"type": "message_stop"}));
    Act::Say(200, STREAM, body)
}

/// Returns Gemini's stream, in which each chunk is a response.
pub fn gemini(answer: &str) -> Act {
    let chars: Vec<char> = answer.chars().collect();
    let half = chars.len() / 2;
    let part = |chars: &[char]| chars.iter().collect::<String>();
    let chunks = [
        json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": part(&chars[..half])}], "role": "model"}, "index": 0}], "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}, "modelVersion": "g-2026"}),
        json!({"candidates": [{"content": {"parts": [{"text": part(&chars[half..])}], "role": "model"}, "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "totalTokenCount": 13}, "modelVersion": "g-2026"}),
    ];
    let body = chunks.iter().map(|c| format!("data: {c}\r\n\r\n")).collect();
    Act::Say(200, STREAM, body)
}

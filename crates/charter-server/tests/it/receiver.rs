//! A receiver of webhooks, which checks their signatures.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use charter_kernel::Digest;
use serde_json::{Value as Json, json};

use crate::site::Client;

/// A message, as the receiver got it.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    head: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.head.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn seq(&self) -> u64 {
        self.json()["data"]["seq"].as_u64().unwrap()
    }

    pub(crate) fn r#type(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    /// Checks the signature with an implementation of its own.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        use base64::Engine as _;
        let base64 = base64::engine::general_purpose::STANDARD;
        let mut block = base64.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        block.resize(64, 0);
        let padded = |pad: u8| -> Vec<u8> { block.iter().map(|byte| byte ^ pad).collect() };
        let message = format!("{}.{}.{}", self.id(), self.header("webhook-timestamp"), self.body);
        let inner = Digest::of_bytes(&[padded(0x36), message.into_bytes()].concat());
        let outer = Digest::of_bytes(&[padded(0x5c), inner.0.to_vec()].concat());
        self.header("webhook-signature") == format!("v1,{}", base64.encode(outer.0))
    }
}

/// A server that gets messages and answers as it is told; then 204.
pub(crate) struct Hook {
    pub(crate) url: String,
    got: Receiver<Got>,
    answers: Arc<Mutex<VecDeque<String>>>,
}

impl Hook {
    pub(crate) fn new(answers: &[&str]) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers.iter().map(|a| (*a).to_owned()).collect::<VecDeque<_>>()));
        let (sender, got) = channel();
        let planned = answers.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let mut head = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                        break;
                    }
                    if let Some((name, value)) = line.trim_end().split_once(": ") {
                        head.push((name.to_ascii_lowercase(), value.to_owned()));
                    }
                }
                let length = head.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                // Before the test hears of it, and plans the next one.
                let answer = planned.lock().unwrap().pop_front().unwrap_or_else(|| "204 No Content".into());
                if sender.send(Got { head, body: String::from_utf8(body).unwrap() }).is_err() {
                    return;
                }
                let text = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = reader.into_inner().write_all(text.as_bytes());
            }
        });
        Hook { url, got, answers }
    }

    pub(crate) fn plan(&self, answer: &str, times: usize) {
        self.answers.lock().unwrap().extend(std::iter::repeat_n(answer.to_owned(), times));
    }

    pub(crate) fn next(&self) -> Got {
        self.got.recv_timeout(Duration::from_secs(30)).expect("no message")
    }

    /// Whether nothing arrives for a while.
    pub(crate) fn is_quiet(&self) -> bool {
        self.got.recv_timeout(Duration::from_millis(150)).is_err()
    }

    /// Adds a hook for this receiver; returns its id and its secret.
    pub(crate) fn add(&self, root: &Client<'_>, on: &[&str]) -> (String, String) {
        let made = root.post("/v1/hooks", &json!({"url": self.url, "on": on, "allow_private": true}));
        assert_eq!(made.status, 201, "{made:?}");
        let text = |name: &str| made.json()[name].as_str().unwrap().to_owned();
        (text("hook"), text("secret"))
    }
}

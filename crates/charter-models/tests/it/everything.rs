//! The reference server of the protocol, `@modelcontextprotocol/server-everything` from npm, as a
//! tool. `MCP_EVERYTHING` names the folder in which it is installed; without it, nothing is tested
//! here.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::tool::{called_at, observed_at};

const ENTRY: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

fn entry() -> Option<PathBuf> {
    let folder = std::env::var_os("MCP_EVERYTHING")?;
    let entry = PathBuf::from(folder).join(ENTRY);
    assert!(entry.exists(), "the server is not installed in MCP_EVERYTHING");
    Some(entry)
}

/// The server over HTTP, which ends with the test.
struct Served(Child, String);

impl Served {
    fn new(entry: &PathBuf) -> Served {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new("node");
        process.arg(entry).arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null());
        let mut child = process.stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.map_while(Result::ok).any(|line| line.contains("listening on port")), "the server has ended");
        Served(child, format!("{{url: 'http://127.0.0.1:{port}/mcp'}}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn its_tools_answer_fail_and_end_over_both_transports() {
    let Some(entry) = entry() else { return };
    let served = Served::new(&entry);
    let program = format!("{{command: [node, '{}', stdio]}}", entry.display());
    for server in [&program, &served.1] {
        let echo = called_at(server, "echo", "arguments: {message: '= \"n is \" + string(input.n)'}").unwrap();
        assert_eq!(echo, json!("Echo: n is 20"), "{server}");
        let sum = called_at(server, "get-sum", "arguments: {a: '= input.n', b: 3}").unwrap();
        assert!(sum.as_str().unwrap().contains("23"), "{sum}");
        let weather = called_at(server, "get-structured-content", "arguments: {location: Chicago}").unwrap();
        assert!(weather["temperature"].is_number(), "{weather}");

        for (tool, arguments) in [("get-sum", "{a: two, b: 3}"), ("no-such-tool", "{}")] {
            let error = called_at(server, tool, &format!("arguments: {arguments}")).unwrap_err();
            assert_eq!((&error["code"], &error["retryable"]), (&json!("tool-failed"), &json!(false)), "{error}");
        }

        // It reports its progress ten times, and then answers.
        let extra = "arguments: {duration: 1, steps: 10}";
        let (long, shown) = observed_at(server, "trigger-long-running-operation", extra);
        assert!(long.unwrap().as_str().unwrap().contains("completed"));
        assert!(shown.len() > 2 && shown.iter().all(|text| text.ends_with(" of 10")), "{shown:?}");

        let begun = Instant::now();
        let extra = "arguments: {duration: 60, steps: 60}\n    attemptTimeout: 1s";
        let late = called_at(server, "trigger-long-running-operation", extra).unwrap_err();
        assert_eq!(late["code"], "timeout", "{late}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

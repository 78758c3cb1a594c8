//! Transport over HTTP and HTTPS.

use std::io::{BufRead, ErrorKind};
use std::time::Duration;

use charter_actors::{
    ClientOptions, Network, client_in, date_of_response, is_refused_certificate, unreachable_through,
};

use crate::transport::{Request, Response, Transport, TransportError};

/// Time limit for connecting.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
pub(crate) const MAX_BYTES: u64 = 8 << 20;

/// Default time limit for the next part of a response, in which a model may think.
const IDLE: Duration = Duration::from_secs(90);

/// Sends requests over HTTP and HTTPS.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    agent: ureq::Agent,
    idle: Duration,
}

impl Default for HttpTransport {
    fn default() -> HttpTransport {
        HttpTransport::new(&Network::default())
    }
}

impl HttpTransport {
    /// Creates a transport with the proxy and the roots of a network.
    #[must_use]
    pub fn new(network: &Network) -> HttpTransport {
        let agent = client_in(network, ClientOptions { connect: Some(CONNECT), ..Default::default() });
        HttpTransport { agent, idle: IDLE }
    }

    /// Sets the time after which a server that sends nothing counts as stalled (90 seconds).
    #[must_use]
    pub fn idle(self, idle: Duration) -> HttpTransport {
        HttpTransport { idle, ..self }
    }
}

impl Transport for HttpTransport {
    fn send(
        &self,
        request: &Request,
        within: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        let failed = |error: &ureq::Error| match error {
            ureq::Error::Timeout(ureq::Timeout::PerRead) => TransportError::Stalled(self.idle.as_secs()),
            ureq::Error::Timeout(ureq::Timeout::Connect) if within > CONNECT => {
                TransportError::Unreachable(unreachable_through(&self.agent, &request.url, error))
            }
            ureq::Error::Timeout(_) => TransportError::Timeout(within.as_secs()),
            other if is_refused_certificate(other) => {
                TransportError::Refused(unreachable_through(&self.agent, &request.url, other))
            }
            other => TransportError::Unreachable(unreachable_through(&self.agent, &request.url, other)),
        };
        let mut post = self.agent.post(&request.url);
        for (name, value) in &request.headers {
            post = post.header(name.as_ref(), value);
        }
        for (name, secret) in &request.secrets {
            post = post.header(*name, secret.expose());
        }
        post = post.header("accept-encoding", "identity");
        let limited = post.config().timeout_global(Some(within)).timeout_per_read(Some(self.idle)).build();
        let mut answer = limited.send(request.body.as_str()).map_err(|e| failed(&e))?;
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let mut response = Response {
            status: answer.status().as_u16(),
            content_type: header("content-type").unwrap_or_default(),
            retry_after: header("retry-after"),
            date: date_of_response(header("retry-after").as_deref(), header("date")),
            body: String::new(),
            replayed: false,
        };
        let accepted = answer.status().is_success();
        if accepted && !line("") {
            return Err(TransportError::Cancelled);
        }
        let encoding = header("content-encoding").filter(|e| !e.eq_ignore_ascii_case("identity"));
        let mut reader = std::io::BufReader::new(answer.body_mut().with_config().limit(MAX_BYTES).reader());
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len();
            let read = read_line(&mut reader, &mut bytes);
            if bytes.get(start.saturating_sub(1)..) == Some(b"\r\n") {
                // The line has ended with the first of both.
                continue;
            }
            let last = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
            let goes_on = last.is_empty() || line(last.trim_end_matches(['\n', '\r']));
            match read {
                Ok(0) => break,
                Ok(_) if goes_on => {}
                Ok(_) => return Err(TransportError::Cancelled),
                // The status says why there is no answer.
                Err(_) if !accepted => break,
                Err(_) if bytes.len() as u64 >= MAX_BYTES => return Err(TransportError::TooLarge(MAX_BYTES)),
                Err(e) => return Err(failed(&ureq::Error::from(e))),
            }
        }
        response.body = match (encoding, String::from_utf8(bytes)) {
            (None, Ok(body)) => body,
            (Some(_), _) if !accepted => String::new(),
            (None, Err(e)) if !accepted => String::from_utf8_lossy(e.as_bytes()).into_owned(),
            (None, Err(e)) => {
                return Err(TransportError::Protocol(format!("it is not valid UTF-8 ({})", e.utf8_error())));
            }
            (Some(encoding), _) => {
                let shown: String = encoding.chars().take(40).collect();
                return Err(TransportError::Protocol(format!(
                    "it is compressed (`content-encoding: {shown}`), although the request asked for an uncompressed one"
                )));
            }
        };
        Ok(response)
    }
}

/// Adds bytes up to the next CR or LF, and returns how many. In a stream, either ends a line.
pub(crate) fn read_line(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut count = 0_usize;
    loop {
        let buffer = match reader.fill_buf() {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = buffer.iter().position(|b| matches!(b, b'\r' | b'\n'));
        let taken = end.map_or(buffer.len(), |at| at.saturating_add(1));
        bytes.extend_from_slice(buffer.get(..taken).unwrap_or_default());
        reader.consume(taken);
        count = count.saturating_add(taken);
        if end.is_some() || taken == 0 {
            return Ok(count);
        }
    }
}

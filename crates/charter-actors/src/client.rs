//! The HTTP client of everything here that speaks HTTP: actors, models, tools, the exporter of
//! spans.

use std::time::Duration;

/// Time limits of a client; a request may have its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Time limit for connecting.
    pub connect: Option<Duration>,
    /// Time limit of a whole request.
    pub request: Option<Duration>,
}

/// Makes a client.
///
/// It follows no redirect and takes no proxy from the environment, so a key goes only where it was
/// meant to go. A status of any kind is a response, not an error. `https` needs the feature `tls`.
#[must_use]
pub fn http_client(options: ClientOptions) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .user_agent(concat!("charter/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(options.connect)
        .timeout_global(options.request)
        .build();
    config.into()
}

//! Programs that talk to other machines.

use std::net::Ipv4Addr;

use super::expand::Arg;
use super::options::Options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;

/// Upper limit of the name of a machine.
const MAX_NAME_BYTES: usize = 253;

/// Programs that talk to other machines; what else they do is not looked at.
const PROGRAMS: &[&str] = &[
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "ftp",
    "telnet",
    "ping",
    "dig",
    "nslookup",
    "host",
    "gh",
    "glab",
    "hub",
    "aws",
    "gcloud",
    "az",
    "kubectl",
    "helm",
    "docker",
    "podman",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bun",
    "pip",
    "pip3",
    "pipx",
    "uv",
    "uvx",
    "poetry",
    "gem",
    "bundle",
    "brew",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "apk",
    "http",
    "https",
    "xh",
    "curlie",
    "openssl",
    "mail",
    "sendmail",
    "terraform",
    "ansible",
    "vercel",
    "fly",
    "heroku",
    "twine",
];

const CURL: Options = Options {
    flags: "sSfLIvkigG46#jqNO",
    valued: "XHAeumodFTrC",
    long: "silent show-error fail location head verbose insecure include get compressed http1.1 http2 fail-with-body no-progress-meter \
           progress-bar remote-name retry-connrefused",
    long_valued: "request header user-agent referer user max-time output data data-raw data-binary data-urlencode json form \
                  upload-file connect-timeout retry retry-delay write-out url max-redirs",
};

/// Whether this module has a model of a program.
pub(super) fn knows(program: &str) -> bool {
    program == "curl" || PROGRAMS.contains(&program)
}

/// Schemes of addresses whose machine is where it is expected.
const SCHEMES: &[&str] = &["http", "https", "ssh", "git", "ftp", "ws", "wss"];

/// The machine that an address names, if all programs read it alike. They differ about backslashes,
/// control characters, several `@`, and what may end the name: such an address names none.
pub(crate) fn host(address: &str) -> Option<String> {
    if !address.chars().all(|c| c.is_ascii_graphic() && c != '\\') {
        return None;
    }
    let (scheme, rest) = address.split_once("://")?;
    if !SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) {
        return None;
    }
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    let (user, place) = authority.split_once('@').unwrap_or(("", authority));
    let (name, port) = place.split_once(':').unwrap_or((place, "0"));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:".contains(c);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (user.chars().all(plain) && is_port).then(|| machine(name))?
}

/// The name of a machine, or its address in the one spelling that has no other reading.
pub(super) fn machine(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_label =
        |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.chars().all(plain);
    let labels: Vec<&str> = name.split('.').collect();
    if name.len() > MAX_NAME_BYTES || !labels.iter().all(|label| is_label(label)) {
        return None;
    }
    // Such as `127.1`, `0x7f000001`, `0177.0.0.1`.
    let is_number = labels.last().is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()));
    (!is_number || name.parse::<Ipv4Addr>().is_ok()).then(|| name.to_ascii_lowercase())
}

impl Shell<'_> {
    pub(super) fn network(&mut self, host: Option<&str>) {
        self.does("network");
        self.description.network(host);
    }

    pub(super) fn pushes_to(&mut self, host: Option<&str>) {
        self.does("network");
        self.description.pushes_to(host);
    }

    /// Follows a program that talks to other machines; `false` if it is none.
    pub(super) fn networking(&mut self, program: &str, args: &[Arg]) -> bool {
        if program == "curl" {
            self.curl(args);
            return true;
        }
        if !PROGRAMS.contains(&program) {
            return false;
        }
        self.network_each(args);
        self.opaque(format!("`{program}`: what it does is not known to the guard"));
        true
    }

    /// Adds every machine that an argument names; if none does, the program does not say to which.
    fn network_each(&mut self, args: &[Arg]) {
        let mut named = false;
        for arg in args {
            let address = arg.exact();
            if address.is_none_or(|text| text.contains("://")) {
                self.network(address.and_then(host).as_deref());
                named = true;
            }
        }
        if !named {
            self.network(None);
        }
    }

    fn curl(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("curl", args, CURL) else {
            self.network(None);
            return;
        };
        let mut addresses = parsed.positional.clone();
        addresses.extend(parsed.values(&["url"]));
        for address in &addresses {
            let text = address.exact();
            // Patterns in an address are expanded by curl itself.
            match text.filter(|text| !text.contains(['{', '['])).and_then(host) {
                Some(host) => self.network(Some(&host)),
                None => {
                    self.network(None);
                    self.opaque("an address of `curl` that is not known");
                }
            }
        }
        // Where it is sent on to is not known.
        if addresses.is_empty() || parsed.has(&["L", "location"]) {
            self.network(None);
        }
        self.touch_all(&parsed.values(&["o", "output"]), Usage::Write, Depth::One);
        self.touch_all(&parsed.values(&["T", "upload-file"]), Usage::Read, Depth::One);
        if parsed.has(&["O", "remote-name"]) {
            for address in &addresses {
                let name =
                    address.text.split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
                self.touch(&Arg::literal(&format!("./{name}")), Usage::Write, Depth::One);
            }
        }
        let data = ["d", "data", "data-binary", "data-urlencode", "json", "F", "form", "H", "header", "w", "write-out"];
        for value in parsed.values(&data) {
            // `@file`, `name=@file`, `name=<file`.
            match value.exact() {
                Some(text) if text.contains('@') || text.contains("=<") => {
                    let file = text.split_once('@').map_or("", |(_, file)| file);
                    let file = file.split([';', ',']).next().unwrap_or_default();
                    let literal = matches!(file, "" | "-") || file.contains(' ');
                    if literal || text.contains("=<") {
                        self.opaque("data of `curl` that is not known");
                    } else {
                        self.touch(&Arg::literal(file), Usage::Read, Depth::One);
                    }
                }
                Some(_) => {}
                None => self.opaque("data of `curl` that is not known"),
            }
        }
    }
}

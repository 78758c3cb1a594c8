//! Programs that talk to other machines.

use super::expand::Arg;
use super::options::Options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;

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

/// The machine that an address names.
pub(crate) fn host(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https" | "ssh" | "git" | "ftp" | "ws" | "wss") {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, port)| if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host });
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_ascii_lowercase())
}

impl Shell<'_> {
    /// Follows a program that talks to other machines; `false` if it is none.
    pub(super) fn networking(&mut self, program: &str, args: &[Arg]) -> bool {
        if program == "curl" {
            self.curl(args);
            return true;
        }
        if !PROGRAMS.contains(&program) {
            return false;
        }
        self.network(args.iter().filter_map(Arg::exact).find_map(host).as_deref());
        self.opaque(format!("`{program}`: what it does is not known to the guard"));
        true
    }

    fn curl(&mut self, args: &[Arg]) {
        let before = self.description.hosts.len();
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
        if self.description.hosts.len() == before {
            self.does("network");
            self.description.does.network = true;
        }
        // Where it is sent on to is not known.
        if parsed.has(&["L", "location"]) {
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

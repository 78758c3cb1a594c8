//! Files that probably hold secrets, by their names.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Names that usually hold secrets, as in a `.gitignore`.
pub const SECRETS: &[&str] = &[
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    ".ssh/",
    ".aws/",
    ".gnupg/",
    ".azure/",
    // A pattern with a slash inside is for the top folder only, without the stars.
    "**/.config/gcloud/",
    "**/.config/gh/",
    "**/.config/hub",
    "**/.kube/config",
    "**/.docker/config.json",
    "**/.terraform.d/credentials.tfrc.json",
    "**/.claude/.credentials.json",
    ".claude.json",
    "**/.codex/auth.json",
    "**/.gemini/oauth_creds.json",
    "**/.copilot/config.json",
    "**/.cargo/credentials.toml",
    "**/run/secrets/",
    "application_default_credentials.json",
    "service-account*.json",
    ".vault-token",
    ".password-store/",
    ".my.cnf",
    ".htpasswd",
    ".envrc",
    "*.env",
    "*_rsa",
    "*_ed25519",
    ".*_history",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "*.keystore",
    "*.tfstate",
    "credentials",
    "credentials.json",
    "secrets.*",
    "shadow",
];

/// The names, ready to be matched.
pub(crate) struct Secrets(Gitignore);

impl Secrets {
    pub(crate) fn new() -> Secrets {
        let mut builder = GitignoreBuilder::new("/");
        for pattern in SECRETS {
            // All of them are valid, which a test checks.
            let _ = builder.add_line(None, pattern);
        }
        Secrets(builder.build().unwrap_or_else(|_| Gitignore::empty()))
    }

    /// Whether a file has such a name, or is in such a folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.matched_path_or_any_parents(Path::new("/").join(path), false).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::{SECRETS, Secrets};

    #[test]
    fn every_pattern_counts() {
        let secrets = Secrets::new();
        let ignored = SECRETS.iter().filter(|pattern| !pattern.starts_with('!')).count();
        assert_eq!(secrets.0.num_ignores(), u64::try_from(ignored).unwrap());
        for path in [".env", "a/.env.local", "deploy/id_rsa", "keys/server.pem", ".ssh/config", "a/.aws/x/y"] {
            assert!(secrets.has(path), "{path}");
        }
        for path in [".env.example", "environment.rs", "src/secretive.rs", "README.md"] {
            assert!(!secrets.has(path), "{path}");
        }
    }
}

//! A model: its provider, name, address and key.

use std::sync::Arc;
use std::time::Duration;

use charter_actors::{Secret, Secrets, is_this_machine};
use serde::Deserialize;

use crate::limits::Limits;
use crate::price::Price;

/// Default maximum number of tokens in an answer: room for models that think.
const MAX_TOKENS: u32 = 16_384;

/// A provider, which determines the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI's chat completions API, and other servers with that API (Ollama, vLLM, llama.cpp, LM
    /// Studio, OpenRouter).
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Azure's OpenAI service (`https://RESOURCE.openai.azure.com/openai/v1`): OpenAI's API with
    /// another header for the key. The name of a model is that of its deployment.
    Azure,
}

impl Provider {
    /// The providers with an address of their own.
    pub const ALL: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];

    /// The name of the provider in configurations: `openai`, `anthropic`, `gemini`, `azure`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
            Provider::Gemini => "gemini",
            Provider::Azure => "azure",
        }
    }

    /// The default address of the provider; empty for Azure, which has one for each customer.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        match self {
            Provider::OpenAi => "https://api.openai.com/v1",
            Provider::Anthropic => "https://api.anthropic.com/v1",
            Provider::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Provider::Azure => "",
        }
    }
}

/// Why a string is not the name or the address of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The string is not `PROVIDER:NAME`.
    #[error("invalid model `{0}`: expected `PROVIDER:NAME` with one of the providers `{known}`", known = providers())]
    Form(String),
    /// The provider is unknown.
    #[error("unknown provider `{0}`: expected one of `{known}`", known = providers())]
    Provider(String),
    /// The name contains a character that is not allowed in model names.
    #[error("invalid model name `{0}`: expected letters, digits and `. _ - / : @ +`")]
    Name(String),
    /// The address is not an `http` or `https` address.
    #[error("invalid address `{0}`: expected `http://` or `https://`")]
    Address(String),
    /// The address is not encrypted and of another machine.
    #[error("`{0}`: `http` is not encrypted and is allowed only to this machine; use `https`")]
    Plain(String),
    /// The address has no host, or has a user name or password.
    #[error("invalid address: it needs a host, and must not have a user name or password; set the key separately")]
    Host,
    /// The address has a query or a fragment. It is not shown, because it may be a key.
    #[error(
        "invalid address: it has a query or a fragment (`?`, `#`), but the path of each request is added at its end; set the address without it, and the key separately"
    )]
    Query,
    /// A header cannot be sent.
    #[error("cannot send the header `{0}`: {1}")]
    Header(String, &'static str),
}

fn providers() -> String {
    Provider::ALL.map(Provider::word).join("`, `")
}

/// A model and how to reach it.
#[derive(Debug, Clone)]
pub struct Model {
    /// The provider, which determines the wire format.
    pub provider: Provider,
    /// The host's name for the provider.
    pub host: String,
    /// The provider's name for the model.
    pub name: String,
    /// Address of the server, without a trailing slash.
    pub base_url: String,
    /// The API key; a local server may need none.
    pub key: Option<Secret>,
    /// Keys of other models of the host. They are not sent, and are removed like the own one.
    pub others: Vec<Secret>,
    /// Maximum number of tokens in an answer, thoughts included, unless the actor sets it
    /// (`maxTokens`) or the budget leaves fewer.
    pub max_tokens: u32,
    /// Maximum number of attempts to send a request if the server is busy or fails.
    pub max_attempts: u32,
    /// Pause before the second attempt, unless the server requests another one; doubled each time,
    /// and shortened by a random part of up to a half.
    pub first_pause: Duration,
    /// Further headers of each request, without secrets.
    pub headers: Vec<(String, String)>,
    /// Limits that all models of the provider share.
    pub limits: Option<Arc<Limits>>,
    /// What its tokens cost, if that is known.
    pub price: Option<Price>,
    /// Whether it is the model of a cassette.
    pub recorded: bool,
}

impl Model {
    /// Parses `PROVIDER:NAME`, e.g. `openai:gpt-5-mini` or `anthropic:claude-sonnet-4-5`.
    ///
    /// # Errors
    /// The text has a different form or names an unknown provider.
    pub fn parse(text: &str) -> Result<Model, ModelError> {
        let Some((provider, name)) = text.split_once(':') else {
            return Err(ModelError::Form(text.to_owned()));
        };
        let provider = Provider::ALL
            .into_iter()
            .find(|p| p.word() == provider.trim())
            .ok_or_else(|| ModelError::Provider(provider.to_owned()))?;
        Model::provider(provider.word(), provider).named(name.trim())
    }

    /// Any model of a provider, which has this name on this host; see [`Model::named`].
    #[must_use]
    pub fn provider(host: &str, provider: Provider) -> Model {
        Model {
            provider,
            host: host.to_owned(),
            name: host.to_owned(),
            base_url: provider.base_url().to_owned(),
            key: None,
            others: Vec::new(),
            max_tokens: MAX_TOKENS,
            max_attempts: 4,
            first_pause: Duration::from_secs(1),
            headers: Vec::new(),
            limits: None,
            price: None,
            recorded: false,
        }
    }

    /// Another model of the same provider.
    ///
    /// # Errors
    /// The name is empty or has a character that names of models do not have.
    pub fn named(&self, name: &str) -> Result<Model, ModelError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
        if name.is_empty() || name.contains("..") || !name.chars().all(allowed) {
            return Err(ModelError::Name(name.to_owned()));
        }
        Ok(Model { name: name.to_owned(), ..self.clone() })
    }

    /// Adds a header to each request.
    ///
    /// # Errors
    /// The header cannot be sent, or is one that this program sends itself.
    pub fn header(mut self, name: &str, value: &str) -> Result<Model, ModelError> {
        check_header(name, value)?;
        self.headers.push((name.to_lowercase(), value.to_owned()));
        Ok(self)
    }

    /// Sets the address, e.g. `http://127.0.0.1:11434/v1`.
    ///
    /// # Errors
    /// The text is not an `http` or `https` address, it has a user name, a password or a query, or
    /// it is an `http` address of another machine.
    pub fn at(self, base_url: &str) -> Result<Model, ModelError> {
        let model = self.at_insecure(base_url)?;
        let host = model.base_url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let name =
            host.map(|host| host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(name, _)| name));
        match name.is_none_or(is_this_machine) {
            true => Ok(model),
            false => Err(ModelError::Plain(model.base_url)),
        }
    }

    /// Sets the address like [`Model::at`], also a plain `http` one of another machine, to which
    /// prompts and the key are sent unencrypted.
    ///
    /// # Errors
    /// See [`Model::at`].
    pub fn at_insecure(mut self, base_url: &str) -> Result<Model, ModelError> {
        let rest = base_url
            .strip_prefix("https://")
            .or_else(|| base_url.strip_prefix("http://"))
            .ok_or_else(|| ModelError::Address(base_url.to_owned()))?;
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() || host.contains('@') {
            return Err(ModelError::Host);
        }
        if rest.contains(['?', '#']) {
            return Err(ModelError::Query);
        }
        self.base_url = base_url.trim_end_matches('/').to_owned();
        Ok(self)
    }

    /// Sets the API key.
    #[must_use]
    pub fn key(mut self, key: Secret) -> Model {
        self.key = Some(key);
        self
    }

    /// What the key of the model is set with, as far as this is known.
    pub(crate) fn key_variable(&self) -> &'static str {
        match self.provider {
            provider if self.base_url != provider.base_url() => {
                "CHARTER_MODEL_KEY for the address of `--model-url`, or `key` of the provider in the file of `--models`"
            }
            Provider::OpenAi => "OPENAI_API_KEY",
            Provider::Anthropic => "ANTHROPIC_API_KEY",
            Provider::Gemini => "GEMINI_API_KEY",
            Provider::Azure => "`key` of the provider in the file of `--models`",
        }
    }

    /// The secrets that are removed from everything that is kept or shown.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        self.key.iter().chain(&self.others).collect()
    }

    /// Renders `PROVIDER:NAME`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}:{}", self.host, self.name)
    }
}

/// Headers that say what a request is, or carry its key.
const OWN_HEADERS: [&str; 14] = [
    "accept-encoding",
    "anthropic-version",
    "api-key",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "x-api-key",
    "x-goog-api-key",
];

/// Checks a header of a configuration.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), ModelError> {
    let wrong = |why| Err(ModelError::Header(name.to_owned(), why));
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return wrong("its name may have letters, digits, `-` and `_` only");
    }
    if OWN_HEADERS.contains(&name.to_lowercase().as_str()) {
        return wrong("it is set by this program; keys are set in the environment");
    }
    if value.is_empty() || value.len() > 1_000 || !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return wrong("its value must be a text of 1 to 1000 visible ASCII characters");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Model, Provider};

    #[test]
    fn names() {
        let model = Model::parse("openai:meta/llama-3.1:8b").unwrap();
        assert_eq!((model.provider, model.name.as_str()), (Provider::OpenAi, "meta/llama-3.1:8b"));
        assert_eq!(model.title(), "openai:meta/llama-3.1:8b");
        assert_eq!(
            Model::parse("gpt-5").unwrap_err().to_string(),
            "invalid model `gpt-5`: expected `PROVIDER:NAME` with one of the providers `openai`, `anthropic`, `gemini`"
        );
        for wrong in ["acme:x", "openai:", "gemini:../../x", "gemini:a b", "gemini:a?key=b"] {
            assert!(Model::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses() {
        let model = Model::parse("openai:m").unwrap().at("http://127.0.0.1:1/v1/").unwrap();
        assert_eq!(model.base_url, "http://127.0.0.1:1/v1");
        for right in ["http://localhost", "http://[::1]:80/v1", "http://127.9.9.9/v1", "https://a.example"] {
            assert!(Model::parse("openai:m").unwrap().at(right).is_ok(), "{right}");
        }
        assert!(Model::parse("openai:m").unwrap().at_insecure("http://a.example").is_ok());
        for wrong in [
            "127.0.0.1",
            "file:///x",
            "https://",
            "https://user:pass@host/v1",
            "https://host/v1?key=secret99",
            "https://host?key=secret99",
            "http://127.0.0.1:1/v1#secret99",
            "http://a.example/v1",
            "http://a.example:80",
            "http://[::2]:80/v1",
        ] {
            let error = Model::parse("openai:m").unwrap().at(wrong).unwrap_err();
            assert!(!error.to_string().contains("secret99"), "{error}");
        }
    }
}

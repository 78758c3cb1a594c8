//! Which model is asked, and where.

use crate::secret::Secret;

/// Whose wire format is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI's chat completions, and every server that speaks them (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter).
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Provider {
    /// All of them.
    pub const ALL: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];

    /// The word in configurations: `openai`, `anthropic`, `gemini`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
            Provider::Gemini => "gemini",
        }
    }

    /// Where the provider itself listens.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        match self {
            Provider::OpenAi => "https://api.openai.com/v1",
            Provider::Anthropic => "https://api.anthropic.com/v1",
            Provider::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }
}

/// A model to ask.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its wire format.
    pub provider: Provider,
    /// Its name there.
    pub name: String,
    /// Where: without a slash at the end.
    pub base_url: String,
    /// What opens the door; a local server needs none.
    pub key: Option<Secret>,
    /// The most tokens of one answer, unless a budget leaves fewer.
    pub most_tokens: u32,
    /// How often a request is sent at most when the server is busy or broken.
    pub attempts: u32,
}

impl Model {
    /// Reads `PROVIDER:NAME`, e.g. `openai:gpt-5-mini` or `anthropic:claude-sonnet-4-5`.
    ///
    /// # Errors
    /// One sentence.
    pub fn parse(text: &str) -> Result<Model, String> {
        let known = || Provider::ALL.map(Provider::word).join("`, `");
        let Some((provider, name)) = text.split_once(':') else {
            return Err(format!(
                "`{text}` names no model; write `PROVIDER:NAME`, with one of `{}` as the provider",
                known()
            ));
        };
        let provider = Provider::ALL
            .into_iter()
            .find(|p| p.word() == provider.trim())
            .ok_or_else(|| format!("`{provider}` is none of the providers `{}`", known()))?;
        let name = name.trim();
        let fine = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
        if name.is_empty() || name.contains("..") || !name.chars().all(fine) {
            return Err(format!("`{name}` is no name of a model; letters, digits and `. _ - / : @ +` are allowed"));
        }
        Ok(Model {
            provider,
            name: name.to_owned(),
            base_url: provider.base_url().to_owned(),
            key: None,
            most_tokens: 4096,
            attempts: 4,
        })
    }

    /// At another address, e.g. `http://127.0.0.1:11434/v1`.
    ///
    /// # Errors
    /// One sentence: it is no `http` or `https` address, or it holds a name and password.
    pub fn at(mut self, base_url: &str) -> Result<Model, String> {
        let rest = base_url
            .strip_prefix("https://")
            .or_else(|| base_url.strip_prefix("http://"))
            .ok_or_else(|| format!("`{base_url}` is no address of a server; it begins with `http://` or `https://`"))?;
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() || host.contains('@') {
            return Err(
                "the address of a server has a host, and no name or password in front of it; give the key apart".into(),
            );
        }
        self.base_url = base_url.trim_end_matches('/').to_owned();
        Ok(self)
    }

    /// With a key.
    #[must_use]
    pub fn key(mut self, key: Secret) -> Model {
        self.key = Some(key);
        self
    }

    /// `PROVIDER:NAME`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}:{}", self.provider.word(), self.name)
    }
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
            Model::parse("gpt-5").unwrap_err(),
            "`gpt-5` names no model; write `PROVIDER:NAME`, with one of `openai`, `anthropic`, `gemini` as the provider"
        );
        for wrong in ["acme:x", "openai:", "gemini:../../x", "gemini:a b", "gemini:a?key=b"] {
            assert!(Model::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses() {
        let model = Model::parse("openai:m").unwrap().at("http://127.0.0.1:1/v1/").unwrap();
        assert_eq!(model.base_url, "http://127.0.0.1:1/v1");
        for wrong in ["127.0.0.1", "file:///x", "https://", "https://user:pass@host/v1"] {
            assert!(Model::parse("openai:m").unwrap().at(wrong).is_err(), "{wrong}");
        }
    }
}

//! How an actor wants to be answered: limits, randomness, effort, and the mode in which the model
//! is held to the schema.

use charter_actors::ConfigError;
use charter_kernel::definition::ActorDecl;

use crate::model::{Model, Provider};

/// Keys of the configuration.
pub(crate) const KEYS: [&str; 5] = ["maxTokens", "temperature", "effort", "outputMode", "promptCaching"];
/// Minimum of `maxTokens`.
const MIN_TOKENS: u64 = 16;
/// The least tokens for thoughts that Anthropic takes, and Gemini.
const MIN_THOUGHTS: u32 = 1_024;
const MIN_THOUGHTS_OF_GEMINI: u32 = 128;
/// The highest `temperature` of Anthropic.
const MAX_TEMPERATURE_OF_ANTHROPIC: f64 = 1.0;

/// How an actor wants to be answered. What is `None` is left to the model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Settings {
    /// Maximum number of tokens in an answer, thoughts included.
    pub max_tokens: Option<u32>,
    /// Randomness, 0 to 2.
    pub temperature: Option<f64>,
    /// How much the model thinks.
    pub effort: Option<Effort>,
    /// The first mode to try.
    pub mode: Option<OutputMode>,
    /// Whether a provider that does not cache prompts by itself (Anthropic) is asked to.
    pub prompt_caching: bool,
}

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

impl Effort {
    const ALL: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

    /// The name: `low`, `medium`, `high`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// The number of tokens for thoughts, where a provider wants one.
    pub(crate) fn tokens(self) -> u32 {
        match self {
            Effort::Low => 1_024,
            Effort::Medium => 4_096,
            Effort::High => 16_384,
        }
    }
}

/// How a model is held to the schema of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// The provider enforces the schema.
    JsonSchema,
    /// The answer is the input of a tool with the schema.
    Tool,
    /// The provider enforces JSON; the schema is in the prompt.
    JsonObject,
    /// The schema is in the prompt.
    Text,
}

impl OutputMode {
    pub(crate) const ALL: [OutputMode; 4] =
        [OutputMode::JsonSchema, OutputMode::Tool, OutputMode::JsonObject, OutputMode::Text];

    /// The name in configurations: `json_schema`, `tool`, `json_object`, `text`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            OutputMode::JsonSchema => "json_schema",
            OutputMode::Tool => "tool",
            OutputMode::JsonObject => "json_object",
            OutputMode::Text => "text",
        }
    }

    /// Whether the schema is in the prompt.
    pub(crate) fn in_prompt(self) -> bool {
        matches!(self, OutputMode::JsonObject | OutputMode::Text)
    }

    /// The mode for a provider: the wanted one, or the nearest that its wire format has. Gemini's
    /// does not combine modes with tools.
    pub(crate) fn first(wanted: Option<OutputMode>, provider: Provider, tools: bool) -> OutputMode {
        match (provider, wanted) {
            (Provider::Gemini, _) if tools => OutputMode::Text,
            (Provider::Anthropic, None | Some(OutputMode::JsonSchema)) => OutputMode::Tool,
            (Provider::Anthropic, Some(OutputMode::JsonObject)) => OutputMode::Text,
            (Provider::Gemini, Some(OutputMode::Tool)) => OutputMode::JsonSchema,
            (_, wanted) => wanted.unwrap_or(OutputMode::JsonSchema),
        }
    }

    /// The mode to try if a server refuses this one.
    pub(crate) fn next(self, provider: Provider) -> Option<OutputMode> {
        match (self, provider) {
            (OutputMode::Text, _) => None,
            (OutputMode::JsonSchema | OutputMode::Tool, Provider::OpenAi | Provider::Azure | Provider::Gemini) => {
                Some(OutputMode::JsonObject)
            }
            _ => Some(OutputMode::Text),
        }
    }

    /// Whether the message of a server that rejects a request is about this mode.
    pub(crate) fn is_blamed(self, message: &str) -> bool {
        let message = message.to_lowercase();
        let words: &[&str] = match self {
            OutputMode::JsonSchema => {
                &["response_format", "json_schema", "schema", "structured", "responsemimetype", "json mode"]
            }
            OutputMode::Tool => &["tool", "function"],
            OutputMode::JsonObject => &["response_format", "json_object", "responsemimetype", "json mode"],
            OutputMode::Text => &[],
        };
        words.iter().any(|word| message.contains(word))
    }
}

/// The least tokens for thoughts of a provider that wants a number of them.
fn least_thoughts(provider: Provider) -> Option<u32> {
    match provider {
        Provider::Anthropic => Some(MIN_THOUGHTS),
        Provider::Gemini => Some(MIN_THOUGHTS_OF_GEMINI),
        Provider::OpenAi | Provider::Azure => None,
    }
}

impl Settings {
    /// The tokens for thoughts, where the provider wants a number: at most half of the limit of the
    /// answer, in which they count. `None`: no effort is set, or half of the limit is too few.
    pub(crate) fn thoughts(&self, provider: Provider, max_tokens: u32) -> Option<u32> {
        let least = least_thoughts(provider)?;
        self.effort.map(|effort| effort.tokens().min(max_tokens / 2)).filter(|tokens| *tokens >= least)
    }

    /// Says why the effort is not sent with this limit of the answer; `None`: it is, or there is
    /// none.
    pub(crate) fn lacks_thoughts(&self, model: &Model, max_tokens: u32) -> Option<String> {
        let least = self.effort.and_then(|_| least_thoughts(model.provider))?;
        self.thoughts(model.provider, max_tokens).is_none().then(|| {
            let (title, double) = (model.title(), least.saturating_mul(2));
            format!(
                "`{title}` thinks with at least {least} tokens, and with at most half of those of the answer, {max_tokens}; `effort` needs {double}"
            )
        })
    }

    /// Checks the settings for the models of an actor.
    pub(crate) fn check(&self, models: &[Model]) -> Result<(), ConfigError> {
        for model in models {
            if let Some(why) = self.max_tokens.and_then(|most| self.lacks_thoughts(model, most)) {
                return Err(ConfigError::Other(format!("`maxTokens`: {why}: raise `maxTokens`, or remove `effort`")));
            }
            let is_sent = model.provider == Provider::Anthropic && self.effort.is_none();
            if let Some(t) = self.temperature.filter(|t| is_sent && *t > MAX_TEMPERATURE_OF_ANTHROPIC) {
                let title = model.title();
                return Err(ConfigError::Other(format!("`temperature`: `{title}` takes 0 to 1, found `{t}`")));
            }
        }
        Ok(())
    }

    /// Reads the settings in the configuration of an actor.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn read(decl: &ActorDecl) -> Result<Settings, ConfigError> {
        let get = |key: &str| decl.config.get(key).filter(|value| !value.is_null());
        let max_tokens = get("maxTokens").map(|value| {
            let count = value.as_u64().filter(|n| *n >= MIN_TOKENS).and_then(|n| u32::try_from(n).ok());
            count.ok_or_else(|| ConfigError::invalid("maxTokens", "a number of at least 16", value))
        });
        let temperature = get("temperature").map(|value| {
            let number = value.as_f64().filter(|t| (0.0..=2.0).contains(t));
            number.ok_or_else(|| ConfigError::invalid("temperature", "a number from 0 to 2", value))
        });
        let effort = get("effort").map(|value| {
            let found = Effort::ALL.into_iter().find(|effort| Some(effort.word()) == value.as_str());
            found.ok_or_else(|| ConfigError::invalid("effort", "`low`, `medium` or `high`", value))
        });
        let mode = get("outputMode").map(|value| {
            let found = OutputMode::ALL.into_iter().find(|mode| Some(mode.word()) == value.as_str());
            let expected = "`json_schema`, `tool`, `json_object` or `text`";
            found.ok_or_else(|| ConfigError::invalid("outputMode", expected, value))
        });
        let caching = get("promptCaching").map(|value| {
            value.as_bool().ok_or_else(|| ConfigError::invalid("promptCaching", "`true` or `false`", value))
        });
        Ok(Settings {
            max_tokens: max_tokens.transpose()?,
            temperature: temperature.transpose()?,
            effort: effort.transpose()?,
            mode: mode.transpose()?,
            prompt_caching: caching.transpose()?.unwrap_or_default(),
        })
    }
}

//! The counts of tokens that servers report.

use serde_json::Value as Json;

use super::count;
use crate::exchange::Usage;
use crate::model::Provider;

/// What a value with counts has, in the meaning of [`Usage`]: what was read from a cache and
/// written to it is a part of `input`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) cache_written: Option<u64>,
}

impl Counts {
    /// Reads a value that [`places`] names.
    pub(super) fn read(provider: Provider, usage: &Json) -> Counts {
        let of = |pointer: &str| count(usage, pointer);
        match provider {
            Provider::OpenAi | Provider::Azure => Counts {
                input: of("/prompt_tokens"),
                output: of("/completion_tokens"),
                cached: of("/prompt_tokens_details/cached_tokens"),
                cache_written: None,
            },
            Provider::Anthropic => {
                // Anthropic counts these separately.
                let (cached, cache_written) = (of("/cache_read_input_tokens"), of("/cache_creation_input_tokens"));
                let besides = cached.unwrap_or_default().saturating_add(cache_written.unwrap_or_default());
                let input = of("/input_tokens").map(|input| input.saturating_add(besides));
                Counts { input, output: of("/output_tokens"), cached, cache_written }
            }
            Provider::Gemini => {
                let written = [of("/candidatesTokenCount"), of("/thoughtsTokenCount")];
                // What Google's own tools have found is counted separately.
                let found = of("/toolUsePromptTokenCount").unwrap_or_default();
                Counts {
                    input: of("/promptTokenCount").map(|input| input.saturating_add(found)),
                    output: written.into_iter().flatten().reduce(u64::saturating_add),
                    cached: of("/cachedContentTokenCount"),
                    cache_written: None,
                }
            }
        }
    }

    /// The usage; `None` if the tokens read or written are not among the counts.
    pub(super) fn usage(self) -> Option<Usage> {
        Some(Usage {
            input: self.input?,
            output: self.output?,
            cached: self.cached.unwrap_or_default(),
            cache_written: self.cache_written.unwrap_or_default(),
            ..Usage::default()
        })
    }
}

/// Where a value of the body reports tokens.
pub(super) fn places(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::OpenAi | Provider::Azure => &["/usage"],
        Provider::Anthropic => &["/message/usage", "/usage"],
        Provider::Gemini => &["/usageMetadata"],
    }
}

//! The counts of tokens that servers report.

use serde_json::Value as Json;

use super::count;
use crate::exchange::Usage;
use crate::model::Provider;

/// What servers report of one request; each count may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tokens read, in the words of the provider: Anthropic counts those of a cache `apart`.
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) cache_written: Option<u64>,
    apart: bool,
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
                ..Counts::default()
            },
            Provider::Anthropic => Counts {
                input: of("/input_tokens"),
                output: of("/output_tokens"),
                cached: of("/cache_read_input_tokens"),
                cache_written: of("/cache_creation_input_tokens"),
                apart: true,
            },
            Provider::Gemini => {
                let written = [of("/candidatesTokenCount"), of("/thoughtsTokenCount")];
                // What Google's own tools have found is counted separately.
                let found = of("/toolUsePromptTokenCount").unwrap_or_default();
                Counts {
                    input: of("/promptTokenCount").map(|input| input.saturating_add(found)),
                    output: written.into_iter().flatten().reduce(u64::saturating_add),
                    cached: of("/cachedContentTokenCount"),
                    ..Counts::default()
                }
            }
        }
    }

    /// The larger one of each count: servers report the same again, or more, because the counts of
    /// a stream are totals.
    pub(super) fn larger(self, other: Counts) -> Counts {
        Counts {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cached: self.cached.max(other.cached),
            cache_written: self.cache_written.max(other.cache_written),
            apart: self.apart || other.apart,
        }
    }

    /// All tokens read, those of a cache included; `None`: not reported.
    pub(super) fn all_input(self) -> Option<u64> {
        let besides = self.cached.unwrap_or_default().saturating_add(self.cache_written.unwrap_or_default());
        self.input.map(|input| if self.apart { input.saturating_add(besides) } else { input })
    }

    /// The usage. What is not reported is one of these estimates.
    pub(crate) fn usage_or(self, input: u64, output: u64) -> Usage {
        let read = self.all_input();
        Usage {
            input: read.unwrap_or(input),
            output: self.output.unwrap_or(output),
            cached: self.cached.unwrap_or_default(),
            cache_written: self.cache_written.unwrap_or_default(),
            estimated: read.is_none() || self.output.is_none(),
        }
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

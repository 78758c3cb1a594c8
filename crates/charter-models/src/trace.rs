//! Spans (`tracing`), named after OpenTelemetry's semantic conventions for generative AI. They
//! contain the model, the tokens and the result; never prompts, answers or keys.

use charter_actors::Fault;
use serde_json::Value as Json;
use tracing::Span;
use tracing::field::Empty;

use crate::exchange::Exchange;
use crate::model::{Model, Provider};

/// Creates the span of a question, including its retries and its repair.
pub(crate) fn chat(model: &Model, run: &str) -> Span {
    let provider = match model.provider {
        Provider::OpenAi => "openai",
        Provider::Anthropic => "anthropic",
        Provider::Gemini => "gcp.gemini",
        Provider::Azure => "azure.ai.openai",
    };
    tracing::info_span!(
        "chat",
        otel.name = %format_args!("chat {}", model.name),
        otel.kind = "client",
        charter.run = run,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = %model.name,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        charter.requests = Empty,
        server.address = host(&model.base_url),
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records in the span how a question ended.
pub(crate) fn answered(span: &Span, answer: &Result<Json, Fault>, exchange: &Exchange) {
    if let Some(model) = &exchange.answered_as {
        span.record("gen_ai.response.model", model.as_str());
    }
    span.record("gen_ai.usage.input_tokens", exchange.usage.input);
    span.record("gen_ai.usage.output_tokens", exchange.usage.output);
    span.record("charter.requests", exchange.requests);
    if let Err(fault) = answer {
        span.record("error.type", fault.code.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// Creates the span of a tool call.
#[cfg(feature = "tools")]
pub(crate) fn tool(name: &str, effect: &str, run: &str) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {name}"),
        otel.kind = "client",
        charter.run = run,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = effect,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Returns the host of an address, without user, password and path.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn hosts() {
        for (url, host) in [
            ("https://api.openai.com/v1", "api.openai.com"),
            ("http://me:secret@127.0.0.1:9?x", "127.0.0.1:9"),
            ("", ""),
        ] {
            assert_eq!(super::host(url), host);
        }
    }
}

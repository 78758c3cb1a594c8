//! Sends spans to an OpenTelemetry collector (OTLP over HTTP, JSON) if
//! `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. All spans of a run
//! form one trace, even across restarts, because the trace id is derived from the run id. Spans are
//! not an audit record; the journal is.

use std::time::Duration;

use bytes::Bytes;
use opentelemetry::trace::{SpanContext, TraceId, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanProcessor};
use sha2::{Digest as _, Sha256};
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::io::Failure;

/// How long the program waits for the collector before it ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Sends spans until dropped.
#[derive(Debug)]
pub struct TelemetryGuard(SdkTracerProvider);

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        // The command does not fail if the collector cannot be reached.
        drop(self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT));
    }
}

/// Starts sending spans if the environment names a collector.
///
/// # Errors
/// The collector cannot be used. The command works without it.
pub fn start() -> Result<Option<TelemetryGuard>, Failure> {
    let named = |name: &&str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if !VARIABLES.iter().any(|name| named(&name)) {
        return Ok(None);
    }
    let options = charter_actors::ClientOptions { request: Some(Duration::from_secs(10)), ..Default::default() };
    let agent = charter_actors::http_client(options);
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(UreqClient(agent))
        .with_protocol(Protocol::HttpJson)
        .build();
    let exporter = exporter.map_err(|e| Failure::new(format!("cannot send spans: {e}")))?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("charter");
    }
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.with_attribute(version).build())
        .with_span_processor(ByRun(BatchSpanProcessor::builder(exporter).build()))
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("charter"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false);
    // Export only spans of Charter: spans of libraries may contain confidential parts of requests.
    let own = tracing_subscriber::filter::filter_fn(|meta| meta.is_span() && meta.target().starts_with("charter_"));
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(own));
    let set = tracing::subscriber::set_global_default(subscriber);
    set.map_err(|_| Failure::new("cannot send spans: another subscriber is already set"))?;
    Ok(Some(TelemetryGuard(provider)))
}

/// Puts all spans of a run into one trace.
#[derive(Debug)]
struct ByRun(BatchSpanProcessor);

impl SpanProcessor for ByRun {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, mut span: SpanData) {
        let run = span.attributes.iter().find(|a| a.key.as_str() == "charter.run");
        if let Some(run) = run {
            let id = trace_of(&run.value.as_str());
            let old = &span.span_context;
            span.span_context =
                SpanContext::new(id, old.span_id(), old.trace_flags(), old.is_remote(), old.trace_state().clone());
        }
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// Returns the trace id of a run.
fn trace_of(run: &str) -> TraceId {
    let mut id = [0; 16];
    id.copy_from_slice(&Sha256::digest(run.as_bytes())[..16]);
    TraceId::from_bytes(id)
}

/// Sends requests with `ureq`, like every other HTTP client here.
#[derive(Debug)]
struct UreqClient(ureq::Agent);

#[async_trait::async_trait]
impl HttpClient for UreqClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Blocking is fine here: the exporter has its own thread.
        let (parts, body) = request.into_parts();
        let request = ureq::http::Request::from_parts(parts, body.to_vec());
        let mut reply = self.0.run(request)?;
        let body = reply.body_mut().with_config().limit(1 << 20).read_to_vec()?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = reply.status();
        *response.headers_mut() = reply.headers().clone();
        Ok(response)
    }
}

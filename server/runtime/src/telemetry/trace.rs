//! Traces: continued from callers, down to the store. Nearly free without export: one flag is read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};

use axum::http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{Span as _, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Whether traces are exported.
static IS_ON: AtomicBool = AtomicBool::new(false);
static TRACER: OnceLock<SdkTracer> = OnceLock::new();
static CALLERS: LazyLock<TraceContextPropagator> = LazyLock::new(TraceContextPropagator::new);
static IGNORES_CALLERS: AtomicBool = AtomicBool::new(false);

pub(super) fn switch_on(tracer: SdkTracer, ignores_callers: bool) {
    let _ = TRACER.set(tracer);
    IGNORES_CALLERS.store(ignores_callers, Ordering::Relaxed);
    IS_ON.store(true, Ordering::Release);
}

pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// Makes the caller's `traceparent` the parent of the span. A malformed one is ignored.
pub fn adopt(span: &tracing::Span, headers: &HeaderMap) {
    if !is_on() || span.is_disabled() || IGNORES_CALLERS.load(Ordering::Relaxed) {
        return;
    }
    let parent = CALLERS.extract(&Headers(headers));
    if parent.span().span_context().is_valid() {
        // Fails only without the layer, where there is no parent to set.
        let _ = span.set_parent(parent);
    }
}

/// The current trace, if it is sampled.
pub fn current_span_context() -> Option<SpanContext> {
    if !is_on() {
        return None;
    }
    let context = tracing::Span::current().context();
    let span_context = context.span().span_context().clone();
    (span_context.is_valid() && span_context.is_sampled()).then_some(span_context)
}

/// As 32 hexadecimal digits.
pub fn id(span: &SpanContext) -> String {
    span.trace_id().to_string()
}

/// One transaction as a span in the trace of each of its operations. Empty and free without traces.
pub struct Commits(Vec<Span>);

impl Commits {
    pub fn begin<'a>(
        parents: impl Iterator<Item = &'a SpanContext>,
        system: &'static str,
        operations: usize,
    ) -> Self {
        let Some(tracer) = TRACER.get().filter(|_| is_on()) else {
            return Self(Vec::new());
        };
        let spans = parents.map(|caller| {
            let parent = Context::new().with_remote_span_context(caller.clone());
            let mut span = tracer
                .span_builder("lease.commit")
                .with_kind(SpanKind::Client)
                .start_with_context(tracer, &parent);
            span.set_attribute(KeyValue::new("db.system.name", system));
            let operations = i64::try_from(operations).unwrap_or(i64::MAX);
            span.set_attribute(KeyValue::new("db.operation.batch.size", operations));
            span
        });
        Self(spans.collect())
    }

    pub fn end(self, failed: Option<&'static str>) {
        for mut span in self.0 {
            if let Some(why) = failed {
                span.set_status(Status::error(why));
            }
            span.end();
        }
    }
}

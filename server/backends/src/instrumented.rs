//! A backend whose calls are timed for the metrics.

use std::sync::Arc;

use domain::names::BackendName;

use super::decorator::{BackendDecorator, BackendFuture};
use super::{Backend, BackendError};
use runtime::clock::Stopwatch;
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::BackendAttributes;

/// Forwards every call.
pub struct Instrumented {
    inner: Arc<dyn Backend>,
    of: BackendAttributes,
}

impl Instrumented {
    pub fn new(name: &BackendName, inner: Arc<dyn Backend>) -> Self {
        let of = BackendAttributes {
            name: name.as_str().into(),
            system: inner.kind().as_str(),
        };
        Self { inner, of }
    }
}

const fn error_type(error: &BackendError) -> &'static str {
    match error {
        BackendError::Unreachable { .. } => "unreachable",
        BackendError::NoAnswer { .. } => "timeout",
        BackendError::Denied { .. } => "denied",
        BackendError::Misconfigured { .. } => "misconfigured",
        BackendError::Unavailable { .. } => "unavailable",
        BackendError::Protocol { .. } => "protocol",
    }
}

impl BackendDecorator for Instrumented {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn around<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        call: BackendFuture<'a, T>,
    ) -> BackendFuture<'a, T> {
        Box::pin(async move {
            let watch = Stopwatch::start();
            let answer = call.await;
            let error = answer.as_ref().err().map(error_type);
            instruments().operation(&self.of, operation, error, watch.seconds());
            answer
        })
    }
}

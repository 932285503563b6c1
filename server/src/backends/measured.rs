//! A backend whose answers are timed for the metrics.

use std::sync::Arc;

use domain::names::BackendName;

use super::around::{Around, Asked};
use super::{Backend, BackendError};
use crate::clock::Stopwatch;
use crate::telemetry::meters;
use crate::telemetry::meters::Of;

/// Passes everything on.
pub struct Measured {
    inner: Arc<dyn Backend>,
    of: Of,
}

impl Measured {
    pub fn new(name: &BackendName, inner: Arc<dyn Backend>) -> Self {
        let of = Of {
            name: name.as_str().into(),
            system: inner.kind().wire(),
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
        BackendError::Protocol { .. } => "protocol",
    }
}

impl Around for Measured {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn around<'a, T: Send + 'a>(&'a self, operation: &'static str, asked: Asked<'a, T>) -> Asked<'a, T> {
        Box::pin(async move {
            let watch = Stopwatch::start();
            let answer = asked.await;
            let error = answer.as_ref().err().map(error_type);
            meters().operation(&self.of, operation, error, watch.seconds());
            answer
        })
    }
}

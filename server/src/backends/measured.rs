//! A backend whose answers are timed for the metrics.

use std::sync::Arc;

use domain::backend::{BackendKind, Capability};
use domain::generation::Generation;
use domain::names::{BackendName, Resource, Source};
use domain::observation::Inspection;
use domain::release::{Act, Release};
use domain::safety::Safety;
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};
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

    async fn timed<T>(
        &self,
        operation: &'static str,
        asked: BoxFuture<'_, Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let watch = Stopwatch::start();
        let answer = asked.await;
        let error = answer.as_ref().err().map(error_type);
        meters().operation(&self.of, operation, error, watch.seconds());
        answer
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

impl Backend for Measured {
    fn kind(&self) -> BackendKind {
        self.inner.kind()
    }

    fn address(&self) -> String {
        self.inner.address()
    }

    fn capabilities(&self) -> Vec<Capability> {
        self.inner.capabilities()
    }

    fn safety(&self, source: &Source) -> Safety {
        self.inner.safety(source)
    }

    fn grain_ms(&self, source: &Source) -> i64 {
        self.inner.grain_ms(source)
    }

    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>> {
        Box::pin(self.timed("observe", self.inner.observe(budget, sink)))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.timed("refresh", self.inner.refresh(names, sink)))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        self.inner.watch(hints)
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        Box::pin(self.timed("inspect", self.inner.inspect(source, resource)))
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(self.timed("release", self.inner.release(source, resource, generation, act)))
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(self.timed("probe", self.inner.probe()))
    }
}

//! A backend whose forced unlocks are followed by a fresh reading: the inventory learns at once what came of them.

use std::sync::Arc;

use domain::backend::{BackendKind, Capability};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::release::{Act, Release};
use domain::safety::Safety;
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};

/// Passes everything on; after each [`release`](Backend::release) it leaves a hint for its observer.
pub struct Announcing {
    inner: Arc<dyn Backend>,
    hints: Hints,
    unlocked: Box<Unlocked>,
}

/// Is told what was released by force.
type Unlocked = dyn Fn(&Source, &Resource) + Send + Sync;

impl Announcing {
    pub fn new(
        inner: Arc<dyn Backend>,
        hints: Hints,
        unlocked: impl Fn(&Source, &Resource) + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            hints,
            unlocked: Box::new(unlocked),
        }
    }
}

impl Backend for Announcing {
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
        self.inner.observe(budget, sink)
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        self.inner.refresh(names, sink)
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        self.inner.watch(hints)
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        self.inner.inspect(source, resource)
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(async move {
            let answer = self.inner.release(source, resource, generation, act).await;
            if matches!(answer, Ok(Release::Released)) {
                (self.unlocked)(source, resource);
            }
            // Whatever came of it: also a refusal may rest on something that the inventory has not seen yet.
            self.hints.changed(source.clone(), resource.clone());
            answer
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        self.inner.probe()
    }
}

//! A backend decorator that forwards every call.

use domain::backend::{BackendKind, BackendTraits, Capability, ClusterView};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::Safety;
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};

pub(super) type BackendFuture<'a, T> = BoxFuture<'a, Result<T, BackendError>>;

pub(super) trait BackendDecorator: Send + Sync + 'static {
    fn inner(&self) -> &dyn Backend;

    /// Wraps every call that uses the connection, except [`watch`](Backend::watch), which never
    /// ends.
    fn around<'a, T: Send + 'a>(
        &'a self,
        _operation: &'static str,
        call: BackendFuture<'a, T>,
    ) -> BackendFuture<'a, T> {
        call
    }

    /// After each forced unlock, with any result.
    fn acted(
        &self,
        _source: &Source,
        _resource: &Resource,
        _generation: &Generation,
        _answer: &Result<Release, BackendError>,
    ) {
    }
}

impl<A: BackendDecorator> Backend for A {
    fn kind(&self) -> BackendKind {
        self.inner().kind()
    }

    fn address(&self) -> String {
        self.inner().address()
    }

    fn capabilities(&self) -> Vec<Capability> {
        self.inner().capabilities()
    }

    fn traits(&self) -> BackendTraits {
        self.inner().traits()
    }

    fn safety(&self, source: &Source) -> Safety {
        self.inner().safety(source)
    }

    fn grain_ms(&self, source: &Source) -> i64 {
        self.inner().grain_ms(source)
    }

    fn observe<'a>(&'a self, budget: Budget, sink: &'a mut dyn Sink) -> BackendFuture<'a, Pass> {
        self.around("observe", self.inner().observe(budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BackendFuture<'a, ()> {
        self.around("refresh", self.inner().refresh(names, sink))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        self.inner().watch(hints)
    }

    fn inspect<'a>(&'a self, source: &'a Source, resource: &'a Resource) -> BackendFuture<'a, Inspection> {
        self.around("inspect", self.inner().inspect(source, resource))
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        act: &'a Act,
    ) -> BackendFuture<'a, Release> {
        Box::pin(async move {
            let call = self.inner().release(source, resource, generation, act);
            let answer = self.around("release", call).await;
            self.acted(source, resource, generation, &answer);
            answer
        })
    }

    fn probe(&self) -> BackendFuture<'_, Probe> {
        self.around("probe", self.inner().probe())
    }

    fn clusters(&self) -> BoxFuture<'_, Option<Vec<ClusterView>>> {
        self.inner().clusters()
    }
}

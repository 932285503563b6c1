//! A backend with an invalid configuration: listed on the Backends page with its error.

use domain::backend::{BackendKind, BackendTraits, Capability, WatchState};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};

pub struct BrokenBackend {
    pub kind: BackendKind,
    pub error: BackendError,
}

impl BrokenBackend {
    fn refuse<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, BackendError>> {
        let error = self.error.clone();
        Box::pin(async move { Err(error) })
    }
}

impl Backend for BrokenBackend {
    fn kind(&self) -> BackendKind {
        self.kind
    }

    fn address(&self) -> String {
        "not usable as configured".to_owned()
    }

    fn capabilities(&self) -> Vec<Capability> {
        Vec::new()
    }

    fn traits(&self) -> BackendTraits {
        BackendTraits::default()
    }

    fn safety(&self, _: &Source) -> Safety {
        Safety {
            class: SafetyClass::Efficiency,
            why: "it was never reached".into(),
        }
    }

    fn grain_ms(&self, _: &Source) -> i64 {
        0
    }

    fn observe<'a>(&'a self, _: Budget, _: &'a mut dyn Sink) -> BoxFuture<'a, Result<Pass, BackendError>> {
        self.refuse()
    }

    fn refresh<'a>(
        &'a self,
        _: &'a [(Source, Resource)],
        _: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        self.refuse()
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        hints.state(WatchState::Off {
            why: self.error.to_string(),
        });
        Box::pin(async {})
    }

    fn inspect<'a>(
        &'a self,
        _: &'a Source,
        _: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        self.refuse()
    }

    fn release<'a>(
        &'a self,
        _: &'a Source,
        _: &'a Resource,
        _: &'a Generation,
        _: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        self.refuse()
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        self.refuse()
    }
}

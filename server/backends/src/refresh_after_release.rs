//! A backend whose forced unlocks are followed by a fresh reading, so that the inventory shows
//! the result at once.

use std::sync::Arc;

use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};

use super::decorator::BackendDecorator;
use super::{Backend, BackendError, Hints};

/// Forwards every call; after each [`release`](Backend::release) it sends a change
/// notification.
pub struct RefreshOnRelease {
    inner: Arc<dyn Backend>,
    hints: Hints,
    unlocked: Box<Unlocked>,
}

/// Called with each force-released holding.
type Unlocked = dyn Fn(&Source, &Resource, &Generation) + Send + Sync;

impl RefreshOnRelease {
    pub fn new(
        inner: Arc<dyn Backend>,
        hints: Hints,
        unlocked: impl Fn(&Source, &Resource, &Generation) + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            hints,
            unlocked: Box::new(unlocked),
        }
    }
}

impl BackendDecorator for RefreshOnRelease {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn acted(
        &self,
        source: &Source,
        resource: &Resource,
        generation: &Generation,
        answer: &Result<Release, BackendError>,
    ) {
        if matches!(answer, Ok(Release::Released)) {
            (self.unlocked)(source, resource, generation);
        }
        // With any result: a refusal may also be due to a change that the inventory has not
        // seen yet.
        self.hints.changed(source.clone(), resource.clone());
    }
}

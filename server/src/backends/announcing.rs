//! A backend whose forced unlocks are followed by a fresh reading: the inventory learns at once what came of them.

use std::sync::Arc;

use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::release::Release;

use super::around::Around;
use super::{Backend, BackendError, Hints};

/// Passes everything on; after each [`release`](Backend::release) it leaves a hint for its observer.
pub struct Announcing {
    inner: Arc<dyn Backend>,
    hints: Hints,
    unlocked: Box<Unlocked>,
}

/// Is told what was released by force.
type Unlocked = dyn Fn(&Source, &Resource, &Generation) + Send + Sync;

impl Announcing {
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

impl Around for Announcing {
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
        // Whatever came of it: also a refusal may rest on something that the inventory has not seen yet.
        self.hints.changed(source.clone(), resource.clone());
    }
}

//! Forced unlocks of any backend: a race against its users in which every holding is accounted for, and unlocks whose
//! answers get lost.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use ::backends::Backend;
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::proxy::{Link, Proxy};

/// Attempts of one race, and the minimum of hits and misses of the reviewed holder.
const ATTEMPTS: usize = 100;
const EACH_WAY: usize = 10;
/// Users that race for the lock.
const WORKERS: usize = 3;
/// Unlocks until one must have lost its answer.
const LOSSES_MAX: usize = 60;
/// Requests fewer after an unlock whose answer arrived.
const STEP_BACK: u32 = 4;

pub(crate) fn act() -> Act {
    Act {
        by: "ops@example.com".into(),
        reason: "stuck since 03:00".into(),
        audit_id: "audit-1".into(),
    }
}

/// The generation of the current holding.
pub(crate) async fn generation(backend: &dyn Backend, source: &Source, resource: &Resource) -> Generation {
    let seen = backend.inspect(source, resource).await.unwrap();
    let lock = seen
        .lock
        .unwrap_or_else(|| panic!("{} is not held", resource.text()));
    lock.generation.known().unwrap().clone()
}

/// Observes the lock, and unlocks the observed holding.
pub(crate) async fn unlock(backend: &dyn Backend, source: &Source, resource: &Resource) -> Release {
    let seen = generation(backend, source, resource).await;
    backend.release(source, resource, &seen, &act()).await.unwrap()
}

/// Clients of one lock, which acquire and release it.
pub(crate) trait Users {
    type Held;
    /// Holdings last from 0 to 6 times this: long enough to be unlocked now and then, short enough to be gone by then now and
    /// then.
    const HOLD_MS: u64 = 3;
    /// Whether check and release are one step in the backend. Where they are not, a holding may end by itself between them
    /// and is then reported as released.
    const IS_ATOMIC: bool = true;
    /// Acquires the lock if it is free; returns the owner as the console will show it, a new one each time.
    async fn take(&self) -> Option<(String, Self::Held)>;
    /// Whether it was still this user's.
    async fn give_back(&self, held: Self::Held) -> bool;
}

/// The results of a race.
#[derive(Debug, Default)]
pub(crate) struct UnlockCounts {
    pub(crate) released: usize,
    pub(crate) changed: usize,
    pub(crate) free: usize,
    pub(crate) holdings: usize,
}

/// Clients acquire and release one lock while it is unlocked by force, repeatedly: half of the unlocks at once, half
/// after the reviewed holder has released. Every holding that was cut short must be one that an unlock reports, and
/// the reverse.
pub(crate) async fn race<U: Users>(
    backend: &dyn Backend,
    source: &Source,
    resource: &Resource,
    users: &U,
) -> UnlockCounts {
    let done = Cell::new(false);
    let (held, cut) = (Cell::new(0), RefCell::new(Vec::new()));
    let work = async || {
        while !done.get() {
            let Some((owner, taken)) = users.take().await else {
                tokio::task::yield_now().await;
                continue;
            };
            held.set(held.get() + 1);
            // The hold time of a user of a real backend.
            sleep(Duration::from_millis(held.get() % 7 * U::HOLD_MS)).await;
            if !users.give_back(taken).await {
                cut.borrow_mut().push(owner);
            }
        }
    };
    let operator = async {
        let ended = operate(backend, source, resource).await;
        done.set(true);
        ended
    };
    let everyone = futures::future::join(operator, join_all((0..WORKERS).map(|_| work())));
    let ((mut tally, mut claimed), _) = timeout(Duration::from_secs(110), everyone)
        .await
        .expect("the race ends");
    let mut cut = cut.into_inner();
    cut.sort();
    claimed.sort();
    if U::IS_ATOMIC {
        assert_eq!(cut, claimed, "cut short, and reported as released: {tally:?}");
    } else {
        let unreported: Vec<_> = cut.iter().filter(|owner| !claimed.contains(owner)).collect();
        assert!(
            unreported.is_empty(),
            "cut short without a report: {unreported:?}"
        );
    }
    tally.holdings = usize::try_from(held.get()).unwrap();
    tally
}

async fn operate(backend: &dyn Backend, source: &Source, resource: &Resource) -> (UnlockCounts, Vec<String>) {
    let (mut tally, mut claimed) = (UnlockCounts::default(), Vec::new());
    let mut attempts = 0;
    let enough = |tally: &UnlockCounts| tally.released >= EACH_WAY && tally.changed + tally.free >= EACH_WAY;
    while attempts < ATTEMPTS || !enough(&tally) {
        let Some(lock) = backend.inspect(source, resource).await.unwrap().lock else {
            tokio::task::yield_now().await;
            continue;
        };
        // The lock may end between the two queries of one inspection.
        let Some(seen) = lock.generation.known().cloned() else {
            continue;
        };
        attempts += 1;
        if attempts % 2 == 0 {
            until_session_ended(backend, source, resource, &seen).await;
        }
        match backend.release(source, resource, &seen, &act()).await.unwrap() {
            Release::Released => {
                assert!(attempts % 2 == 1, "it had gone before: {seen}");
                tally.released += 1;
                claimed.push(lock.owner.known().unwrap().as_str().to_owned());
            }
            Release::HolderChanged { now } => {
                assert_ne!(now.generation.known(), Some(&seen));
                tally.changed += 1;
            }
            Release::AlreadyFree => tally.free += 1,
            other => panic!("{other:?}"),
        }
    }
    (tally, claimed)
}

async fn until_session_ended(backend: &dyn Backend, source: &Source, resource: &Resource, seen: &Generation) {
    loop {
        // A server of a busy machine may not answer in time.
        let Ok(now) = backend.inspect(source, resource).await else {
            continue;
        };
        if now.lock.is_none_or(|lock| lock.generation.known() != Some(seen)) {
            return;
        }
    }
}

/// Unlocks through a proxy whose answers stop after one request more each time, a few fewer after an unlock that was done and
/// answered, until one was done and its answer lost. The result of each unlock must be correct: done, not done, or unknown.
/// `take` creates a new lock and returns its generation, `is_held` queries the server directly.
pub(crate) async fn lose_answers(
    backend: &dyn Backend,
    proxy: &Proxy,
    (source, resource): (&Source, &Resource),
    take: impl AsyncFn() -> Generation,
    is_held: impl AsyncFn() -> bool,
) {
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut requests = NonZeroU32::MIN;
    for _ in 0..LOSSES_MAX {
        // Each attempt makes a new connection.
        proxy.set(Link::Cut).await;
        proxy.set(Link::Pass).await;
        let seen = take().await;
        proxy.set(Link::SilentAfter(requests)).await;
        let answer = backend.release(source, resource, &seen, &act()).await;
        let held = is_held().await;
        let word = answer.as_ref().map_or("not asked", Release::as_str);
        *counts.entry(word).or_default() += 1;
        requests = requests.saturating_add(1);
        match answer {
            Ok(Release::Released) => {
                assert!(!held, "released, and still held");
                // Each attempt reconnects, and two requests may arrive as one: the act is not always the same request.
                requests =
                    NonZeroU32::new(requests.get().saturating_sub(STEP_BACK)).unwrap_or(NonZeroU32::MIN);
            }
            Ok(Release::OutcomeUnknown { .. }) if !held => return,
            Ok(Release::OutcomeUnknown { .. }) => {}
            // An earlier act of unknown outcome may still have come through.
            Ok(Release::AlreadyFree) => assert!(!held, "free, and still held"),
            Ok(Release::Refused { .. }) | Err(_) => assert!(held, "not done, and gone: {answer:?}"),
            other => panic!("{other:?}"),
        }
    }
    panic!("no act was done without its answer: {counts:?}");
}

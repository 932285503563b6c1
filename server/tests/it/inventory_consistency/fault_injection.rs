//! Injects a fault, changes locks, checks the list during the fault, and heals it.

use std::time::Duration;

use tokio::time::sleep;

use crate::support::proxy::Link;

use super::fault::{FaultKind, InjectedFault, System};
use super::ledger::{Locks, differences};
use super::rng::Dice;
use super::systems::{POLL_MS, Systems};

/// Two poll periods, and a little: the pass that was on its way, and our own reading.
const STALE_WITHIN_MS: i64 = 2 * POLL_MS + 600;
/// Long enough for retries to have become rare, and of any length: the next one may have just been missed.
const LONG_MS: std::ops::Range<usize> = 8_000..14_000;
pub(super) const CHANGES_MEANWHILE: u32 = 60;
/// Changes between two reads of the list.
const CHANGES_AT_ONCE: u32 = 5;

/// Returns after how many milliseconds all of the broken system's rows were stale, if they should be.
pub(super) async fn strike(all_systems: &mut Systems, dice: &mut Dice, fault: InjectedFault) -> Option<i64> {
    let on = fault.on;
    match fault.kind {
        FaultKind::Cut => Some(unlinked(all_systems, dice, on, Link::Cut, 0).await),
        FaultKind::LongCut => {
            let long_ms = i64::try_from(LONG_MS.start + dice.below(LONG_MS.len())).unwrap();
            Some(unlinked(all_systems, dice, on, Link::Cut, long_ms).await)
        }
        FaultKind::Blackhole => Some(unlinked(all_systems, dice, on, Link::Blackhole, 0).await),
        FaultKind::NoAnswers => Some(unlinked(all_systems, dice, on, Link::OnlyToServer, 0).await),
        FaultKind::Compaction => {
            let before = all_systems.truth_of(on);
            all_systems.proxy(on).set(Link::Cut).await;
            let stale_ms = blind(all_systems, dice, (on, &before), None, 0).await;
            all_systems.coord.compact().await;
            all_systems.proxy(on).set(Link::Pass).await;
            Some(stale_ms)
        }
        FaultKind::Pause => {
            let before = all_systems.truth_of(on);
            all_systems.server(on).pause().await.unwrap();
            let stale_ms = blind(all_systems, dice, (on, &before), Some(on), 0).await;
            all_systems.server(on).resume().await.unwrap();
            Some(stale_ms)
        }
        FaultKind::Restart => {
            restarted(all_systems, on).await;
            all_systems.changes(CHANGES_MEANWHILE, None, dice).await;
            None
        }
        FaultKind::Flush => {
            all_systems.keys.flush().await;
            all_systems.changes(CHANGES_MEANWHILE, None, dice).await;
            None
        }
        FaultKind::Slow => {
            all_systems
                .proxy(on)
                .set(Link::Slow(Duration::from_millis(100)))
                .await;
            all_systems.changes(CHANGES_MEANWHILE, None, dice).await;
            all_systems.rest(None).await;
            all_systems.proxy(on).set(Link::Pass).await;
            None
        }
    }
}

async fn unlinked(systems: &mut Systems, dice: &mut Dice, on: System, link: Link, at_least_ms: i64) -> i64 {
    let before = systems.truth_of(on);
    let resets = systems.proxy(on).traffic().reset();
    systems.proxy(on).set(link).await;
    let stale_ms = blind(systems, dice, (on, &before), None, at_least_ms).await;
    systems.proxy(on).set(Link::Pass).await;
    assert!(
        link != Link::Cut || systems.proxy(on).traffic().reset() > resets,
        "the fault hit nothing"
    );
    stale_ms
}

/// While the console cannot reach the system, its rows keep their last state and soon become stale.
async fn blind(
    systems: &mut Systems,
    dice: &mut Dice,
    (on, before): (System, &Locks),
    spared: Option<System>,
    at_least_ms: i64,
) -> i64 {
    let began = systems.clock.tick();
    let (mut left, mut stale_ms) = (CHANGES_MEANWHILE, None);
    loop {
        let now = left.min(CHANGES_AT_ONCE);
        systems.changes(now, spared, dice).await;
        left -= now;
        // Read before the list is requested, so the list is at least as recent.
        let asked_ms = systems.clock.tick().since(began);
        let all_stale = stays(systems, on, before).await;
        match stale_ms {
            None if all_stale => stale_ms = Some(systems.clock.tick().since(began)),
            None => assert!(
                asked_ms <= STALE_WITHIN_MS,
                "{on:?}: not all stale after {asked_ms} ms"
            ),
            Some(_) => assert!(all_stale, "{on:?}: not stale any more, and nothing has healed"),
        }
        if let Some(stale_ms) = stale_ms
            && left == 0
            && asked_ms >= at_least_ms
        {
            // Short leases expire before the end of the fault, so that their expiry is not caused by a later step.
            systems.rest(spared).await;
            return stale_ms;
        }
        // Pause between two polls of a real system.
        sleep(Duration::from_millis(20)).await;
    }
}

/// The console's rows of the system are unchanged. Returns whether all of them are stale.
async fn stays(systems: &Systems, on: System, before: &Locks) -> bool {
    let shown = systems.view.backend(Systems::backend(on)).await;
    let wrong = differences(before, &shown.locks);
    assert!(
        wrong.is_empty(),
        "{on:?} changed while unobservable:\n{}",
        wrong.join("\n")
    );
    shown.all_stale()
}

/// kill -9, and back with its data; no lock vanishes meanwhile.
async fn restarted(systems: &mut Systems, on: System) {
    let before = systems.truth_of(on);
    let pid = systems.server(on).pid();
    let restart = async {
        systems.server(on).kill().await.unwrap();
        systems.server(on).restart().await.unwrap();
    };
    let look = async {
        loop {
            stays(systems, on, &before).await;
        }
    };
    tokio::select! {
        () = restart => {}
        () = look => {}
    }
    assert_ne!(pid, systems.server(on).pid(), "the fault did not happen");
    systems.reconnect(on).await;
}

//! A reader of a part sees its own waits, and of the others only that the cycle is closed.

use super::*;
use crate::access::{Grant, Grants, Role, Visible};
use crate::waits::page::{Cut, WaitsPage};
use crate::waits::view::GraphView;

fn seen_by(prefixes: &[&str], backends: &[BackendWaits]) -> WaitsPage {
    let grant = |prefix: &&str| Grant {
        role: Role::Viewer,
        backend: None,
        prefix: Some((*prefix).to_owned()),
    };
    let visible = Visible::to(&Grants::new(prefixes.iter().map(grant).collect()));
    GraphView::new(&graph(backends), &visible, NOW).page()
}

#[test]
fn foreign_locks_of_a_cycle_are_one_unnamed_lock() {
    // The reader of `a` sees one wait of three; the two others are one.
    let page = seen_by(&["a"], &three_systems());
    let deadlock = &page.deadlocks[0];
    assert!(deadlock.is_partly_hidden && deadlock.releases.is_empty());
    assert_eq!(deadlock.hops.len(), 2);
    assert_eq!(
        (deadlock.hops[0].owner.as_str(), deadlock.hops[1].owner.as_str()),
        ("w1", "w2")
    );
    assert!(deadlock.hops[1].wait.is_none());
    assert_eq!((deadlock.blocked, page.waits_total), (1, 1));
    let text = format!("{page:?}");
    for foreign in ["b:index", "c:export", "w3", "host/"] {
        assert!(!text.contains(foreign), "{foreign} in {text}");
    }
}

#[test]
fn the_length_of_the_hidden_part_does_not_show() {
    // One foreign lock more in the cycle: the same answer.
    let short = three_systems();
    let mut long = three_systems();
    long[2].locks = vec![
        wait("zk", "c:export", "host/w3", "host/w4"),
        wait("zk", "c:more", "host/w4", "host/w1"),
    ];
    long[0].locks.push(wait("db", "z:behind", "app-w9", "app-w1"));
    assert_eq!(seen_by(&["a"], &short), seen_by(&["a"], &long));
}

#[test]
fn a_deadlock_of_foreign_locks_does_not_exist_for_the_reader() {
    let page = seen_by(&["tenant_9"], &three_systems());
    assert_eq!(
        (page.deadlocks_total, page.waits_total, page.trees_total),
        (0, 0, 0)
    );
    assert_eq!(page.title, "No deadlock");
    // Nor does a wait behind it that the reader may see make it visible.
    let mut behind = three_systems();
    behind[0].locks.push(wait("db", "tenant_9:x", "app-w9", "app-w1"));
    let page = seen_by(&["tenant_9"], &behind);
    assert_eq!(
        (page.deadlocks_total, page.waits_total, page.trees_total),
        (0, 1, 1)
    );
}

#[test]
fn a_limit_shows_no_number_to_a_reader_of_a_part() {
    let mut backends = three_systems();
    backends[1].locks[0].more = 5;
    backends[1].unidentified_locks = 3;
    let page = seen_by(&["a"], &backends);
    assert_eq!(page.cut, Some(Cut::Some));
    assert!(page.sources.iter().all(|source| source.unidentified_locks == 0));
    let all = GraphView::new(&graph(&backends), &Visible::default(), NOW).page();
    assert_eq!(all.cut, Some(Cut::Waits(5)));
}

//! Which owners are one, and when a cycle is certain.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::access::Visible;
use crate::waits::graph::{CycleDoubt, EDGES_MAX, EdgeTrust};
use crate::waits::view::GraphView;

#[test]
fn a_cycle_over_three_systems_is_one_deadlock() {
    let graph = graph(&three_systems());
    assert_eq!(graph.deadlocks.len(), 1);
    let deadlock = &graph.deadlocks[0];
    assert_eq!((deadlock.cycle.edges.len(), deadlock.cycle.doubt), (3, None));
    let page = GraphView::new(&graph, &Visible::default(), NOW).page();
    assert_eq!(page.title, "One deadlock across 3 systems blocks 3 owners");
    let lines = page.deadlocks[0].lines();
    assert!(
        lines.contains(&"w1 waits on db for a:close, held by w2".to_owned()),
        "{lines:?}"
    );
    let w1 = page.deadlocks[0]
        .hops
        .iter()
        .find(|hop| hop.owner == "w1")
        .unwrap();
    let joined = w1.joined.as_ref().unwrap();
    assert_eq!(joined.rule.as_deref(), Some("workers"));
    assert_eq!(joined.values, [("worker".to_owned(), "w1".to_owned())]);
    assert_eq!(joined.identities[1].field.as_deref(), Some("application_name"));
}

#[test]
fn time_alone_changes_only_the_times_of_a_deadlock() {
    // A second later the page has other lengths, and the same releases for the same waits.
    let graph = graph(&three_systems());
    let at = |now| {
        let mut page = GraphView::new(&graph, &Visible::default(), now).page();
        page.deadlocks.remove(0)
    };
    let (before, after) = (at(NOW), at(Tick(NOW.0 + 1_000)));
    assert_ne!(before, after);
    assert_eq!(before.without_times(), after.without_times());
    for deadlock in [before, after] {
        let mut places: Vec<_> = deadlock.hops.iter().map(|hop| deadlock.release_of(hop)).collect();
        places.sort_unstable();
        assert_eq!(places, [Some(1), Some(2), Some(3)]);
    }
}

#[test]
fn the_closing_wait_is_known_only_if_its_begin_is() {
    // Three waits of one age; the last began later; its begin is only its first observation.
    let of = |backends: &[BackendWaits], visible: &Visible| {
        let mut page = GraphView::new(&graph(backends), visible, NOW).page();
        (page.deadlocks.remove(0), page.lead)
    };
    let mut systems = three_systems();
    assert_eq!(of(&systems, &Visible::default()).0.closing_wait(), None);
    systems[1].locks[0].waiters[0].since = Tick(20_000);
    let (deadlock, lead) = of(&systems, &Visible::default());
    let closing = deadlock.closing_wait().unwrap();
    assert_eq!(closing.lock.resource, Resource::from("b:index"));
    assert!(lead.starts_with("Closed for 1 m 20 s."), "{lead}");
    systems[1].locks[0].waiters[0].is_since_reported = false;
    let (deadlock, lead) = of(&systems, &Visible::default());
    assert_eq!(deadlock.closing_wait(), None);
    assert!(lead.starts_with("Closed for at least 1 m 20 s."), "{lead}");
}

#[test]
fn equal_names_are_not_joined_without_a_rule() {
    // The same owner id on two backends, which no rule names.
    let twice = |one: &str, other: &str| {
        [
            backend(one, BackendKind::Etcd, vec![wait(one, "x", "a", "b")]),
            backend(other, BackendKind::Etcd, vec![wait(other, "y", "b", "a")]),
        ]
    };
    let graph = WaitGraph::new(&[], &twice("coord", "other"));
    assert_eq!((graph.owners.len(), graph.deadlocks.len()), (4, 0));
    let graph = super::graph(&twice("other", "third"));
    assert_eq!((graph.owners.len(), graph.deadlocks.len()), (4, 0));
    // Inside of one backend the same identity is the same owner.
    let both = [backend(
        "other",
        BackendKind::Etcd,
        vec![wait("other", "x", "a", "b"), wait("other", "y", "b", "a")],
    )];
    let graph = WaitGraph::new(&[], &both);
    assert_eq!((graph.owners.len(), graph.deadlocks.len()), (2, 1));
}

#[test]
fn an_owner_that_waits_for_itself_is_no_deadlock() {
    // Two sessions of one program, joined by the rule; and one owner id twice in a queue.
    let mut session = wait("db", "x", "app-w1", "app-w1");
    session.waiters[0].party = Arc::new(WaitParty {
        id: "another session".into(),
        ..(*party("app-w1")).clone()
    });
    let waits = [
        backend("db", BackendKind::Postgres, vec![session]),
        backend("coord", BackendKind::Etcd, vec![wait("coord", "y", "w2", "w2")]),
    ];
    let graph = graph(&waits);
    assert_eq!((graph.edges.len(), graph.deadlocks.len()), (1, 0));
}

#[test]
fn a_stale_wait_makes_a_cycle_possible_and_stays_visible() {
    let mut backends = three_systems();
    backends[1].status = BackendStatus::Stale;
    let stale = graph(&backends);
    assert_eq!(stale.deadlocks[0].cycle.doubt, Some(CycleDoubt::Stale));
    assert_eq!(
        stale
            .edges
            .iter()
            .filter(|edge| edge.trust == EdgeTrust::Stale)
            .count(),
        1
    );
    let page = GraphView::new(&stale, &Visible::default(), NOW).page();
    assert!(page.title.starts_with("One possible deadlock"), "{}", page.title);
    assert!(
        page.lead.contains("the last reading of coord is old"),
        "{}",
        page.lead
    );
    assert_eq!(page.waits_total, 3);
    // A partial scan of a backend hides waits; those that it read are current.
    backends[1].status = BackendStatus::Partial;
    let partial = graph(&backends);
    assert_eq!(partial.deadlocks[0].cycle.doubt, None);
    assert_eq!(
        partial
            .edges
            .iter()
            .filter(|edge| edge.trust == EdgeTrust::Partial)
            .count(),
        1
    );
}

#[test]
fn waits_without_a_common_moment_are_a_possible_cycle() {
    // One wait was read before another began.
    let mut backends = three_systems();
    backends[0].locks[0].read_at = Tick(50_000);
    backends[2].locks[0].waiters[0].since = Tick(50_001);
    let doubt = |backends: &[BackendWaits]| graph(backends).deadlocks[0].cycle.doubt;
    assert_eq!(doubt(&backends), Some(CycleDoubt::NotTogether));
    backends[0].locks[0].read_at = Tick(50_001);
    assert_eq!(doubt(&backends), None);
}

#[test]
fn a_release_frees_the_cycle_and_those_behind_it() {
    // w4 waits behind w1; releasing the lock that w1 waits for frees all, in order.
    let mut backends = three_systems();
    backends[1].locks.push(wait("coord", "b:other", "w4", "w1"));
    let graph = graph(&backends);
    let page = GraphView::new(&graph, &Visible::default(), NOW).page();
    assert_eq!(page.deadlocks[0].blocked, 4);
    let of_db = page.deadlocks[0]
        .releases
        .iter()
        .find(|one| one.lock.backend == name("db"));
    let of_db = of_db.unwrap();
    assert_eq!(
        (of_db.at_once.as_slice(), of_db.ends_session),
        (&["w1".to_owned()][..], true)
    );
    assert_eq!(of_db.freed(), 4);
    assert_eq!(page.trees[0].blocks.len() + page.trees_total, 2);
}

#[test]
fn waits_beyond_the_limit_are_counted() {
    let mut lock = wait("coord", "x", "w", "h");
    lock.more = 7;
    let one = lock.waiters[0].clone();
    lock.waiters[0].blocked_by = vec![party("h"); EDGES_MAX];
    lock.waiters.push(WaitingParty {
        party: party("v"),
        ..one
    });
    let graph = graph(&[backend("coord", BackendKind::Etcd, vec![lock])]);
    assert_eq!((graph.edges.len(), graph.cut), (EDGES_MAX, 8));
}

proptest! {
    #[test]
    fn deadlocks_are_found_exactly_if_waits_form_a_cycle(
        waits in proptest::collection::vec((0..6usize, 0..6usize, 0..2usize), 0..10)
    ) {
        // Workers on two systems; only the rule joins a cycle of both.
        let lock = |(at, (from, to, on)): (usize, &(usize, usize, usize))| match on {
            0 => wait("db", &at.to_string(), &format!("app-w{from}"), &format!("app-w{to}")),
            _ => wait("coord", &at.to_string(), &format!("w{from}"), &format!("w{to}")),
        };
        let locks: Vec<LockWaits> = waits.iter().enumerate().map(lock).collect();
        let (db, coord) = locks.into_iter().partition(|one| one.lock.backend == name("db"));
        let found = graph(&[backend("db", BackendKind::Postgres, db), backend("coord", BackendKind::Etcd, coord)]);
        let mut reach = [[false; 6]; 6];
        for (from, to, _) in waits.iter().filter(|(from, to, _)| from != to) {
            reach[*from][*to] = true;
        }
        for middle in 0..6 { for from in 0..6 { for to in 0..6 {
            reach[from][to] |= reach[from][middle] && reach[middle][to];
        }}}
        let is_cyclic = (0..6).any(|owner| (0..6).any(|other| other != owner && reach[owner][other] && reach[other][owner]));
        prop_assert_eq!(!found.deadlocks.is_empty(), is_cyclic);
    }
}

use std::time::Duration;

use super::*;
use runtime::clock::Clock;

const LIMITS: Limits = Limits {
    connections_max: 6,
    connections_per_source_max: 4,
    first_request_max: Duration::from_secs(1),
    silence_max: Duration::from_secs(1),
    body_max: Duration::from_secs(1),
};

struct Stage {
    places: Arc<Places>,
    clock: Clock,
    open: Vec<(Arc<IdleTracker>, ConnectionSlot)>,
}

impl Stage {
    fn new() -> Self {
        let network = |text: &str| vec![text.parse::<Network>().unwrap()];
        Self {
            places: Places::new(LIMITS, network("127.0.0.0/8"), network("10.0.0.1")),
            clock: Clock::start(),
            open: Vec::new(),
        }
    }

    /// A connection from this address, one second after the previous one. Returns whether it was admitted.
    fn connect(&mut self, peer: &str) -> bool {
        self.clock.advance(Duration::from_secs(1));
        let idle = IdleTracker::new(self.clock.clone());
        let place = self.places.admit(peer.parse().unwrap(), &idle);
        place.map(|place| self.open.push((idle, place))).is_some()
    }

    /// Indexes of admitted connections that have been closed.
    fn closed(&self) -> Vec<usize> {
        let is_closed = |(number, (idle, _)): (usize, &(Arc<IdleTracker>, ConnectionSlot))| {
            idle.is_closed().then_some(number)
        };
        self.open.iter().enumerate().filter_map(is_closed).collect()
    }
}

#[test]
fn a_full_share_closes_the_longest_idle_of_its_source() {
    // Five from one /64: the first is closed. With four busy ones the next is refused.
    let mut stage = Stage::new();
    for number in 0..5 {
        assert!(stage.connect(&format!("2001:db8::{number}")));
    }
    assert_eq!(stage.closed(), [0]);
    let _busy: Vec<_> = stage.open.iter().map(|(idle, _)| idle.request()).collect();
    assert!(!stage.connect("2001:db8::9"));
    assert!(stage.connect("2001:db8:0:1::9"));
    assert_eq!(stage.closed(), [0]);
}

#[test]
fn at_the_limit_the_largest_source_loses_a_connection() {
    // Four of one source and two of another; the longest idle one of the larger source is not its oldest.
    let mut stage = Stage::new();
    for peer in ["192.0.2.1"; 4].iter().chain(&["192.0.2.2"; 2]) {
        assert!(stage.connect(peer));
    }
    drop(stage.open[0].0.request());
    assert!(stage.connect("192.0.2.3"));
    assert_eq!(stage.closed(), [1]);
}

#[test]
fn open_event_streams_are_closed_after_idle_connections() {
    // The oldest has a stream, the next is idle, the third has a request in progress.
    let mut stage = Stage::new();
    for peer in ["192.0.2.1"; 3]
        .iter()
        .chain(&["192.0.2.2", "192.0.2.3", "192.0.2.4"])
    {
        assert!(stage.connect(peer));
    }
    let _stream = stage.open[0].0.stream();
    let _busy = stage.open[2].0.request();
    assert!(stage.connect("192.0.2.5"));
    assert_eq!(stage.closed(), [1]);
    assert!(stage.connect("192.0.2.5"));
    assert_eq!(stage.closed(), [0, 1]);
}

#[test]
fn loopback_has_no_limit_and_still_loses_connections() {
    // Six local connections exceed a share; another client gets the slot of one of them.
    let mut stage = Stage::new();
    for _ in 0..6 {
        assert!(stage.connect("127.0.0.1"));
    }
    assert!(stage.closed().is_empty());
    assert!(stage.connect("192.0.2.1"));
    assert_eq!(stage.closed(), [0]);
}

#[test]
fn a_declared_proxy_loses_connections_last() {
    // Five through the proxy and one direct: the direct one is closed first, although the proxy has more.
    let mut stage = Stage::new();
    for _ in 0..5 {
        assert!(stage.connect("10.0.0.1"));
    }
    assert!(stage.connect("192.0.2.1"));
    assert!(stage.connect("192.0.2.2"));
    assert_eq!(stage.closed(), [5]);
    stage.open.pop();
    assert!(stage.connect("10.0.0.1"));
    assert!(stage.connect("10.0.0.1"));
    assert_eq!(stage.closed(), [0, 5]);
}

#[test]
fn a_new_source_is_accepted_when_all_have_one_connection() {
    // Six sources with one each: one of them is closed for the seventh.
    let mut stage = Stage::new();
    for number in 0..7 {
        assert!(stage.connect(&format!("192.0.2.{number}")));
    }
    assert_eq!(stage.closed().len(), 1);
}

#[test]
fn slots_are_free_again_when_connections_end() {
    // All slots, twice.
    let mut stage = Stage::new();
    for _ in 0..2 {
        for number in 0..6 {
            assert!(stage.connect(&format!("192.0.2.{number}")));
        }
        assert!(stage.closed().is_empty());
        stage.open.clear();
    }
    assert!(stage.places.lock_slots().sources.is_empty());
}

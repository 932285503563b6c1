use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn held(resource: &str, token: u64, until: Option<i64>) -> HeldUntil {
    HeldUntil {
        resource: Resource::from(resource),
        token: FencingToken::new(token),
        until: until.map(StoreTime::from_ms),
    }
}

/// A batch that read the store's clock and ours at `at`.
fn batch(at: i64, held: Vec<HeldUntil>) -> Applied {
    Applied {
        now: StoreTime::from_ms(at),
        read_at: Tick(at),
        done: Vec::new(),
        heads: Vec::new(),
        changed: Vec::new(),
        held,
        expired: Vec::new(),
        activity: Vec::new(),
    }
}

fn schedule_of(held: Vec<HeldUntil>) -> ExpirySchedule {
    let schedule = ExpirySchedule::default();
    assert_eq!(schedule.take_due(Tick(i64::MAX), 10), []);
    schedule.record_batch(&batch(0, held));
    schedule
}

fn due(schedule: &ExpirySchedule, at: i64) -> Vec<Resource> {
    schedule.take_due(Tick(at), usize::MAX)
}

fn a() -> Resource {
    Resource::from("a")
}

#[test]
fn a_lease_is_due_once_at_its_end() {
    let schedule = schedule_of(vec![held("a", 1, Some(10))]);
    assert_eq!(due(&schedule, 9), []);
    assert_eq!(due(&schedule, 10), [a()]);
    assert_eq!(due(&schedule, 10), []);
}

#[test]
fn due_leases_are_returned_in_portions() {
    let schedule = schedule_of((0..5).map(|n| held(&n.to_string(), 1, Some(n))).collect());
    assert_eq!(schedule.take_due(Tick(9), 3).len(), 3);
    assert_eq!(schedule.take_due(Tick(9), 3).len(), 2);
}

#[test]
fn a_renewal_may_come_before_or_after_the_end_that_it_moves() {
    let schedule = schedule_of(vec![held("a", 1, Some(10))]);
    schedule.record_batch(&batch(1, vec![held("a", 1, Some(20))]));
    assert_eq!(due(&schedule, 19), []);
    schedule.record_batch(&batch(2, vec![held("a", 1, Some(15))]));
    assert_eq!(due(&schedule, 15), [a()]);
}

#[test]
fn a_stored_end_is_not_due_again() {
    let schedule = schedule_of(vec![held("a", 1, Some(10))]);
    assert_eq!(due(&schedule, 10), [a()]);
    schedule.record_batch(&batch(10, vec![held("a", 1, None)]));
    schedule.record_attempt(a(), Some(StoreTime::from_ms(10)));
    assert_eq!(due(&schedule, 99), []);
}

#[test]
fn an_attempt_that_was_early_or_failed_is_repeated() {
    let schedule = schedule_of(vec![held("a", 1, Some(10))]);
    assert_eq!(due(&schedule, 10), [a()]);
    schedule.record_attempt(a(), Some(StoreTime::from_ms(9)));
    assert_eq!(due(&schedule, 10), [a()]);
    schedule.record_attempt(a(), None);
    assert_eq!(due(&schedule, 10), [a()]);
}

#[test]
fn a_lease_of_another_replica_since_then_is_forgotten() {
    // By the store the lease has not expired, although it has by the expiry that is known here.
    let schedule = schedule_of(vec![held("a", 1, Some(10))]);
    assert_eq!(due(&schedule, 10), [a()]);
    schedule.record_attempt(a(), Some(StoreTime::from_ms(10)));
    assert_eq!(due(&schedule, 99), []);
    assert!(schedule.state.lock().held.is_empty());
}

#[test]
fn a_late_report_of_an_older_lease_changes_nothing() {
    let schedule = schedule_of(vec![held("a", 2, Some(10))]);
    schedule.record_batch(&batch(0, vec![held("a", 1, None), held("a", 1, Some(99))]));
    assert_eq!(due(&schedule, 10), [a()]);
}

#[test]
fn the_newest_reading_of_the_clock_counts() {
    // It was set back by 50 ms, and a batch from before that is recorded late.
    let schedule = schedule_of(vec![held("a", 1, Some(100))]);
    let set_back = Applied {
        read_at: Tick(60),
        ..batch(10, Vec::new())
    };
    schedule.record_batch(&set_back);
    schedule.record_batch(&batch(50, Vec::new()));
    assert_eq!(due(&schedule, 149), []);
    assert_eq!(due(&schedule, 150), [a()]);
}

#[test]
fn ended_leases_take_no_memory_for_long() {
    // Of an hour each, released at once: the number of entries stays far below that of the grants.
    let schedule = ExpirySchedule::default();
    for token in 0..20_000 {
        let name = (token % 4).to_string();
        schedule.record_batch(&batch(0, vec![held(&name, token, Some(3_600_000))]));
        schedule.record_batch(&batch(0, vec![held(&name, token, None)]));
    }
    let state = schedule.state.lock();
    assert!(state.ends.len() <= SPARE + 8, "{}", state.ends.len());
    assert!(state.held.is_empty());
}

#[derive(Debug, Clone)]
enum Act {
    Hold { resource: u8, ttl: i64 },
    Renew { resource: u8, ttl: i64 },
    End { resource: u8 },
    Wait { ms: i64 },
}

fn act() -> impl Strategy<Value = Act> {
    let resource = 0..4_u8;
    prop_oneof![
        (resource.clone(), 1..30_i64).prop_map(|(resource, ttl)| Act::Hold { resource, ttl }),
        (resource.clone(), 1..30_i64).prop_map(|(resource, ttl)| Act::Renew { resource, ttl }),
        resource.prop_map(|resource| Act::End { resource }),
        (1..10_i64).prop_map(|ms| Act::Wait { ms }),
    ]
}

proptest! {
    #[test]
    fn exactly_the_ended_leases_are_due(acts in prop::collection::vec(act(), 1..200)) {
        // Compared with a table of all held leases.
        let schedule = ExpirySchedule::default();
        let mut table: HashMap<u8, (u64, i64)> = HashMap::new();
        let (mut now, mut token) = (0, 0);
        for act in acts {
            let change = match act {
                Act::Hold { resource, ttl } => {
                    token += 1;
                    table.insert(resource, (token, now + ttl));
                    held(&resource.to_string(), token, Some(now + ttl))
                }
                Act::Renew { resource, ttl } => {
                    let Some((token, until)) = table.get_mut(&resource) else { continue };
                    *until = now + ttl;
                    held(&resource.to_string(), *token, Some(now + ttl))
                }
                Act::End { resource } => {
                    let Some((token, _)) = table.remove(&resource) else { continue };
                    held(&resource.to_string(), token, None)
                }
                Act::Wait { ms } => {
                    now += ms;
                    let ended: Vec<(u8, u64)> = table
                        .extract_if(|_, (_, until)| *until <= now)
                        .map(|(resource, (token, _))| (resource, token))
                        .collect();
                    let expected: BTreeSet<String> = ended.iter().map(|(it, _)| it.to_string()).collect();
                    let found: BTreeSet<String> = due(&schedule, now).iter().map(Resource::text).collect();
                    prop_assert_eq!(found, expected);
                    let ends = ended.iter().map(|(it, token)| held(&it.to_string(), *token, None));
                    schedule.record_batch(&batch(now, ends.collect()));
                    continue;
                }
            };
            schedule.record_batch(&batch(now, vec![change]));
        }
    }
}

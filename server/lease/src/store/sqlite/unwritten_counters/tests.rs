use domain::lease::{Lease, Metadata, Ttl};
use domain::names::OwnerId;
use domain::token::FencingToken;

use super::*;

const START: StoreTime = StoreTime::from_ms(1_800_000_000_000);

type Changes = HashMap<Resource, (u64, ResourceState)>;

fn id(number: u8) -> LeaseId {
    LeaseId::from_parts(1_700_000_000_000 + i64::from(number), [number; 10])
}

fn resource(name: &str) -> Resource {
    Resource::from(name)
}

/// The grant of a token, after the one before it.
fn grant(name: &str, token: u8) -> (Resource, (u64, ResourceState)) {
    let token_number = FencingToken::new(u64::from(token));
    let lease = Lease {
        id: id(token),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        token: token_number,
        ttl: Ttl::parse(30, 3_600).unwrap(),
        metadata: Metadata::default(),
        margin_ms: 0,
        acquired_at: START,
        expires_at: START.plus(30_000),
        renewed_at: START,
        renewals: 0,
        ending: None,
    };
    let state = ResourceState {
        last_token: token_number,
        lease: Some(lease),
        ..ResourceState::default()
    };
    (resource(name), (u64::from(token) - 1, state))
}

/// The lock delay of a forced unlock of the lease with a token.
fn lock_delay(name: &str, token: u8) -> (Resource, (u64, ResourceState)) {
    let (name, (_, mut state)) = grant(name, token);
    state.locked_until = Some(START.plus(5_000));
    (name, (u64::from(token), state))
}

/// One batch; returns the tokens of the rows it writes, with those they replace, and where unwritten counters begin.
fn batch(
    counters: &mut UnwrittenCounters,
    changes: Changes,
    at_ms: i64,
) -> (Vec<(u64, u64)>, Option<LeaseId>) {
    let plan = counters.plan(&changes, CountersWritten::No);
    let rows = plan.rows.iter().map(|row| (row.written, row.token)).collect();
    let from = plan.unwritten_from;
    counters.commit(plan, START.plus(at_ms));
    (rows, from)
}

fn current() -> UnwrittenCounters {
    let mut counters = UnwrittenCounters::default();
    counters.clear();
    counters.commit(CounterPlan::default(), START);
    counters
}

#[test]
fn grants_of_one_second_cost_one_row() {
    let mut counters = current();
    // The row of a first grant must exist for the others.
    assert_eq!(
        batch(&mut counters, [grant("r", 1)].into(), 0),
        (vec![(0, 1)], None)
    );
    for token in 2..=9 {
        assert_eq!(
            batch(&mut counters, [grant("r", token)].into(), 1),
            (vec![], Some(id(token.min(2))))
        );
    }
    // After a second it is due with the next batch.
    assert_eq!(
        batch(&mut counters, [grant("s", 1)].into(), WAIT_MS),
        (vec![(0, 1)], Some(id(2)))
    );
    assert_eq!(counters.read(&resource("r")).unwrap().unwrap().token, 9);
    assert_eq!(batch(&mut counters, [grant("t", 1)].into(), WAIT_MS).0.len(), 2);
    assert_eq!(
        (counters.read(&resource("r")), counters.waiting.len()),
        (Ok(None), 0)
    );
    assert_eq!(
        batch(&mut counters, [grant("u", 1)].into(), WAIT_MS),
        (vec![(0, 1)], None)
    );
}

#[test]
fn a_due_counter_is_written_also_if_granted_again() {
    let mut counters = current();
    batch(&mut counters, [grant("r", 2)].into(), 0);
    batch(&mut counters, [grant("q", 3)].into(), WAIT_MS);
    // The row still has the token before the second one.
    assert_eq!(
        batch(&mut counters, [grant("r", 4)].into(), WAIT_MS),
        (vec![(1, 4), (2, 3)], None)
    );
    assert_eq!(counters.waiting.len(), 0);
}

#[test]
fn a_lock_delay_is_written_with_its_batch() {
    let mut counters = current();
    batch(&mut counters, [grant("r", 2)].into(), 0);
    let delayed = lock_delay("r", 2);
    let name = delayed.0.clone();
    let plan = counters.plan(&[delayed].into(), CountersWritten::No);
    assert_eq!((plan.rows[0].written, plan.rows[0].token), (1, 2));
    assert_eq!(plan.rows[0].locked_until, Some(START.plus(5_000)));
    counters.commit(plan, START);
    assert_eq!(counters.read(&name), Ok(None));
}

#[test]
fn a_counter_is_read_from_memory_only_while_all_are_known() {
    let mut counters = UnwrittenCounters::default();
    assert_eq!(counters.read(&resource("r")), Err(Incomplete));
    counters.clear();
    // A batch that fails changes nothing that a reader sees.
    counters.plan(&[grant("r", 2)].into(), CountersWritten::No);
    assert_eq!(counters.read(&resource("r")), Ok(None));
    batch(&mut counters, [grant("r", 2)].into(), 0);
    assert_eq!(counters.read(&resource("r")).unwrap().unwrap().lease, id(2));
    counters.set_incomplete();
    assert_eq!(counters.read(&resource("r")), Err(Incomplete));
}

#[test]
fn a_batch_writes_more_counters_than_it_adds() {
    let mut counters = current();
    let grants =
        |names: std::ops::Range<usize>| names.map(|name| grant(&name.to_string(), 2)).collect::<Changes>();
    batch(&mut counters, grants(0..1_000), 0);
    batch(&mut counters, grants(1_000..1_100), WAIT_MS);
    let plan = counters.plan(&grants(2_000..2_100), CountersWritten::No);
    assert_eq!(plan.rows.len(), 200);
    // In the order of names, and all of them at once when nothing else happens.
    assert!(plan.rows.is_sorted_by_key(|row| row.resource.clone()));
    let idle = counters.plan_idle();
    assert_eq!(idle.rows.len(), IDLE_ROWS);
    // Of the others no lease is before this, or a kill would lose their counters.
    assert_eq!(idle.unwritten_from, Some(id(2)));
}

#[test]
fn beyond_the_limit_counters_do_not_wait() {
    let mut counters = current();
    let grants = (0..WAITING_MAX).map(|name| grant(&name.to_string(), 2));
    batch(&mut counters, grants.collect(), 0);
    assert_eq!(counters.waiting.len(), WAITING_MAX);
    assert_eq!(batch(&mut counters, [grant("r", 2)].into(), 0).0, [(1, 2)]);
    assert_eq!(counters.waiting.len(), WAITING_MAX);
}

#[test]
fn no_bound_remains_after_its_last_counter_was_written() {
    let mut counters = current();
    batch(&mut counters, [grant("r", 2)].into(), 0);
    batch(&mut counters, [lock_delay("r", 2)].into(), WAIT_MS);
    assert_eq!(
        (counters.waiting.len(), counters.plan_idle().unwritten_from),
        (0, None)
    );
}

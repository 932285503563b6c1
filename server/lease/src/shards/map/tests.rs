use std::collections::HashSet;

use super::*;

fn key(issuer: &str, key: &str) -> KeyName {
    KeyName {
        issuer: issuer.into(),
        key: key.into(),
    }
}

#[test]
fn the_number_of_shards_is_a_power_of_two_up_to_64() {
    let shards: Vec<usize> = (0..=130)
        .filter(|number| ShardMap::new(*number).is_some())
        .collect();
    assert_eq!(shards, [1, 2, 4, 8, 16, 32, 64]);
}

#[test]
fn names_hash_as_they_did_when_their_leases_were_granted() {
    // Frozen: a difference moves resources of existing stores to shards without their fencing counters.
    let map = ShardMap::new(64).unwrap();
    let resource = |name: &str| map.of_resource(&Resource::from(name)).get();
    let indexes = ["", "abc", "orders", "orders/4711", "zürich"].map(resource);
    assert_eq!((HASH, indexes), ("sha256-1", [56, 46, 7, 44, 8]));
    let keys = [key("", ""), key("t1", "k"), key("t", "1k")].map(|key| map.of_key(&key).get());
    assert_eq!(keys, [46, 54, 49]);
}

#[test]
fn fewer_shards_are_a_prefix_of_more() {
    for name in 0..1_000 {
        let resource = Resource::from(format!("r{name}").as_str());
        let index_among = |shards| ShardMap::new(shards).unwrap().of_resource(&resource).get();
        assert_eq!(
            (index_among(1), index_among(2), index_among(8)),
            (0, index_among(64) >> 5, index_among(64) >> 3)
        );
    }
}

#[test]
fn every_shard_gets_its_share_of_similar_names() {
    let map = ShardMap::new(8).unwrap();
    let mut counts = [0_u32; 8];
    for name in 0..8_000 {
        let resource = Resource::from(format!("job:{name}").as_str());
        counts[map.of_resource(&resource).number()] += 1;
    }
    assert!(
        counts.iter().all(|count| (850..1_150).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_lease_id_names_its_shard_and_stays_random() {
    let map = ShardMap::new(64).unwrap();
    let ids: HashSet<LeaseId> = (0..64)
        .map(|index| {
            let id = map.mark(
                LeaseId::from_parts(1_700_000_000_000, [0xA5; 10]),
                ShardIndex(index),
            );
            assert_eq!(map.of_lease(id).get(), index);
            // A UUID of version 7 all the same, with its time and its other bits.
            let text = id.to_string();
            assert_eq!(LeaseId::parse(&text), Some(id));
            assert_eq!(
                (&text[..15], &text[17..]),
                ("018bcfe5-6800-7", "6-a5a5-a5a5a5a5a5a5")
            );
            id
        })
        .collect();
    assert_eq!(ids.len(), 64);
    let unsharded = LeaseId::from_parts(1, [3; 10]);
    let map = ShardMap::new(1).unwrap();
    assert_eq!(map.mark(unsharded, ShardIndex(0)), unsharded);
    assert_eq!(map.of_lease(unsharded), ShardIndex(0));
}

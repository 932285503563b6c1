use super::*;

/// `a`, `b`: a value; `.`: no key; `?`: unreachable.
fn replies(text: &str) -> Vec<NodeReply<char>> {
    text.chars()
        .map(|letter| match letter {
            '.' => NodeReply::Empty,
            '?' => NodeReply::Unreachable,
            value => NodeReply::Value(value),
        })
        .collect()
}

#[test]
fn every_distribution_of_values_has_one_state() {
    // Three and five nodes; `a` was on a quorum before in the second column only.
    for (text, fresh, was_held) in [
        ("aaa", Some(QuorumState::Held), Some(QuorumState::Held)),
        ("aa.", Some(QuorumState::Held), Some(QuorumState::Held)),
        ("a?a", Some(QuorumState::Held), Some(QuorumState::Held)),
        ("abb", Some(QuorumState::Held), Some(QuorumState::Held)),
        ("ab.", Some(QuorumState::Split), Some(QuorumState::Split)),
        ("ab?", Some(QuorumState::Split), Some(QuorumState::Split)),
        ("abc", Some(QuorumState::Split), Some(QuorumState::Split)),
        ("a..", Some(QuorumState::Leftover), Some(QuorumState::Lost)),
        ("a.?", Some(QuorumState::Unknown), Some(QuorumState::Unknown)),
        ("a??", Some(QuorumState::Unknown), Some(QuorumState::Unknown)),
        ("...", None, None),
        ("..?", None, None),
        ("aabb?", Some(QuorumState::Split), Some(QuorumState::Split)),
        ("aa...", Some(QuorumState::Leftover), Some(QuorumState::Lost)),
        // One silent node cannot make a quorum of one value.
        ("a...?", Some(QuorumState::Leftover), Some(QuorumState::Lost)),
        ("aa..?", Some(QuorumState::Unknown), Some(QuorumState::Unknown)),
    ] {
        let replies = replies(text);
        assert_eq!(judge(&replies, |_| false), fresh, "{text}");
        assert_eq!(
            judge(&replies, |value| value == 'a'),
            was_held,
            "{text} after a quorum"
        );
    }
}

#[test]
fn values_are_counted_most_nodes_first() {
    assert_eq!(tally(&replies("abb.c")), [('b', 2), ('a', 1), ('c', 1)]);
    assert_eq!((quorum_of(3), quorum_of(5), quorum_of(7)), (2, 3, 4));
}

#[test]
fn remaining_time_ends_when_fewer_than_a_quorum_remain() {
    // The second longest of three decides; a key without TTL outlasts the others.
    let left = |all: &[i64]| all.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(remaining_ms(left(&[900, 500, 700]), 2), Some(700));
    assert_eq!(remaining_ms(left(&[900, 500]), 2), Some(500));
    assert_eq!(remaining_ms(vec![None, Some(500), Some(400)], 2), Some(500));
    assert_eq!(remaining_ms(vec![None, None, Some(400)], 2), None);
    // Without a quorum: until the last one is gone.
    assert_eq!(remaining_ms(left(&[900]), 2), Some(900));
    assert_eq!(remaining_ms(Vec::new(), 2), None);
}

fn node(name: &str, reachable: bool, value: Option<(u8, &str)>) -> NodeCell {
    NodeCell {
        node: name.to_owned(),
        reachable,
        rank: value.map(|(rank, _)| rank),
        value: value.map(|(_, owner)| owner.to_owned()),
        owner_id: value.map(|(_, owner)| OwnerId::new(owner)),
        remaining_ms: value.map(|_| 5_000),
        age_ms: Some(0),
        answer_ms: None,
        clock_offset_ms: None,
        fault: None,
    }
}

#[test]
fn the_sentence_names_owners_and_silent_nodes() {
    let quorum = Quorum {
        state: QuorumState::Split,
        needed: 3,
        nodes: vec![
            node("a", true, Some((0, "api-14"))),
            node("b", true, Some((0, "api-14"))),
            node("c", true, Some((1, "api-09"))),
            node("d", true, Some((1, "api-09"))),
            node("e", false, None),
        ],
    };
    let (head, body) = quorum.sentence();
    assert_eq!(head, "No owner is seen on 3 of the 5 nodes.");
    assert_eq!(
        body,
        "api-14 has 2, api-09 has 2. e does not answer. If it has one of these values, that owner may have a quorum."
    );
}

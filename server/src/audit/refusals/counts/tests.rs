use serde_json::json;

use super::*;

fn entry(source: u32, outcome: &str, name: &str) -> Entry {
    let origin = Origin {
        ip: Some(source.to_be_bytes().into()),
        ..Origin::default()
    };
    let actor = Actor {
        id: "anonymous".to_owned(),
        name: name.to_owned(),
        role: None,
    };
    Entry::new(Action::Login, outcome, actor, origin)
}

fn at(seconds: i64) -> Tick {
    Tick(seconds * 1_000)
}

#[test]
fn the_first_is_written_at_once_and_the_rest_once_a_minute() {
    // 100 guesses in a minute for three names; then a minute without any.
    let mut counts = Counts::default();
    assert_eq!(
        counts.add(entry(1, "wrong_password", "ada"), "", at(0)),
        Some(entry(1, "wrong_password", "ada"))
    );
    for number in 0..100 {
        let name = ["ada", "bob", "eve"][number % 3];
        assert_eq!(counts.add(entry(1, "wrong_password", name), "", at(1)), None);
    }
    assert!(counts.due(at(59)).is_empty());
    let due = counts.due(at(60));
    assert_eq!(due.len(), 1);
    assert_eq!(
        due[0].0.after,
        Some(json!({"times": 100, "names": ["ada", "bob", "eve"]}))
    );
    assert!(counts.due(at(200)).is_empty());
    assert!(counts.by_key.is_empty());
    assert!(
        counts
            .add(entry(1, "wrong_password", "ada"), "", at(201))
            .is_some()
    );
}

#[test]
fn kinds_and_sources_are_counted_separately() {
    // A wrong password and a bad link from one source, a wrong password from another: each is written at once.
    let mut counts = Counts::default();
    assert!(counts.add(entry(1, "wrong_password", "ada"), "", at(0)).is_some());
    assert!(counts.add(entry(1, "bad_link", "anonymous"), "", at(0)).is_some());
    assert!(counts.add(entry(2, "wrong_password", "ada"), "", at(0)).is_some());
}

#[test]
fn principals_are_counted_separately_from_one_network() {
    let mut counts = Counts::default();
    for id in ["t1", "t2"] {
        let mut refused = entry(1, "forbidden", id);
        id.clone_into(&mut refused.actor.id);
        assert!(counts.add(refused.clone(), "", at(0)).is_some());
        assert!(counts.add(refused, "", at(1)).is_none());
    }
    let due = counts.due(at(60));
    let mut ids: Vec<&str> = due.iter().map(|(entry, _)| entry.actor.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["t1", "t2"]);
}

#[test]
fn entries_and_memory_are_bounded_and_no_request_is_lost() {
    // An hour with 2,000 sources a minute: entries stay within the allowance and account for every request.
    let mut counts = Counts::default();
    let mut entries = Vec::new();
    for minute in 0..60 {
        for source in 0..2_000_u32 {
            let source = source + minute * 100;
            let now = at(i64::from(minute) * 60 + 1);
            entries.extend(counts.add(entry(source, "unauthenticated", "anonymous"), "", now));
            assert!(counts.by_key.len() <= SOURCES_MAX);
        }
        for second in [30, 60] {
            let due = counts.due(at(i64::from(minute) * 60 + second));
            entries.extend(due.into_iter().map(|(entry, _)| entry));
        }
    }
    entries.extend(counts.drain().into_iter().map(|(entry, _)| entry));
    assert_eq!(entries.iter().map(times).sum::<u64>(), 120_000);
    // The burst, one every 10 s, one a minute for the others, and the final flush.
    assert!(entries.len() <= 30 + 360 + 60 + 31, "{}", entries.len());
}

#[test]
fn an_entry_that_was_not_written_is_counted_again() {
    // The store rejects the first; the next entry of the source includes its count.
    let mut counts = Counts::default();
    let first = counts.add(entry(1, "bad_link", "anonymous"), "", at(0)).unwrap();
    counts.put_back(first, "");
    assert!(counts.add(entry(1, "bad_link", "anonymous"), "", at(1)).is_none());
    let due = counts.due(at(60));
    assert_eq!(times(&due[0].0), 2);
}

use domain::lease::StoreTime;
use domain::tick::Tick;

use super::*;

fn head(resource: &str, number: u8) -> QueueHead {
    QueueHead {
        resource: Resource::from(resource),
        waiter: LeaseId::from_parts(1_700_000_000_000, [number; 10]),
        replica: "other".into(),
        in_ms: i64::from(number),
    }
}

fn applied(changed: &[String], heads: Vec<QueueHead>) -> Applied {
    Applied {
        now: StoreTime::from_ms(0),
        read_at: Tick::default(),
        done: Vec::new(),
        heads,
        changed: changed.iter().map(|name| Resource::from(name.as_str())).collect(),
        held: Vec::new(),
        expired: Vec::new(),
        activity: Vec::new(),
    }
}

fn notices(pending: PendingNotices) -> Vec<Notice> {
    let payloads = pending.into_payloads("here").unwrap();
    assert!(payloads.iter().all(|text| text.len() <= PAYLOAD_BYTES_MAX));
    payloads.iter().map(|text| from_json(text).unwrap()).collect()
}

#[test]
fn changes_of_several_batches_are_sent_once() {
    let mut pending = PendingNotices::default();
    pending.add(&applied(&["a".into(), "b".into()], vec![head("a", 1)]));
    pending.add(&applied(&["b".into()], vec![head("a", 2)]));
    let sent = notices(pending);
    let [notice] = &sent[..] else { panic!("{sent:?}") };
    let mut changed = notice.changed.clone();
    changed.sort_unstable();
    assert_eq!(changed, ["a", "b"]);
    assert_eq!(notice.heads.len(), 1);
    assert_eq!(notice.heads[0].3, 2);
    assert!(!notice.missed);
}

#[test]
fn long_names_are_split_into_several_payloads() {
    // Each quotation mark takes two bytes of JSON.
    let names: Vec<String> = (0..200).map(|i| format!("{i}{}", "\"".repeat(500))).collect();
    let mut pending = PendingNotices::default();
    pending.add(&applied(&names, vec![head(&"h".repeat(512), 1)]));
    let sent = notices(pending);
    assert!(sent.len() > 20, "{}", sent.len());
    assert_eq!(
        sent.iter().map(|notice| notice.changed.len()).sum::<usize>(),
        names.len()
    );
    assert_eq!(sent.iter().map(|notice| notice.heads.len()).sum::<usize>(), 1);
}

#[test]
fn too_many_changes_are_replaced_by_one_full_read() {
    let names: Vec<String> = (0..=RESOURCES_MAX).map(|i| i.to_string()).collect();
    let mut pending = PendingNotices::default();
    pending.add(&applied(&names, vec![head("a", 1)]));
    pending.add(&applied(&names, Vec::new()));
    let sent = notices(pending);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].missed && sent[0].changed.is_empty());
    assert_eq!(sent[0].heads.len(), 1);
}

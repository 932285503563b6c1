use domain::charts::timeline::{Holder, Told};
use domain::detail::EventKind;
use domain::history::HistoryEvent;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::token::FencingToken;

use super::*;

const MINUTE: i64 = 60_000;

fn event(at: i64, kind: EventKind, who: &str, token: u64) -> HistoryEvent {
    HistoryEvent {
        at: at * MINUTE,
        kind,
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: Resource::from("r"),
        owner: Some(OwnerId::new(who)),
        token: Some(FencingToken::new(token)),
        ttl_ms: None,
        stale_after_ms: None,
        not_before: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}

fn drawn(told: &Told<'_>) -> (Timeline, String) {
    let timeline = Timeline::of(told, TimeScale::new(0, 60 * MINUTE), 60 * MINUTE);
    let links = Links {
        may_audit: true,
        fencing: "/fencing?prefix=r",
    };
    let html = ownership(&timeline, "last 1 h", Markup::new(), &links).into_string();
    (timeline, html)
}

#[test]
fn the_drawing_and_its_table_tell_the_same() {
    // A zombie of a hostile name: what each mark's tooltip says stands in the table, and nothing of the name is HTML.
    let bad = "\u{202e}<script>alert(1)</script>";
    let events = [
        event(10, EventKind::Acquired, bad, 2),
        event(20, EventKind::Expired, bad, 2),
        event(20, EventKind::Reclaimed, "w7", 3),
    ];
    let write = Refused {
        at: 25 * MINUTE,
        token: FencingToken::new(2),
        current: Some(FencingToken::new(3)),
        owner: None,
        source: bad.to_owned(),
    };
    let holder = Holder {
        owner: Some(OwnerId::new("w7")),
        token: Some(FencingToken::new(3)),
        since: None,
    };
    let (timeline, html) = drawn(&Told {
        events: &events,
        refused: &[write],
        holders: Some(&[holder]),
        ..Told::default()
    });
    assert!(
        html.contains("an owner still wrote 5 m 00 s after it lost the lock"),
        "{html}"
    );
    assert!(!html.contains("<script") && !html.contains('\u{202e}'), "{html}");
    let rows = table(&timeline).rows;
    assert_eq!(rows.len(), 4);
    let escaped = |text: &str| {
        let mut it = Markup::new();
        it.text(text);
        it.into_string()
    };
    for row in &rows {
        let told = escaped(&row[3]);
        assert!(html.matches(&told).count() >= 2, "{told}");
    }
    assert!(
        html.contains("class=\"zombie\"")
            && html.contains("class=\"ran-out\"")
            && html.contains("#s-reclaim")
    );
}

#[test]
fn a_wait_that_ended_is_drawn_and_told_with_its_length() {
    // w7 stood in line for ten minutes and holds it now: no place in a line is told of it.
    let granted = HistoryEvent {
        waited_ms: Some(10 * MINUTE),
        ..event(20, EventKind::GrantedAfterWait, "w7", 3)
    };
    let events = [event(20, EventKind::Acquired, "w7", 3), granted];
    let (timeline, html) = drawn(&Told {
        events: &events,
        ..Told::default()
    });
    let told = "waited 10 m 00 s, then granted";
    assert!(html.contains("class=\"waits\"") && html.contains(told), "{html}");
    assert!(
        table(&timeline)
            .rows
            .iter()
            .any(|row| row[0] == "w7" && row[3] == told)
    );
    assert!(!html.contains("in line"), "{html}");
}

#[test]
fn ten_thousand_rows_are_few_bytes() {
    // 5,000 leases of 40 owners: the string of the section stays a page's.
    let mut events = Vec::new();
    for token in 1..=5_000_u64 {
        let grant = event(0, EventKind::Acquired, &format!("job-{}", token % 40), token);
        let at = i64::try_from(token).unwrap() * 700;
        let end = HistoryEvent {
            at: at + 500,
            kind: EventKind::Released,
            ..grant.clone()
        };
        events.extend([HistoryEvent { at, ..grant }, end]);
    }
    let (timeline, html) = drawn(&Told {
        events: &events,
        holders: Some(&[]),
        ..Told::default()
    });
    assert_eq!(timeline.more, 30);
    assert!(html.len() < 30_000, "{} bytes", html.len());
}

#[test]
fn without_history_it_says_so() {
    let (_, html) = drawn(&Told::default());
    assert!(html.contains("nothing seen in this range") && html.contains("Nobody was seen to hold it"));
}

use domain::charts::range::RangePreset;
use domain::charts::timeline::{Holder, TimelineInput};
use domain::history::HistoryEvent;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::token::FencingToken;

use super::*;
use crate::charts::tests::html;

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

fn drawn(expected: &TimelineInput<'_>) -> (Timeline, String) {
    let timeline = Timeline::new(expected, TimeScale::new(0, 60 * MINUTE), 60 * MINUTE);
    let shown = timeline.clone();
    let html = html(move || {
        let links = MarkLinks {
            may_audit: true,
            fencing: "/fencing?prefix=r".to_owned(),
        };
        let range = ShownRange::from_pairs(&[], RangePreset::Hour, None, 60 * MINUTE);
        let timeline = Signal::stored(shown.clone());
        let (range, links, url) = (
            Signal::stored(range),
            Signal::stored(links),
            Signal::stored(PageUrl::default()),
        );
        view! { <Ownership timeline range links url/> }.into_any()
    });
    (timeline, html)
}

#[test]
fn the_chart_and_its_table_agree() {
    // A zombie with a hostile name: each mark's tooltip is in the table too, and the name
    // produces no HTML.
    let bad = "\u{202e}<script>alert(1)</script>";
    let events = [
        event(10, EventKind::Acquired, bad, 2),
        event(20, EventKind::Expired, bad, 2),
        event(20, EventKind::Reclaimed, "w7", 3),
    ];
    let write = RejectedWrite {
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
    let (timeline, html) = drawn(&TimelineInput {
        events: &events,
        refused: &[write],
        holders: Some(&[holder]),
        ..TimelineInput::default()
    });
    assert!(
        html.contains("an owner still wrote 5 m 00 s after it lost the lock"),
        "{html}"
    );
    assert!(!html.contains("<script") && !html.contains('\u{202e}'), "{html}");
    let rows = table(&timeline).rows;
    assert_eq!(rows.len(), 4);
    let escaped = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    for row in &rows {
        let expected = escaped(&row[3]);
        assert!(html.matches(&expected).count() >= 2, "{expected}");
    }
    assert!(
        html.contains("class=\"zombie\"")
            && html.contains("class=\"ran-out\"")
            && html.contains("#s-reclaim")
    );
}

#[test]
fn an_ended_wait_is_drawn_with_its_length() {
    // w7 waited for ten minutes and holds the lock now: no queue position is shown.
    let granted = HistoryEvent {
        waited_ms: Some(10 * MINUTE),
        ..event(20, EventKind::GrantedAfterWait, "w7", 3)
    };
    let events = [event(20, EventKind::Acquired, "w7", 3), granted];
    let (timeline, html) = drawn(&TimelineInput {
        events: &events,
        ..TimelineInput::default()
    });
    let expected = "waited 10 m 00 s, then granted";
    assert!(
        html.contains("class=\"waits\"") && html.contains(expected),
        "{html}"
    );
    assert!(
        table(&timeline)
            .rows
            .iter()
            .any(|row| row[0] == "w7" && row[3] == expected)
    );
    assert!(!html.contains("in queue"), "{html}");
}

#[test]
fn ten_thousand_rows_are_few_bytes() {
    // 5,000 leases of 40 owners: the HTML stays as small as a page.
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
    let (timeline, html) = drawn(&TimelineInput {
        events: &events,
        holders: Some(&[]),
        ..TimelineInput::default()
    });
    assert_eq!(timeline.more, 30);
    assert!(html.len() < 30_000, "{} bytes", html.len());
}

#[test]
fn without_history_the_timeline_has_an_empty_state() {
    let (_, html) = drawn(&TimelineInput::default());
    assert!(html.contains("no data in this range") && html.contains("No holder in this range"));
}

//! `/audit` and `/audit/{id}` as HTML: complete without a script, hostile names harmless, every state designed.

use super::console::{Console, about};
use super::stage::{Home, fill};
use crate::support::eventually::eventually;

#[tokio::test]
async fn the_page_searches_by_its_url_and_carries_that_into_its_links() {
    // A filter with hostile text, the next page, the files, the way back.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    fill(&console.audit, 130).await;
    let (status, page) = console.text(&auditor, "/audit?prefix=tenant_&limit=10").await;
    assert_eq!(status, 200);
    assert!(
        page.contains("value=\"tenant_\"") && page.contains("tenant_0:r130"),
        "{page}"
    );
    assert!(page.contains("/v1/audit/export?format=csv&amp;prefix=tenant_"));
    assert!(page.contains("/v1/audit/export?format=json&amp;prefix=tenant_"));
    let older = page.split("rel=\"next\" href=\"").nth(1).unwrap();
    let older = older.split('"').next().unwrap().replace("&amp;", "&");
    assert!(
        older.contains("prefix=tenant_") && older.contains("cursor="),
        "{older}"
    );
    let (_, next) = console.text(&auditor, &older).await;
    assert!(
        next.contains("Newest rows") && !next.contains("tenant_0:r130"),
        "{next}"
    );
    let (status, none) = console.text(&auditor, "/audit?prefix=nothing-like-this").await;
    assert!(status == 200 && none.contains("No row fits") && none.contains("Every row"));
    let (status, beyond) = console.text(&auditor, "/audit?cursor=1").await;
    assert!(status == 200 && beyond.contains("There is no older row"));
    let (status, bad) = console.text(&auditor, "/audit?from=soon&actor=ada").await;
    assert_eq!(status, 400);
    assert!(
        bad.contains("Nothing was looked for") && bad.contains("is not a time like"),
        "{bad}"
    );
    assert!(bad.contains("value=\"ada\"") && bad.contains("aria-invalid=\"true\""));
}

#[tokio::test]
async fn one_row_shows_all_of_itself_and_what_ties_it_to_its_neighbours() {
    // Reason, second person, both sides, request, hashes; the first row of all; numbers that are none.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    let row = console.audit.append(about("cache", "tenant_1:a")).await.unwrap();
    fill(&console.audit, 1).await;
    let (status, page) = console.text(&auditor, &format!("/audit/{}", row.seq)).await;
    assert_eq!(status, 200);
    for text in [
        "stuck since 03:00",
        "p_bob",
        "192.0.2.7",
        "curl/8",
        "r-1",
        "t-1",
        "w-1",
        row.hash.as_str(),
        "Its fields give its hash, and it follows the row before it",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    for neighbour in [row.seq - 1, row.seq + 1] {
        assert!(
            page.contains(&format!("href=\"/audit/{neighbour}\"")),
            "{neighbour}"
        );
    }
    let (_, first) = console.text(&auditor, "/audit/1").await;
    assert!(first.contains("follows the row before it"), "{first}");
    for missing in [
        "0",
        "-1",
        "999999",
        "x",
        "9223372036854775807",
        "99999999999999999999",
        "%00",
    ] {
        let (status, page) = console.text(&auditor, &format!("/audit/{missing}")).await;
        assert_eq!(status, 404, "{missing}");
        assert!(page.contains("There is no such row"), "{missing}: {page}");
    }
}

#[tokio::test]
async fn hostile_texts_are_shown_and_do_nothing() {
    // In every field of a row, on the list and on the row's page: no element more, nothing that turns the line around.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    let plain = console.audit.append(about("cache", "plain")).await.unwrap().seq;
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{0}x";
    let mut entry = about("cache", evil);
    entry.actor.name = evil.to_owned();
    entry.actor.id = evil.to_owned();
    entry.actor.role = Some(evil.to_owned());
    entry.outcome = evil.to_owned();
    entry.reason = Some(evil.to_owned());
    entry.approver_id = Some(evil.to_owned());
    entry.origin.user_agent = Some(evil.into());
    entry.origin.request_id = Some(evil.into());
    entry.subject.unlock_id = Some(evil.to_owned());
    entry.subject.source = Some(evil.to_owned());
    entry.before = Some(serde_json::json!({evil: evil}));
    entry.after = Some(serde_json::json!({evil: [evil, {"x": evil}]}));
    let hostile = console.audit.append(entry).await.unwrap().seq;
    let (_, harmless) = console.text(&auditor, &format!("/audit/{plain}")).await;
    let scripts = |page: &str| page.matches("<script").count();
    for path in [
        "/audit".to_owned(),
        format!("/audit/{hostile}"),
        "/audit?actor=%22%3E%3Cscript%3E".to_owned(),
    ] {
        let (status, page) = console.text(&auditor, &path).await;
        assert_eq!(status, 200, "{path}");
        assert_eq!(scripts(&page), scripts(&harmless), "{path}: {page}");
        assert!(
            !page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{0}'),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_page_says_how_far_the_chain_is_verified_and_what_is_wrong_with_it() {
    // Whole; its end cut off while the server runs; a row changed in its middle, found by the walk at the next start.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    fill(&console.audit, 20).await;
    let last = console.audit.last().await.unwrap();
    let told = |text: String| {
        let (console, auditor) = (&console, &auditor);
        async move {
            eventually(&text, || async {
                console.text(auditor, "/audit").await.1.contains(&text)
            })
            .await;
        }
    };
    told(format!("Audit: as it was written, up to row {last}")).await;
    console
        .home
        .tamper(&format!("DELETE FROM audit_rows WHERE seq > {}", last - 3))
        .await;
    told(format!("Audit: row {last} is not as it was written")).await;
    let (_, page) = console.text(&auditor, "/audit").await;
    assert!(page.contains("is gone: the record was cut off"), "{page}");
    console
        .home
        .tamper("UPDATE audit_rows SET reason = 'nicer' WHERE seq = 7")
        .await;
    let (_, row) = console.text(&auditor, "/audit/7").await;
    assert!(row.contains("Its fields do not give its hash"), "{row}");
    let (_, next) = console.text(&auditor, "/audit/8").await;
    assert!(
        next.contains("follows the row before it"),
        "the hash still stands there: {next}"
    );
    let console = console.again().await;
    let auditor = console
        .token(
            "again",
            super::console::on(domain::access::Role::Auditor, None, None),
        )
        .await;
    eventually("the changed row is named", || async {
        let (_, page) = console.text(&auditor, "/audit").await;
        page.contains("Audit: row 7 is not as it was written")
            && page.contains("its fields do not give its hash")
    })
    .await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_said_as_such() {
    // The table is not there: a page that says so, a problem for programs; nothing of the store's own words.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    console.home.tamper("ALTER TABLE audit_rows RENAME TO gone").await;
    for path in ["/audit", "/audit/1"] {
        let (status, page) = console.text(&auditor, path).await;
        assert_eq!(status, 503, "{path}");
        assert!(
            page.contains("cannot be read") && !page.contains("no such table"),
            "{page}"
        );
    }
    let (status, problem) = console.get(&auditor, "/v1/audit").await;
    assert_eq!(
        (status, problem["code"].as_str()),
        (503, Some("store_unavailable"))
    );
    let (status, _) = console.get(&auditor, "/v1/audit/export").await;
    assert_eq!(status, 503, "what cannot be recorded is not exported");
}

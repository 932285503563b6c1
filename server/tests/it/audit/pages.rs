//! `/audit` and `/audit/{id}` as HTML: complete without a script, hostile names harmless, every state designed.

use super::audit_server::{AuditServer, about};
use super::chain::fill;
use crate::support::Store;
use testkit::eventually;

#[tokio::test]
async fn filters_are_in_the_url_and_in_its_links() {
    // A filter with hostile text, the next page, the files, the way back.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    fill(&server.audit, 130).await;
    let (status, page) = server
        .as_user(&auditor)
        .text("/audit?prefix=tenant_&limit=10")
        .await;
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
    let (_, next) = server.as_user(&auditor).text(&older).await;
    assert!(
        next.contains("Newest entries") && !next.contains("tenant_0:r130"),
        "{next}"
    );
    let (status, none) = server
        .as_user(&auditor)
        .text("/audit?prefix=nothing-like-this")
        .await;
    assert!(status == 200 && none.contains("No matching entries") && none.contains("All entries"));
    let (status, beyond) = server.as_user(&auditor).text("/audit?cursor=1").await;
    assert!(status == 200 && beyond.contains("No older entries"));
    let (status, bad) = server.as_user(&auditor).text("/audit?from=soon&actor=ada").await;
    assert_eq!(status, 400);
    assert!(
        bad.contains("Search not run") && bad.contains("is not a time like"),
        "{bad}"
    );
    assert!(bad.contains("value=\"ada\"") && bad.contains("aria-invalid=\"true\""));
}

#[tokio::test]
async fn an_entry_page_shows_all_fields_and_its_hashes() {
    // Reason, second approver, both sides, request, hashes; the first entry; invalid numbers.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    let row = server.audit.append(about("cache", "tenant_1:a")).await.unwrap();
    fill(&server.audit, 1).await;
    let (status, page) = server
        .as_user(&auditor)
        .text(&format!("/audit/{}", row.seq))
        .await;
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
        "Hash verified; the entry follows the previous one",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    for neighbour in [row.seq - 1, row.seq + 1] {
        assert!(
            page.contains(&format!("href=\"/audit/{neighbour}\"")),
            "{neighbour}"
        );
    }
    let (_, first) = server.as_user(&auditor).text("/audit/1").await;
    assert!(first.contains("follows the previous one"), "{first}");
    for missing in [
        "0",
        "-1",
        "999999",
        "x",
        "9223372036854775807",
        "99999999999999999999",
        "%00",
    ] {
        let (status, page) = server.as_user(&auditor).text(&format!("/audit/{missing}")).await;
        assert_eq!(status, 404, "{missing}");
        assert!(page.contains("There is no such entry"), "{missing}: {page}");
    }
}

#[tokio::test]
async fn entries_of_a_long_name_are_linked() {
    // A filter accepts less than such a name has.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    let name = format!("tenant_1:{}", "x".repeat(5_000));
    let row = server.audit.append(about("cache", &name)).await.unwrap();
    let (_, page) = server
        .as_user(&auditor)
        .text(&format!("/audit/{}", row.seq))
        .await;
    let link = page.split("href=\"/audit?prefix=").nth(1).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let (status, found) = server
        .as_user(&auditor)
        .text(&format!("/audit?prefix={link}"))
        .await;
    assert_eq!(status, 200);
    assert!(found.contains(&format!("href=\"/audit/{}\"", row.seq)), "{found}");
}

#[tokio::test]
async fn hostile_texts_are_shown_escaped() {
    // In every field of an entry, on the list and on the entry's page: no additional element, no character that changes the text
    // direction.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    let plain = server.audit.append(about("cache", "plain")).await.unwrap().seq;
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
    let hostile = server.audit.append(entry).await.unwrap().seq;
    let (_, harmless) = server.as_user(&auditor).text(&format!("/audit/{plain}")).await;
    let scripts = |page: &str| page.matches("<script").count();
    for path in [
        "/audit".to_owned(),
        format!("/audit/{hostile}"),
        "/audit?actor=%22%3E%3Cscript%3E".to_owned(),
    ] {
        let (status, page) = server.as_user(&auditor).text(&path).await;
        assert_eq!(status, 200, "{path}");
        assert_eq!(scripts(&page), scripts(&harmless), "{path}: {page}");
        assert!(
            !page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{0}'),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_page_shows_the_verification_status_of_the_chain() {
    // Whole; its end cut off while the server runs; a row changed in its middle, found by the walk at the next start.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    fill(&server.audit, 20).await;
    let last = server.audit.last().await.unwrap();
    let shows = |text: String| {
        let (server, auditor) = (&server, &auditor);
        async move {
            eventually(&text, || async {
                server.as_user(auditor).text("/audit").await.1.contains(&text)
            })
            .await;
        }
    };
    shows(format!("Audit log: chain verified through entry {last}")).await;
    server
        .store
        .tamper(&format!("DELETE FROM audit_entries WHERE seq > {}", last - 3))
        .await;
    shows(format!("Audit log: chain broken at entry {last}")).await;
    let (_, page) = server.as_user(&auditor).text("/audit").await;
    assert!(page.contains("is missing: the audit log was truncated"), "{page}");
    server
        .store
        .tamper("UPDATE audit_entries SET reason = 'nicer' WHERE seq = 7")
        .await;
    let (_, row) = server.as_user(&auditor).text("/audit/7").await;
    assert!(row.contains("Hash mismatch"), "{row}");
    let (_, next) = server.as_user(&auditor).text("/audit/8").await;
    assert!(
        next.contains("follows the previous one"),
        "the hash is still shown: {next}"
    );
    let server = server.restart().await;
    let auditor = server
        .token(
            "again",
            crate::support::on(domain::access::Role::Auditor, None, None),
        )
        .await;
    eventually("the changed row is named", || async {
        let (_, page) = server.as_user(&auditor).text("/audit").await;
        page.contains("Audit log: chain broken at entry 7")
            && page.contains("its hash does not match its fields")
    })
    .await;
}

#[tokio::test]
async fn an_unreachable_store_is_reported() {
    // The table is missing: an error page, a problem for programs; nothing of the store's own
    // messages.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    server
        .store
        .tamper("ALTER TABLE audit_entries RENAME TO gone")
        .await;
    for path in ["/audit", "/audit/1"] {
        let (status, page) = server.as_user(&auditor).text(path).await;
        assert_eq!(status, 503, "{path}");
        assert!(
            page.contains("Audit log unavailable") && !page.contains("no such table"),
            "{page}"
        );
    }
    let (status, problem) = server.as_user(&auditor).get("/v1/audit").await;
    assert_eq!(
        (status, problem["code"].as_str()),
        (503, Some("store_unavailable"))
    );
    let (status, _) = server.as_user(&auditor).get("/v1/audit/export").await;
    assert_eq!(status, 503, "what cannot be recorded is not exported");
}

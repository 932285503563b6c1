//! Seven ways to tamper with a record, each by somebody who owns the store and took its guards away; each is found.

use leasehold::audit::Audit;
use leasehold::audit::verify::{Fault, FaultKind};

use super::stage::{Home, fill};

const ROWS: i64 = 12;
const COLUMNS: &str =
    "created_at, action, phase, outcome, actor_id, actor_name, role, backend, source, resource, unlock_id,
    reason, approver_id, before, after, ip, user_agent, request_id, trace_id";

async fn fault_after(home: &Home, audit: &Audit, statements: &str) -> Fault {
    let heads = home.heads();
    let whole = audit.verify(&heads, |_| {}).await.unwrap().unwrap();
    assert_eq!((whole.rows, whole.heads), (ROWS, heads.len()));
    home.tamper(statements).await;
    audit.verify(&heads, |_| {}).await.unwrap().unwrap_err()
}

async fn check(home: Home, what: &str, statements: &str, expected: (i64, FaultKind)) {
    let audit = home.open().await;
    fill(&audit, ROWS).await;
    let fault = fault_after(&home, &audit, statements).await;
    assert_eq!((fault.seq, fault.kind), expected, "{what} on {}", home.url);
}

async fn check_both(what: &str, statements: &str, expected: (i64, FaultKind)) {
    check(Home::sqlite(), what, statements, expected).await;
    check(Home::postgres().await, what, statements, expected).await;
}

#[tokio::test]
async fn an_edited_row_is_found() {
    // A reason rewritten in place, its hash left.
    let edit = "UPDATE audit_rows SET reason = 'a nicer reason' WHERE seq = 5";
    check_both("edit", edit, (5, FaultKind::Changed)).await;
}

#[tokio::test]
async fn a_deleted_row_is_found() {
    // One of the middle goes, its neighbours stay.
    check_both(
        "delete",
        "DELETE FROM audit_rows WHERE seq = 5",
        (5, FaultKind::Missing),
    )
    .await;
}

#[tokio::test]
async fn an_inserted_row_is_found() {
    // A copy of a row at the end, with an invented hash: it gives another.
    let insert = format!(
        "INSERT INTO audit_rows (seq, {COLUMNS}, prev_hash, hash)
         SELECT {ROWS} + 1, {COLUMNS}, 'invented', 'invented too' FROM audit_rows WHERE seq = 5"
    );
    check_both("insert", &insert, (ROWS + 1, FaultKind::Changed)).await;
}

#[tokio::test]
async fn two_swapped_rows_are_found() {
    // Numbers exchanged, everything else as it was.
    let swap = "UPDATE audit_rows SET seq = 1000 WHERE seq = 5; UPDATE audit_rows SET seq = 5 WHERE seq = 6;
                UPDATE audit_rows SET seq = 6 WHERE seq = 1000";
    check_both("swap", swap, (5, FaultKind::Changed)).await;
}

#[tokio::test]
async fn a_cut_end_is_found_by_the_exported_heads_and_only_by_them() {
    // The last rows go: the chain that is left holds together, the heads tell.
    let cut = "DELETE FROM audit_rows WHERE seq > 9";
    check_both("cut", cut, (10, FaultKind::CutOff)).await;
    let home = Home::sqlite();
    let audit = home.open().await;
    fill(&audit, ROWS).await;
    home.tamper(cut).await;
    let without_heads = audit
        .verify(&std::collections::BTreeMap::new(), |_| {})
        .await
        .unwrap();
    assert_eq!(without_heads.map(|verified| verified.rows), Ok(9));
}

#[tokio::test]
async fn a_record_rewritten_as_a_whole_is_found() {
    // Everything goes and a new record that holds together takes its place: only the heads tell.
    for home in [Home::sqlite(), Home::postgres().await] {
        let audit = home.open().await;
        fill(&audit, ROWS).await;
        let heads = home.heads();
        home.tamper("DELETE FROM audit_rows").await;
        fill(&audit, ROWS).await;
        let fault = audit.verify(&heads, |_| {}).await.unwrap().unwrap_err();
        assert_eq!((fault.seq, fault.kind), (1, FaultKind::Rewritten), "{}", home.url);
    }
}

#[tokio::test]
async fn a_fork_is_found() {
    // The end goes and another grows in its place: the exported heads know both.
    for home in [Home::sqlite(), Home::postgres().await] {
        let audit = home.open().await;
        fill(&audit, ROWS).await;
        home.tamper("DELETE FROM audit_rows WHERE seq > 8").await;
        fill(&audit, ROWS).await;
        let fault = audit.verify(&home.heads(), |_| {}).await.unwrap().unwrap_err();
        assert_eq!((fault.seq, fault.kind), (9, FaultKind::Rewritten), "{}", home.url);
    }
}

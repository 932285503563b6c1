//! Seven ways to tamper with the log, each by an owner of the store who removed its guards;
//! each is detected.

use super::chain::fill;
use crate::support::Store;
use leasehold::audit::Audit;
use leasehold::audit::verify::{ChainFault, FaultKind};

const ROWS: i64 = 12;
const COLUMNS: &str =
    "created_at, action, phase, outcome, actor_id, actor_name, role, backend, source, resource, unlock_id,
    reason, approver_id, before, after, ip, user_agent, request_id, trace_id";

async fn fault_after(home: &Store, audit: &Audit, statements: &str) -> ChainFault {
    let checkpoints = home.checkpoints();
    let whole = audit.verify(&checkpoints, |_| {}).await.unwrap().unwrap();
    assert_eq!((whole.entries, whole.checkpoints), (ROWS, checkpoints.len()));
    home.tamper(statements).await;
    audit.verify(&checkpoints, |_| {}).await.unwrap().unwrap_err()
}

async fn check(home: Store, what: &str, statements: &str, expected: (i64, FaultKind)) {
    let audit = home.open_audit().await;
    fill(&audit, ROWS).await;
    let fault = fault_after(&home, &audit, statements).await;
    assert_eq!((fault.seq, fault.kind), expected, "{what} on {}", home.url);
}

async fn check_both(what: &str, statements: &str, expected: (i64, FaultKind)) {
    check(Store::sqlite(), what, statements, expected).await;
    check(Store::postgres().await, what, statements, expected).await;
}

#[tokio::test]
async fn an_edited_entry_is_detected() {
    // A reason rewritten in place, its hash left.
    let edit = "UPDATE audit_entries SET reason = 'a nicer reason' WHERE seq = 5";
    check_both("edit", edit, (5, FaultKind::Changed)).await;
}

#[tokio::test]
async fn a_deleted_entry_is_detected() {
    // One of the middle goes, its neighbours stay.
    check_both(
        "delete",
        "DELETE FROM audit_entries WHERE seq = 5",
        (5, FaultKind::Missing),
    )
    .await;
}

#[tokio::test]
async fn an_inserted_entry_is_detected() {
    // A copy of a row at the end, with an invented hash: its fields give another.
    let insert = format!(
        "INSERT INTO audit_entries (seq, {COLUMNS}, prev_hash, hash)
         SELECT {ROWS} + 1, {COLUMNS}, 'invented', 'invented too' FROM audit_entries WHERE seq = 5"
    );
    check_both("insert", &insert, (ROWS + 1, FaultKind::Changed)).await;
}

#[tokio::test]
async fn two_swapped_entries_are_detected() {
    // Numbers exchanged, everything else as it was.
    let swap =
        "UPDATE audit_entries SET seq = 1000 WHERE seq = 5; UPDATE audit_entries SET seq = 5 WHERE seq = 6;
                UPDATE audit_entries SET seq = 6 WHERE seq = 1000";
    check_both("swap", swap, (5, FaultKind::Changed)).await;
}

#[tokio::test]
async fn a_truncated_log_is_detected_only_by_checkpoints() {
    // The last entries are deleted: the remaining chain is valid, only the checkpoints detect
    // it.
    let cut = "DELETE FROM audit_entries WHERE seq > 9";
    check_both("cut", cut, (10, FaultKind::CutOff)).await;
    let home = Store::sqlite();
    let audit = home.open_audit().await;
    fill(&audit, ROWS).await;
    home.tamper(cut).await;
    let without_heads = audit
        .verify(&std::collections::BTreeMap::new(), |_| {})
        .await
        .unwrap();
    assert_eq!(without_heads.map(|verified| verified.entries), Ok(9));
}

#[tokio::test]
async fn a_completely_rewritten_log_is_detected() {
    // All entries are replaced by a valid chain: only the checkpoints detect it.
    for home in [Store::sqlite(), Store::postgres().await] {
        let audit = home.open_audit().await;
        fill(&audit, ROWS).await;
        let checkpoints = home.checkpoints();
        home.tamper("DELETE FROM audit_entries").await;
        fill(&audit, ROWS).await;
        let fault = audit.verify(&checkpoints, |_| {}).await.unwrap().unwrap_err();
        assert_eq!((fault.seq, fault.kind), (1, FaultKind::Rewritten), "{}", home.url);
    }
}

#[tokio::test]
async fn a_fork_is_detected() {
    // The last entries are deleted and others appended: the exported checkpoints differ.
    for home in [Store::sqlite(), Store::postgres().await] {
        let audit = home.open_audit().await;
        fill(&audit, ROWS).await;
        home.tamper("DELETE FROM audit_entries WHERE seq > 8").await;
        fill(&audit, ROWS).await;
        let fault = audit
            .verify(&home.checkpoints(), |_| {})
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!((fault.seq, fault.kind), (9, FaultKind::Rewritten), "{}", home.url);
    }
}

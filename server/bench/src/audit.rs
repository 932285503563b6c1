//! The audit log with 1,000,000 entries: verification of all of them, and the first page of each kind of query.

use std::collections::BTreeMap;
use std::path::Path;

use domain::access::{Grant, Grants, Role};
use domain::audit::{Action, AuditQuery, Readable};
use domain::names::BackendName;
use rusqlite::Connection;

use super::error::BenchError;
use super::metric::Figure;
use super::timer::Stopwatch;
use leasehold::audit::{Audit, ChainCheckpoints, StoredRow, chain};
use runtime::clock::Clock;
use runtime::db::{Db, console_file};

pub(crate) const ROWS: i64 = 1_000_000;
const VERIFY_S_GOAL: f64 = 60.0;
const PAGE_MS_GOAL: f64 = 250.0;
const LIMIT: u32 = 50;
/// Kibibytes; SQLite uses negative numbers for bytes instead of pages.
const CACHE_KB: i64 = -1_000_000;
/// One entry per 4 seconds: a log of six weeks.
const APART_MS: i64 = 4_000;

/// # Errors
/// The temporary folder cannot be written.
pub(crate) async fn measure(rows: i64) -> Result<Vec<Figure>, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "temporary folder",
        source,
    })?;
    let leases = folder.path().join("leasehold.db");
    let url = format!("sqlite:{}", leases.display());
    // Migrated here; filled on a separate connection, in one transaction.
    let db = Db::open(&url).await.map_err(|error| BenchError::Answer {
        what: "the store",
        answer: error.to_string(),
    })?;
    let file = console_file(&leases);
    let fill_watch = Stopwatch::start();
    let result = tokio::task::spawn_blocking(move || fill(&file, rows)).await;
    result
        .map_err(|error| server_error(&error))?
        .map_err(|error| server_error(&error))?;
    let fill_s = fill_watch.elapsed().as_secs_f64();
    let audit = Audit::new(db, Clock::start(), ChainCheckpoints::default());
    let watch = Stopwatch::start();
    let verification = audit.verify(&BTreeMap::new(), |_| {}).await?;
    let verify_s = watch.elapsed().as_secs_f64();
    let verified = verification.map_err(|fault| server_error(&fault))?;
    let mut figures = vec![
        Figure::at_most(
            &format!("verifying {} entries", verified.entries),
            verify_s,
            VERIFY_S_GOAL,
            "s",
        ),
        Figure::plain("making them", fill_s, "s"),
    ];
    for (name, query) in queries(rows) {
        let watch = Stopwatch::start();
        let page = audit.page(&query).await?;
        figures.push(Figure::at_most(
            &format!("first page by {name}, {} rows", page.rows.len()),
            watch.ms(),
            PAGE_MS_GOAL,
            "ms",
        ));
    }
    Ok(figures)
}

fn server_error(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Answer {
        what: "the record",
        answer: error.to_string(),
    }
}

/// Queries with many, few and no matches.
fn queries(rows: i64) -> Vec<(&'static str, AuditQuery)> {
    let text = |text: &str| Some(text.to_owned());
    let at = |row: i64| chrono::DateTime::from_timestamp_millis(row * APART_MS);
    let plain = AuditQuery {
        limit: LIMIT,
        ..AuditQuery::default()
    };
    let with = |change: &dyn Fn(&mut AuditQuery)| {
        let mut query = plain.clone();
        change(&mut query);
        query
    };
    let tenant = Grants::new(vec![Grant {
        role: Role::Auditor,
        backend: None,
        prefix: text("tenant_7:"),
    }]);
    vec![
        ("nothing", plain.clone()),
        ("a busy actor's id", with(&|it| it.actor = text("p_3"))),
        ("an actor's name", with(&|it| it.actor = text("user-900"))),
        ("an actor who is not there", with(&|it| it.actor = text("nobody"))),
        ("a wide prefix", with(&|it| it.prefix = text("tenant_"))),
        (
            "a narrow prefix",
            with(&|it| it.prefix = text("tenant_41:job-41")),
        ),
        (
            "a backend",
            with(&|it| it.backend = BackendName::parse("cache-1").ok()),
        ),
        ("an action", with(&|it| it.action = Some(Action::ForceUnlock))),
        ("a rare outcome", with(&|it| it.outcome = text("outcome_unknown"))),
        (
            "an outcome that is not there",
            with(&|it| it.outcome = text("never")),
        ),
        ("an unlock", with(&|it| it.unlock_id = text("u_77"))),
        ("all time but the last 10 rows", with(&|it| it.to = at(rows - 10))),
        (
            "an hour long ago",
            with(&|it| (it.from, it.to) = (at(1_000), at(1_900))),
        ),
        (
            "an action, within an hour long ago",
            with(&|it| (it.action, it.from, it.to) = (Some(Action::ForceUnlock), at(1_000), at(1_900))),
        ),
        (
            "one tenant's view",
            with(&|it| it.readable = Readable::to(&tenant)),
        ),
    ]
}

fn fill(file: &Path, rows: i64) -> rusqlite::Result<()> {
    let mut connection = Connection::open(file)?;
    // Hashes are distributed over their index: a small cache would write its pages repeatedly.
    connection.pragma_update(None, "cache_size", CACHE_KB)?;
    let tx = connection.transaction()?;
    {
        let mut insert = tx.prepare(
            "INSERT INTO audit_entries (seq, created_at, action, phase, outcome, actor_id, actor_name, role, backend,
             source, resource, unlock_id, reason, approver_id, before, after, ip, user_agent, request_id, trace_id,
             prev_hash, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
        )?;
        let mut prev_hash = chain::GENESIS.to_owned();
        for seq in 1..=rows {
            let row = audit_row(seq, prev_hash);
            insert.raw_bind_parameter(1, row.seq)?;
            insert.raw_bind_parameter(2, row.created_at)?;
            let optional = row.optional();
            let texts = row.required().map(Some).into_iter().chain(optional);
            for (place, text) in (3..).zip(texts) {
                insert.raw_bind_parameter(place, text)?;
            }
            insert.raw_bind_parameter(21, &row.prev_hash)?;
            insert.raw_bind_parameter(22, &row.hash)?;
            insert.raw_execute()?;
            prev_hash = row.hash;
        }
    }
    tx.commit()
}

/// As written by a busy console: unlocks with their steps, and sign-ins.
fn audit_row(seq: i64, prev_hash: String) -> StoredRow {
    let is_unlock = seq % 5 != 0;
    let unlock = seq / 4;
    let some = |text: String| is_unlock.then_some(text);
    let mut row = StoredRow {
        seq,
        created_at: seq * APART_MS,
        action: if is_unlock { "FORCE_UNLOCK" } else { "LOGIN" }.to_owned(),
        phase: "outcome".to_owned(),
        outcome: match seq % 10_000 {
            77 => "outcome_unknown",
            _ if is_unlock => "released",
            _ => "ok",
        }
        .to_owned(),
        actor_id: format!("p_{}", seq % 1_000),
        actor_name: format!("user-{}", seq % 1_000),
        role: some("operator".to_owned()),
        backend: some(format!("cache-{}", seq % 3)),
        source: some("key".to_owned()),
        resource: some(format!("tenant_{}:job-{seq}", seq % 100)),
        unlock_id: some(format!("u_{unlock}")),
        reason: some(format!("stuck since 03:00, its owner agrees; ticket {seq}")),
        approver_id: None,
        before: some(format!(
            "{{\"dies\":[],\"fencingToken\":\"{seq}\",\"generation\":\"g-{seq}\",\"heldMs\":61000,\"leaseId\":null,\
             \"ownerId\":\"worker-{}\",\"waiters\":[]}}",
            seq % 64
        )),
        after: some("{\"now\":null,\"state\":\"released\"}".to_owned()),
        ip: Some("192.0.2.7".to_owned()),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned()),
        request_id: Some(format!("{seq:032x}")),
        trace_id: None,
        prev_hash,
        hash: String::new(),
    };
    row.hash = chain::hash(&row);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_small_audit_log_is_written_verified_and_searched() {
        // Every kind of query on a small log; those with expected matches find some.
        let figures = measure(2_000).await.unwrap();
        assert_eq!(figures.len(), 2 + queries(1).len());
        let found = |name: &str| figures.iter().any(|figure| figure.name.contains(name));
        assert!(found("verifying 2000 entries") && found("an action, 50 rows") && found("not there, 0 rows"));
        assert!(
            found("an actor's name, 2 rows")
                && found("an unlock, 3 rows")
                && found("one tenant's view, 20 rows")
        );
    }
}

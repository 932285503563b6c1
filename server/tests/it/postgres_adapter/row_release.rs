//! What a forced unlock may do to a row that carries more than the lock.

use ::backends::Backend;
use ::config::postgres::{LeaseTableConfig, LeaseTableRelease};
use domain::force_release::Release;
use sqlx::PgConnection;

use super::lock_tables::only;
use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::unlocking::{act, generation, unlock};

const JOBS: &str = "CREATE TABLE jobs (id int PRIMARY KEY, worker text, locked_at timestamptz, payload text);
    INSERT INTO jobs VALUES (1, 'w1', now(), 'a'), (2, 'w1', now(), 'b');
    CREATE VIEW held AS SELECT id, worker, locked_at FROM jobs WHERE locked_at IS NOT NULL";

fn jobs(table: &str, release: Option<LeaseTableRelease>) -> LeaseTableConfig {
    let columns = [
        ("resource", "id"),
        ("owner", "worker"),
        ("created_at", "locked_at"),
    ];
    LeaseTableConfig {
        held_when: Some("locked_at IS NOT NULL".to_owned()),
        release,
        ..only(table, &columns)
    }
}

async fn rows(user: &mut PgConnection, condition: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM jobs WHERE {condition}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(user)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_row_with_more_than_the_lock_is_never_deleted() {
    // By default and if configured, in a table with other columns and in a view: the review says why.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, JOBS).await;
    for (table, release, why) in [
        (
            "jobs",
            Some(LeaseTableRelease::Delete),
            "carries more than the lock (payload)",
        ),
        ("jobs", None, "no expiry to set"),
        ("held", Some(LeaseTableRelease::Delete), "is a view"),
        ("held", None, "no expiry to set"),
    ] {
        let backend = unlocker(&server.superuser_url(), vec![jobs(table, release)]);
        let (source, resource) = id(&format!("table:public.{table}"), "1");
        let detail = backend.inspect(&source, &resource).await.unwrap();
        let radius = detail.blast_radius.why().unwrap();
        assert!(
            radius.contains(why) && radius.contains("release = \"clear\""),
            "{radius}"
        );
        let answer = unlock(&backend, &source, &resource).await;
        assert!(
            matches!(&answer, Release::Refused { why: refused, remedy } if refused.contains(why) && remedy.contains("clear")),
            "{answer:?}"
        );
    }
    assert_eq!(rows(&mut user, "locked_at IS NOT NULL").await, 2);
}

#[tokio::test]
async fn a_clear_is_guarded_and_keeps_the_rest_of_the_row() {
    // The same worker locks it again: the old holding is over. Then the clear, by the table and by the view.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, JOBS).await;
    for (table, job) in [("jobs", "1"), ("held", "2")] {
        let backend = unlocker(
            &server.superuser_url(),
            vec![jobs(table, Some(LeaseTableRelease::Clear))],
        );
        let (source, resource) = id(&format!("table:public.{table}"), job);
        let old = generation(&backend, &source, &resource).await;
        run(
            &mut user,
            &format!("UPDATE jobs SET locked_at = clock_timestamp() WHERE id = {job}"),
        )
        .await;
        let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
        assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
        let detail = backend.inspect(&source, &resource).await.unwrap();
        let warnings = &detail.blast_radius.known().unwrap().warnings;
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("worker to NULL, locked_at to NULL")),
            "{warnings:?}"
        );
        assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
        assert_eq!(backend.inspect(&source, &resource).await.unwrap().lock, None);
    }
    assert_eq!(
        rows(
            &mut user,
            "locked_at IS NULL AND worker IS NULL AND payload IN ('a', 'b')"
        )
        .await,
        2
    );
}

#[tokio::test]
async fn an_owner_that_may_not_be_null_is_not_cleared() {
    // A clear would leave the owner: refused, with what to set instead.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, JOBS).await;
    run(&mut user, "ALTER TABLE jobs ALTER worker SET NOT NULL").await;
    let backend = unlocker(
        &server.superuser_url(),
        vec![jobs("jobs", Some(LeaseTableRelease::Clear))],
    );
    let (source, resource) = id("table:public.jobs", "1");
    let answer = unlock(&backend, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("column worker of public.jobs may not be NULL")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_review_of_a_delete_names_what_is_deleted() {
    // Every column of the row, before it is done.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        "CREATE TABLE l (key text PRIMARY KEY, owner text); INSERT INTO l VALUES ('a', 'w')",
    )
    .await;
    let table = only(
        "l",
        &[("resource", "key"), ("owner", "owner"), ("lease_id", "owner")],
    );
    let backend = unlocker(&server.superuser_url(), vec![table]);
    let (source, resource) = id("table:public.l", "a");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let warnings = &detail.blast_radius.known().unwrap().warnings;
    let wanted = "The row of public.l is deleted, with all of its columns: key, owner.";
    assert!(warnings.iter().any(|warning| warning == wanted), "{warnings:?}");
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
}

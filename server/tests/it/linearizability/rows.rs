//! Reads the store directly, without the service.

use etcd_client::GetOptions;
use serde_json::Value;
use sqlx::Connection as _;

use super::history::HistoryRow;

type Tuple = (
    String,
    String,
    String,
    i64,
    i64,
    i64,
    i64,
    Option<i64>,
    Option<String>,
    i64,
);

const LEASES: &str =
    "SELECT lease_id, resource, owner_id, fencing_token, acquired_at, renewed_at, expires_at, ended_at,
     ended_how, ttl_seconds FROM leases";
const LEDGER: &str = "SELECT source FROM fencing_rejections";

/// Leases by which the servers elect who evaluates alerts and records history: no client of a run asks for them.
const LEADERSHIPS: &str = "leasehold/";

fn is_of_a_client(row: &HistoryRow) -> bool {
    !row.resource.starts_with(LEADERSHIPS)
}

/// Leases, and the reporters of fencing rejections.
pub(super) async fn read(url: &str) -> (Vec<HistoryRow>, Vec<String>) {
    let (rows, ledger): (Vec<Tuple>, Vec<String>) = if url.starts_with("postgres") {
        let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
        (
            sqlx::query_as(LEASES).fetch_all(&mut connection).await.unwrap(),
            sqlx::query_scalar(LEDGER)
                .fetch_all(&mut connection)
                .await
                .unwrap(),
        )
    } else {
        let mut connection = sqlx::SqliteConnection::connect(url).await.unwrap();
        (
            sqlx::query_as(LEASES).fetch_all(&mut connection).await.unwrap(),
            sqlx::query_scalar(LEDGER)
                .fetch_all(&mut connection)
                .await
                .unwrap(),
        )
    };
    (rows.into_iter().map(row).filter(is_of_a_client).collect(), ledger)
}

/// The same from the keys of an etcd.
pub(super) async fn read_etcd(endpoints: &[String]) -> (Vec<HistoryRow>, Vec<String>) {
    let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
    let mut values = async |namespace: &str| -> Vec<(String, Value)> {
        let (prefix, mut from) = (
            format!("/leasehold/{namespace}/"),
            format!("/leasehold/{namespace}/"),
        );
        let mut found = Vec::new();
        loop {
            let options = GetOptions::new()
                .with_range(format!("/leasehold/{namespace}0"))
                .with_limit(1_000);
            let page = client.get(from.clone(), Some(options)).await.unwrap();
            for pair in page.kvs() {
                let name = pair.key_str().unwrap().strip_prefix(&prefix).unwrap().to_owned();
                found.push((name, serde_json::from_slice(pair.value()).unwrap()));
            }
            match page.kvs().last() {
                Some(last) => from = format!("{}\0", last.key_str().unwrap()),
                None => return found,
            }
        }
    };
    let ended = values("leases").await.into_iter().filter_map(|(_, home)| {
        let resource = home["resource"].as_str().unwrap().to_owned();
        home.get("ended").map(|lease| lease_row(resource, lease))
    });
    let mut rows: Vec<HistoryRow> = ended.collect();
    let held = values("held").await.into_iter();
    rows.extend(held.map(|(resource, state)| lease_row(resource, &state["lease"])));
    let ledger = values("rejections").await.into_iter();
    let sources = ledger.map(|(_, value)| value["source"].as_str().unwrap().to_owned());
    rows.retain(is_of_a_client);
    (rows, sources.collect())
}

fn lease_row(resource: String, lease: &Value) -> HistoryRow {
    let text = |key: &str| lease[key].as_str().unwrap().to_owned();
    let number = |key: &str| lease[key].as_i64().unwrap();
    let end = lease.get("end");
    HistoryRow {
        lease: text("id"),
        resource,
        owner: text("owner"),
        token: lease["token"].as_u64().unwrap(),
        acquired_ms: number("acquired_at"),
        renewed_ms: number("renewed_at"),
        expires_ms: number("expires_at"),
        ended: end.map(|end| {
            (
                end["at"].as_i64().unwrap(),
                end["how"].as_str().unwrap().to_owned(),
            )
        }),
        ttl_ms: number("ttl_seconds") * 1_000,
    }
}

fn row(
    (lease, resource, owner, token, acquired_ms, renewed_ms, expires_ms, ended_at, ended_how, ttl): Tuple,
) -> HistoryRow {
    HistoryRow {
        lease,
        resource,
        owner,
        token: u64::try_from(token).unwrap(),
        acquired_ms,
        renewed_ms,
        expires_ms,
        ended: ended_at.zip(ended_how),
        ttl_ms: ttl * 1_000,
    }
}

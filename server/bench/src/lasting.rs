//! Whether the pace lasts: the load of `pace` on a store with 10,000,000 ended leases, which fall due for deletion as fast as
//! the load ends new ones.

mod fill;

use std::path::Path;
use std::time::Duration;

use config::LeaseConfig;
use domain::format;
use sqlx::{Connection as _, PgConnection};
use testkit::{Postgres, PostgresOptions, Throwaway, ThrowawayFolder};

use super::child_server::memory_mib;
use super::error::BenchError;
use super::load::{LoadSpan, Pace};
use super::metric::Figure;
use super::test_server::Served;
use super::throughput::{Say, report, run_keyed};

/// Ended leases, and idempotency keys, in the store before the load.
pub(crate) const ENDED: u32 = 10_000_000;
/// Minutes of load on each store.
pub(crate) const NORMAL: usize = 2;
pub(crate) const LONG: usize = 10;

/// Longer than the window of idempotency keys, as the configuration demands.
const RETENTION: Duration = Duration::from_secs(11 * 60);
/// On an empty store, for comparison.
const EMPTY: LoadSpan = LoadSpan {
    warm_up: Duration::from_secs(1),
    time: Duration::from_secs(20),
};
const MINUTE: LoadSpan = LoadSpan {
    warm_up: Duration::from_secs(1),
    time: Duration::from_secs(59),
};
const PACE_LEAST: f64 = 0.9;
const GROWTH_MOST: f64 = 1.1;

/// After a minute of load.
struct Sample {
    pace: Pace,
    /// Files of SQLite, database of Postgres.
    store_mib: f64,
    /// Of this process, which holds the server and the load.
    memory_mib: f64,
}

enum Store {
    Sqlite(ThrowawayFolder),
    Postgres(Box<Postgres>),
}

impl Store {
    fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "Postgres",
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite:{}", file(folder.path()).display()),
            Self::Postgres(server) => server.superuser_url(),
        }
    }

    async fn serve(&self) -> Result<Served, BenchError> {
        let lease = LeaseConfig {
            released_retention: RETENTION,
            ..LeaseConfig::default()
        };
        Served::start_with(self.url().into(), Vec::new(), lease).await
    }

    async fn fill(&self) -> Result<(), BenchError> {
        match self {
            Self::Sqlite(folder) => {
                let file = file(folder.path());
                let filled = tokio::task::spawn_blocking(move || fill::sqlite(&file, ENDED)).await;
                filled.map_err(|error| BenchError::bad_answer("the fill", error.to_string()))?
            }
            Self::Postgres(server) => fill::postgres(&server.superuser_url(), ENDED).await,
        }
    }

    async fn size_mib(&self) -> Result<f64, BenchError> {
        let bytes = match self {
            Self::Sqlite(folder) => {
                let io = BenchError::io("folder");
                let files = std::fs::read_dir(folder.path()).map_err(&io)?.flatten();
                files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
            }
            Self::Postgres(server) => {
                let mut connection = PgConnection::connect(&server.superuser_url()).await?;
                let bytes: i64 = sqlx::query_scalar("SELECT pg_database_size(current_database())")
                    .fetch_one(&mut connection)
                    .await?;
                connection.close().await?;
                bytes.unsigned_abs()
            }
        };
        Ok(bytes as f64 / 1_048_576.0)
    }
}

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("leases.db")
}

/// # Errors
/// A server does not start, the store cannot be filled, or a client fails.
pub(crate) async fn measure(minutes: usize, say: Say<'_>) -> Result<Vec<Figure>, BenchError> {
    let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
    let mut figures = measure_store(Store::Sqlite(folder), minutes, say).await?;
    let server = Throwaway::postgres(PostgresOptions::default()).await?;
    figures.extend(measure_store(Store::Postgres(Box::new(server)), minutes, say).await?);
    Ok(figures)
}

async fn measure_store(store: Store, minutes: usize, say: Say<'_>) -> Result<Vec<Figure>, BenchError> {
    say(&format!("{}, empty", store.name()));
    let served = store.serve().await?;
    let empty = report(say, run_keyed(&served, EMPTY).await?);
    served.end().await;
    let ended = format::count(u64::from(ENDED));
    say(&format!(
        "{}: filling in {ended} ended leases and keys: some minutes",
        store.name()
    ));
    store.fill().await?;
    let served = store.serve().await?;
    let mut samples = Vec::new();
    for minute in 1..=minutes {
        let pace = report(say, run_keyed(&served, MINUTE).await?);
        let sample = Sample {
            pace,
            store_mib: store.size_mib().await?,
            memory_mib: memory_mib().map_err(BenchError::io("memory"))?,
        };
        say(&format!(
            "    minute {minute}: store {:.0} MiB, memory of server and load {:.0} MiB",
            sample.store_mib, sample.memory_mib
        ));
        samples.push(sample);
    }
    served.end().await;
    Ok(figures(store.name(), &empty, &samples))
}

fn figures(store: &str, empty: &Pace, samples: &[Sample]) -> Vec<Figure> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Vec::new();
    };
    let ratio = |name: String, measured: f64, is_most: bool| match is_most {
        true => Figure::at_most(&name, measured, GROWTH_MOST, "times"),
        false => Figure::at_least(&name, measured, PACE_LEAST, "times"),
    };
    let ended = format::count(u64::from(ENDED));
    vec![
        Figure::plain(&format!("{store}, empty"), empty.pairs_per_s, "pairs/s"),
        Figure::plain(
            &format!("{store}, {ended} ended leases, last of {} minutes", samples.len()),
            last.pace.pairs_per_s,
            "pairs/s",
        ),
        ratio(
            format!("{store}: with the ended leases / empty, first minute"),
            first.pace.pairs_per_s / empty.pairs_per_s,
            false,
        ),
        ratio(
            format!("{store}: last minute / first minute"),
            last.pace.pairs_per_s / first.pace.pairs_per_s,
            false,
        ),
        ratio(
            format!("{store}: size of the store, last minute / first minute"),
            last.store_mib / first.store_mib,
            true,
        ),
        ratio(
            format!("{store}: memory of server and load, last minute / first minute"),
            last.memory_mib / first.memory_mib,
            true,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: u32 = 1_000;

    #[tokio::test]
    async fn a_filled_sqlite_store_is_not_refused_as_a_rewound_one() {
        let store = Store::Sqlite(ThrowawayFolder::create("bench").unwrap());
        let Store::Sqlite(folder) = &store else {
            unreachable!()
        };
        store.serve().await.unwrap().end().await;
        fill::sqlite(&file(folder.path()), FEW).unwrap();
        store.serve().await.unwrap().end().await;
        let reader = rusqlite::Connection::open(file(folder.path())).unwrap();
        let [leases, keys] = ["leases", "idempotency_keys"].map(|table| -> u32 {
            let count = format!("SELECT count(*) FROM {table}");
            reader.query_row(&count, [], |row| row.get(0)).unwrap()
        });
        // None is due yet.
        assert_eq!([leases, keys], [FEW, FEW]);
        assert!(store.size_mib().await.unwrap() > 0.0);
    }

    #[tokio::test]
    async fn a_filled_postgres_store_serves() {
        let server = Throwaway::postgres(PostgresOptions::default()).await.unwrap();
        let url = server.superuser_url();
        let store = Store::Postgres(Box::new(server));
        store.serve().await.unwrap().end().await;
        fill::postgres(&url, FEW).await.unwrap();
        let served = store.serve().await.unwrap();
        let span = LoadSpan {
            warm_up: Duration::from_millis(50),
            time: Duration::from_millis(200),
        };
        let pace = run_keyed(&served, span).await.unwrap();
        served.end().await;
        let size_mib = store.size_mib().await.unwrap();
        let sample = |pairs_per_s: f64| Sample {
            pace: Pace {
                pairs_per_s,
                ..pace.clone()
            },
            store_mib: size_mib,
            memory_mib: 100.0,
        };
        let figures = figures("Postgres", &pace, &[sample(100.0), sample(80.0)]);
        let results: Vec<_> = figures.iter().skip(3).map(Figure::meets_goal).collect();
        assert_eq!(results, [Some(false), Some(true), Some(true)]);
    }
}

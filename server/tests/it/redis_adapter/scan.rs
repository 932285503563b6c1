//! Scans over many keys, over changing keys, with overlapping patterns, and within a scan timeout.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::backends::{Backend, BackendError, Budget};
use domain::names::Resource;
use domain::observation::Coverage;
use redis::aio::MultiplexedConnection;

use super::{Seen, Setup, driver, observe, run, start};

async fn fill(driver: &mut MultiplexedConnection, prefix: &str, count: usize) {
    for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
        let mut commands = redis::pipe();
        for n in chunk {
            commands
                .cmd("SET")
                .arg(format!("{prefix}{n}"))
                .arg(n)
                .arg("PX")
                .arg(600_000)
                .ignore();
        }
        commands.exec_async(driver).await.unwrap();
    }
}

#[tokio::test]
async fn only_keys_of_the_patterns_are_read_once() {
    // Two patterns share keys; a database with many other keys gives many empty pages.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    fill(&mut driver, "cache:", 20_000).await;
    fill(&mut driver, "lock:", 2_500).await;
    fill(&mut driver, "mutex:", 10).await;
    let backend = Setup::new(&redis.url())
        .patterns(&["lock:*", "lock:1*", "mutex:[0-4]"])
        .backend();
    let (pass, observed) = observe(&backend).await;
    let distinct: HashSet<&Resource> = observed.locks.iter().map(|lock| &lock.resource).collect();
    assert_eq!(distinct.len(), 2_505);
    assert!(observed.batches > 2);
    assert_eq!(pass.sources[0].coverage, Coverage::Complete);
}

#[tokio::test]
async fn lasting_keys_are_in_every_scan_under_churn() {
    // The traps of SCAN under churn: the table grows and shrinks, so SCAN repeats keys; none of ours may be missed.
    let redis = start().await;
    let mut connection = driver(&redis).await;
    fill(&mut connection, "lock:stays:", 3_000).await;
    let done = Arc::new(AtomicBool::new(false));
    let churn = async {
        for round in 0.. {
            if done.load(Ordering::Relaxed) {
                break;
            }
            fill(&mut connection, &format!("lock:goes:{round}:"), 20_000).await;
            let mut drop = redis::cmd("EVAL");
            drop.arg("for i = 0, 19999 do redis.call('DEL', ARGV[1] .. i) end")
                .arg(0);
            drop.arg(format!("lock:goes:{round}:"))
                .exec_async(&mut connection)
                .await
                .unwrap();
        }
    };
    let backend = Setup::new(&redis.url()).backend();
    let watching = async {
        let mut repeated = 0;
        for _ in 0..8 {
            let (_, observed) = observe(&backend).await;
            let distinct: HashSet<&Resource> = observed.locks.iter().map(|lock| &lock.resource).collect();
            repeated += observed.locks.len() - distinct.len();
            for n in 0..3_000 {
                assert!(
                    distinct.contains(&Resource::from(format!("lock:stays:{n}").as_str())),
                    "missed {n}"
                );
            }
        }
        done.store(true, Ordering::Relaxed);
        repeated
    };
    let ((), _repeated) = tokio::join!(churn, watching);
}

#[tokio::test]
async fn a_scan_that_times_out_is_partial_with_a_reason() {
    // Timeouts from far too short upwards: the first that returns any lock is still too short for this number of keys, unless
    // the machine has stalled before. The partial result is handed over, and the next scan, with enough time, is complete over
    // the same connection.
    let redis = start().await;
    fill(&mut driver(&redis).await, "lock:", 20_000).await;
    let backend = Setup::new(&redis.url()).backend();
    observe(&backend).await;
    let shortest = Duration::from_millis(2);
    let mut time_max = shortest;
    let (pass, observed) = loop {
        let mut observed = Seen::default();
        time_max = match backend.observe(Budget { time_max }, &mut observed).await {
            Ok(pass) if pass.sources.iter().all(|source| source.coverage.is_complete()) => shortest,
            Ok(pass) => break (pass, observed),
            Err(error) => {
                assert!(matches!(error, BackendError::NoAnswer { .. }), "{error:?}");
                time_max * 3 / 2
            }
        };
    };
    for source in &pass.sources {
        let Coverage::Partial { why, .. } = &source.coverage else {
            panic!("{pass:?}")
        };
        assert!(why.contains("scan_timeout"), "{why}");
    }
    assert!(observed.locks.len() < 20_000);
    let (pass, observed) = observe(&backend).await;
    let coverage = &pass.sources[0].coverage;
    assert_eq!((coverage, observed.locks.len()), (&Coverage::Complete, 20_000));
}

#[tokio::test]
async fn flushdb_empties_the_next_scan_of_that_database() {
    // Only a complete scan without a lock shows that all locks are gone.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    fill(&mut driver, "lock:", 100).await;
    run(&mut driver, &["SELECT", "3"]).await;
    run(&mut driver, &["SET", "lock:elsewhere", "x"]).await;
    run(&mut driver, &["SELECT", "0"]).await;
    let backend = Setup::new(&redis.url()).backend();
    let third = Setup::new(&format!("{}3", redis.url())).backend();
    assert_eq!(observe(&backend).await.1.locks.len(), 100);
    run(&mut driver, &["FLUSHDB"]).await;
    let (pass, observed) = observe(&backend).await;
    assert_eq!(
        (pass.sources[0].coverage.clone(), observed.locks.len()),
        (Coverage::Complete, 0)
    );
    assert!(observe(&third).await.1.has("lock:elsewhere"));
    assert!(third.address().ends_with("/3"));
}

#[tokio::test]
async fn after_long_values_sizes_are_read_first() {
    // 40 values of 1 MiB: the first page asks for lengths first, so even the first pass reads none of them.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let value = "v".repeat(1024 * 1024);
    for n in 0..40 {
        run(&mut driver, &["SET", &format!("lock:{n}"), &value]).await;
    }
    run(&mut driver, &["CONFIG", "RESETSTAT"]).await;
    let (_, observed) = observe(&Setup::new(&redis.url()).backend()).await;
    assert_eq!(observed.locks.len(), 40);
    let stats: String = redis::cmd("INFO")
        .arg("stats")
        .query_async(&mut driver)
        .await
        .unwrap();
    let sent = stats
        .lines()
        .find_map(|line| line.strip_prefix("total_net_output_bytes:"))
        .unwrap();
    assert!(sent.trim().parse::<u64>().unwrap() < 1024 * 1024, "{sent} bytes");
}

//! A full scan of Redis compared with the fastest bulk read of the same keys by Redis's own client.
//!
//! The peer: SCAN COUNT 1000 over the whole key space inside the server (a script, so that no name is transferred),
//! then PTTL and GET of every key by `redis-cli --pipe` from a prepared file. It knows the names and discards the
//! answers; our scan discovers the names and builds a row per key.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use domain::names::BackendName;
use tokio::process::Command;

use super::error::BenchError;
use super::metric::Figure;
use backends::{Backend, Batch, Budget, Sink};
use config::redis::{RedisConfig, RedisMode};
use config::{BackendConfig, SystemConfig, backend};
use runtime::clock::Clock;
use testkit::{Redis, RedisOptions, Throwaway};

/// Number of keys of the goal.
pub(crate) const KEYS: u64 = 1_000_000;
const RUNS: u32 = 3;
/// Long enough that no key expires during the measurement, in milliseconds.
const TTL_MS: u32 = 3_600_000;
const SCAN_ALL: &str = "local c, n = '0', 0 repeat local r = redis.call('SCAN', c, 'COUNT', 1000) c = r[1] \
    n = n + #r[2] until c == '0' return n";

/// Durations of the runs, which alternate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RedisPass {
    pub keys: u64,
    /// The peer's scan and read together.
    pub peer: Vec<Duration>,
    /// `observe` with a sink that discards batches.
    pub ours: Vec<Duration>,
}

impl RedisPass {
    /// Our fastest run divided by the peer's fastest. The goal is at most 1.5.
    pub(crate) fn ratio(&self) -> f64 {
        fastest_s(&self.ours) / fastest_s(&self.peer)
    }

    pub(crate) fn figures(&self) -> Vec<Figure> {
        let keys = self.keys;
        vec![
            Figure::at_most(
                &format!("a full scan of {keys} Redis locks, times the fastest bulk read by redis-cli"),
                self.ratio(),
                1.5,
                "times",
            ),
            Figure::plain("that pass", fastest_s(&self.ours), "s"),
            Figure::plain(
                "SCAN in the server, then PTTL and GET by redis-cli --pipe",
                fastest_s(&self.peer),
                "s",
            ),
        ]
    }
}

fn fastest_s(runs: &[Duration]) -> f64 {
    runs.iter().min().copied().unwrap_or_default().as_secs_f64()
}

/// Starts a Redis with `keys` locks and measures both, three times alternately.
///
/// # Errors
/// See [`BenchError`].
pub(crate) async fn measure(keys: u64) -> Result<RedisPass, BenchError> {
    let clock = Clock::start();
    let redis = Throwaway::redis(RedisOptions::default()).await?;
    let (load, read) = (redis.folder().join("load.resp"), redis.folder().join("read.resp"));
    write_commands(&load, keys, |number, out| {
        let value = format!(
            "{{\"ownerId\":\"worker-{}\",\"leaseId\":\"{number:032x}\"}}",
            number % 500
        );
        command(
            out,
            &["SET", &name(number), &value, "NX", "PX", &TTL_MS.to_string()],
        )
    })
    .map_err(BenchError::Commands)?;
    write_commands(&read, keys, |number, out| {
        command(out, &["PTTL", &name(number)])?;
        command(out, &["GET", &name(number)])
    })
    .map_err(BenchError::Commands)?;
    pipe(&redis, &load, keys).await?;
    let backend = connect(&redis, clock.clone())?;
    let mut result = RedisPass {
        keys,
        peer: Vec::new(),
        ours: Vec::new(),
    };
    for _ in 0..RUNS {
        let started = clock.tick();
        let found = cli(&redis, &["EVAL", SCAN_ALL, "0"], Stdio::null()).await?;
        if found.trim() != keys.to_string() {
            return Err(BenchError::bad_answer("redis-cli", found));
        }
        pipe(&redis, &read, 2 * keys).await?;
        result.peer.push(since(&clock, started));
        let started = clock.tick();
        let mut sink = CountingSink::default();
        backend
            .observe(
                Budget {
                    time_max: Duration::from_secs(600),
                },
                &mut sink,
            )
            .await?;
        result.ours.push(since(&clock, started));
        if sink.seen < keys {
            return Err(BenchError::Missed {
                seen: sink.seen,
                keys,
            });
        }
    }
    Ok(result)
}

/// Counts locks and discards them.
#[derive(Default)]
struct CountingSink {
    seen: u64,
}

impl Sink for CountingSink {
    fn accept(&mut self, batch: Batch) {
        self.seen += batch.locks.len() as u64;
    }
}

fn connect(redis: &Redis, clock: Clock) -> Result<impl Backend, BenchError> {
    let config = RedisConfig::new(RedisMode::Standalone, vec![redis.url().into()]);
    let name = BackendName::parse("bench")
        .map_err(|error| BenchError::bad_answer("redis-cli", error.to_string()))?;
    let backend_config = BackendConfig {
        name,
        poll_interval: backend::POLL_INTERVAL_DEFAULT,
        timeout: backend::TIMEOUT_DEFAULT,
        scan_timeout: backend::SCAN_TIMEOUT_DEFAULT,
        tls: config::tls::TlsConfig::default(),
        user: None,
        password: None,
        system: SystemConfig::Redis(config.clone()),
    };
    Ok(backends::redis::connect(&backend_config, &config, clock)?)
}

fn name(number: u64) -> String {
    format!("lock:tenant_{}:job:{number:07}", number % 1000)
}

fn write_commands(
    path: &Path,
    keys: u64,
    each: impl Fn(u64, &mut BufWriter<File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for number in 0..keys {
        each(number, &mut out)?;
    }
    out.flush()
}

/// In the Redis protocol, which `redis-cli --pipe` sends unchanged.
fn command(out: &mut impl Write, words: &[&str]) -> std::io::Result<()> {
    write!(out, "*{}\r\n", words.len())?;
    words
        .iter()
        .try_for_each(|word| write!(out, "${}\r\n{word}\r\n", word.len()))
}

async fn pipe(redis: &Redis, commands: &Path, replies: u64) -> Result<(), BenchError> {
    let commands = File::open(commands).map_err(BenchError::Commands)?;
    let reply = cli(redis, &["--pipe"], Stdio::from(commands)).await?;
    if reply.contains(&format!("errors: 0, replies: {replies}")) {
        Ok(())
    } else {
        Err(BenchError::bad_answer("redis-cli", reply))
    }
}

async fn cli(redis: &Redis, args: &[&str], input: Stdio) -> Result<String, BenchError> {
    let mut command = Command::new("redis-cli");
    command
        .arg("-p")
        .arg(redis.port().to_string())
        .args(args)
        .stdin(input)
        .kill_on_drop(true);
    let output = command.output().await.map_err(BenchError::Cli)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn since(clock: &Clock, started: domain::tick::Tick) -> Duration {
    Duration::from_millis(u64::try_from(clock.tick().since(started)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_small_measurement_has_three_runs_of_each_side() {
        // The figures of so few keys mean nothing; the test checks that the measurement completes.
        let measured = measure(5_000).await.unwrap();
        assert_eq!(
            (measured.keys, measured.peer.len(), measured.ours.len()),
            (5_000, 3, 3)
        );
    }
}

//! Redlock on real servers: the redlock client of npm, planted values, lost nodes.

mod client;
mod nodes;
mod release;
mod states;

use ::backends::redis::RedisBackend;
use ::backends::{Backend, BackendError};
use ::config::redis::RedisMode;
use ::testkit::{Redis, RedisOptions, Throwaway};
use domain::force_release::{NodeResult, Release};
use domain::names::{Resource, Source};
use domain::observation::{Coverage, ObservedCondition, ObservedLock};
use domain::quorum::{Quorum, QuorumState};
use futures::future::join_all;

use self::client::Holder;
use super::{Setup, driver, observe, run, try_observe};
use crate::support::unlocking::{act, generation};

/// Independent nodes.
struct Nodes(Vec<Redis>);

impl Nodes {
    async fn start(count: usize) -> Self {
        Self::start_with(count, RedisOptions::default()).await
    }

    async fn start_with(count: usize, options: RedisOptions) -> Self {
        let started = (0..count).map(|_| Throwaway::redis(options.clone()));
        let started = join_all(started).await.into_iter();
        Self(started.map(Result::unwrap).collect())
    }

    fn setup(&self) -> Setup {
        Setup::mode(RedisMode::Redlock, self.0.iter().map(Redis::url))
    }

    fn backend(&self) -> RedisBackend {
        self.setup().unlocking_all().backend()
    }

    /// `v.w`: one value per node, a dot deletes the key.
    async fn plant(&self, key: &str, values: &str) {
        for (node, value) in self.0.iter().zip(values.chars()) {
            if node.pid().is_none() {
                continue;
            }
            let value = value.to_string();
            let words: &[&str] = if value == "." {
                &["DEL", key]
            } else {
                &["SET", key, &value, "PX", "600000"]
            };
            run(&mut driver(node).await, words).await;
        }
    }

    /// The value on each node.
    async fn values(&self, key: &str) -> Vec<Option<String>> {
        let mut values = Vec::new();
        for node in &self.0 {
            let mut driver = driver(node).await;
            let value = redis::cmd("GET").arg(key).query_async(&mut driver).await;
            values.push(value.unwrap());
        }
        values
    }
}

fn redlock() -> Source {
    Source::fixed("redlock")
}

async fn quorum(backend: &RedisBackend, key: &str) -> Quorum {
    let resource = Resource::from(key);
    let seen = backend.inspect(&redlock(), &resource).await.unwrap();
    seen.quorum.expect("a quorum")
}

/// Releases the holding that is there now; each node's result with it.
async fn unlock(backend: &RedisBackend, key: &str) -> (Release, Vec<NodeResult>) {
    let resource = Resource::from(key);
    let seen = generation(backend, &redlock(), &resource).await;
    let released = backend
        .release(&redlock(), &resource, &seen, &act())
        .await
        .unwrap();
    match released {
        Release::OnNodes { result, nodes } => (*result, nodes.iter().map(|node| node.result).collect()),
        other => (other, Vec::new()),
    }
}

//! Forced unlocks while clients acquire and release continuously, and answers that are lost.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use domain::names::{Resource, Source};
use redis::aio::MultiplexedConnection;

use super::super::{Setup, driver, hash, key, run, start};
use super::{exists, unlocker};
use crate::support::proxy::Proxy;
use crate::support::unlocking::{Users, generation, lose_answers, race};

/// Acquires a lock as clients do, with a value or field of its own each time.
struct Takers {
    connection: RefCell<MultiplexedConnection>,
    count: Cell<u32>,
    redisson: bool,
}

impl Takers {
    async fn script(&self, script: &str, mine: &str) -> bool {
        let mut connection = self.connection.borrow().clone();
        run(&mut connection, &["EVAL", script, "1", "lock:race", mine]).await == redis::Value::Int(1)
    }
}

impl Users for Takers {
    type Held = String;

    async fn take(&self) -> Option<(String, String)> {
        let number = self.count.replace(self.count.get() + 1);
        let (owner, mine, script) = if self.redisson {
            let owner = format!("{number:08x}-9152-4c83-822a-67ee2f116a79:1");
            let script = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
                redis.call('HSET', KEYS[1], ARGV[1], 1); redis.call('PEXPIRE', KEYS[1], 60000); return 1";
            (owner.clone(), owner, script)
        } else {
            let owner = format!("w{number}");
            let script =
                "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 60000) then return 1 end return 0";
            (owner.clone(), format!(r#"{{"ownerId":"{owner}"}}"#), script)
        };
        self.script(script, &mine).await.then_some((owner, mine))
    }

    async fn give_back(&self, mine: String) -> bool {
        let script = if self.redisson {
            "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return redis.call('DEL', KEYS[1]) end return 0"
        } else {
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
        };
        self.script(script, &mine).await
    }
}

async fn raced(redisson: bool, source: Source) {
    let redis = start().await;
    let users = Takers {
        connection: RefCell::new(driver(&redis).await),
        count: Cell::new(0),
        redisson,
    };
    race(&unlocker(&redis), &source, &"lock:race".into(), &users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_unlocks_of_strings_never_hit_the_next_holder() {
    // Clients acquire and release continuously; every holding that was cut short is one that an unlock reports.
    raced(false, key()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_unlocks_of_hashes_never_hit_the_next_holder() {
    // The same with Redisson's shape.
    raced(true, hash()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_an_unknown_outcome() {
    // The script's answer stops in the proxy of the unlocking account; the watching one goes straight.
    let redis = start().await;
    let proxy = Proxy::start(redis.port()).await;
    let through = format!("redis://127.0.0.1:{}", proxy.port());
    let backend = Setup::new(&redis.url())
        .unlocking(&through)
        .timeout(Duration::from_millis(600))
        .backend();
    let connection = driver(&redis).await;
    let resource = Resource::from("lock:a");
    let take = async || {
        run(&mut connection.clone(), &["SET", "lock:a", "one"]).await;
        generation(&backend, &key(), &resource).await
    };
    let is_held = async || exists(&mut connection.clone(), "lock:a").await;
    lose_answers(&backend, &proxy, (&key(), &resource), take, is_held).await;
}

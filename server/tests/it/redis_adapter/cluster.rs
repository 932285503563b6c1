//! A real cluster of three masters: keys on all of them, slots that move, a master that is lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ::backends::Backend;
use ::config::redis::RedisMode;
use ::testkit::{Redis, RedisCluster, RedisOptions, Throwaway, eventually};
use domain::force_release::Release;
use domain::names::{Resource, Source};
use domain::observation::Coverage;
use redis::aio::MultiplexedConnection;

use super::{BackendError, Seen, Setup, driver, hash, key, observe, run, try_observe};
use crate::support::unlocking::unlock;

async fn start() -> RedisCluster {
    let options = RedisOptions {
        // A lost master must not take the others with it.
        config: vec!["cluster-require-full-coverage no".to_owned()],
        notify_keyspace_events: Some("Kg$hxe".to_owned()),
        ..RedisOptions::default()
    };
    Box::pin(Throwaway::redis_cluster(3, options)).await.unwrap()
}

fn setup(cluster: &RedisCluster) -> Setup {
    // One seed: the others are found.
    let seeds = cluster.urls().into_iter().take(1);
    Setup::mode(RedisMode::Cluster, seeds).unlocking_all()
}

/// A client that follows redirections, on connections to all nodes.
#[derive(Clone)]
struct Router {
    nodes: Vec<(u16, MultiplexedConnection)>,
}

impl Router {
    async fn new(cluster: &RedisCluster) -> Self {
        let mut nodes = Vec::new();
        for node in &cluster.nodes {
            nodes.push((node.port(), driver(node).await));
        }
        Self { nodes }
    }

    async fn run(&mut self, words: &[&str]) -> redis::Value {
        let mut port = self.nodes[0].0;
        let mut asking = false;
        for _ in 0..1_000 {
            let (_, connection) = self.nodes.iter_mut().find(|(known, _)| *known == port).unwrap();
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            let answer = if asking {
                let mut both = redis::pipe();
                both.cmd("ASKING").ignore().add_command(command);
                both.query_async::<Vec<redis::Value>>(connection)
                    .await
                    .map(|mut answers| answers.remove(0))
            } else {
                command.query_async(connection).await
            };
            match answer {
                Ok(value) => return value,
                Err(error) => {
                    let Some((address, _)) = error.redirect_node() else {
                        // TRYAGAIN: the slot is in the middle of its move.
                        continue;
                    };
                    port = address.rsplit_once(':').unwrap().1.parse().unwrap();
                    asking = error.code() == Some("ASK");
                }
            }
        }
        panic!("{words:?} was redirected too often");
    }
}

fn names(seen: &Seen) -> BTreeSet<String> {
    seen.locks.iter().map(|lock| lock.resource.text()).collect()
}

/// Sets and removes keys until the slots have moved.
async fn come_and_go(mut router: Router, moved: &AtomicBool) {
    let mut at = 0_u32;
    while !moved.load(Ordering::Relaxed) {
        at += 1;
        let name = format!("lock:brief:{}", at % 200);
        router.run(&["SET", &name, "v", "PX", "60000"]).await;
        let name = format!("lock:brief:{}", (at + 100) % 200);
        router.run(&["DEL", &name]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_every_master_are_seen_once_also_while_slots_move() {
    // 600 keys that stay and others that come and go, while 600 slots are handed over in four moves.
    let cluster = start().await;
    let backend = setup(&cluster).backend();
    let mut router = Router::new(&cluster).await;
    let stay: BTreeSet<String> = (0..600).map(|at| format!("lock:stays:{at}")).collect();
    for name in &stay {
        router.run(&["SET", name, "v", "PX", "3600000"]).await;
    }
    let a = "285475da-9152-4c83-822a-67ee2f116a79:52";
    router.run(&["HSET", "lock:hash", a, "1"]).await;
    let (pass, seen) = observe(&backend).await;
    assert!(
        pass.sources
            .iter()
            .all(|part| part.coverage == Coverage::Complete && part.fault.is_none())
    );
    assert_eq!(seen.locks.len(), 601, "each key once at rest");
    assert_eq!(seen.named("lock:hash").source, hash());
    for _ in 0..4 {
        let moved = AtomicBool::new(false);
        let moving = async {
            cluster.move_slots(0, 1, 150).await.unwrap();
            moved.store(true, Ordering::Relaxed);
        };
        tokio::join!(moving, come_and_go(router.clone(), &moved), async {
            let mut scans = 0;
            while !moved.load(Ordering::Relaxed) {
                let (_, seen) = observe(&backend).await;
                let found = names(&seen);
                let is_lost = |name: &&String| !found.contains(*name) && seen.has_read(name);
                let lost: Vec<&String> = stay.iter().filter(is_lost).collect();
                assert!(lost.is_empty(), "taken for gone: {lost:?}");
                scans += 1;
            }
            assert!(scans > 0, "no scan while slots moved");
        });
    }
    let (pass, seen) = observe(&backend).await;
    assert!(
        pass.sources
            .iter()
            .all(|part| part.coverage == Coverage::Complete)
    );
    assert!(stay.is_subset(&names(&seen)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_and_releases_follow_moved_and_ask() {
    // The adapter's map is older than a move; then a slot stays in the middle of one.
    let cluster = start().await;
    let backend = setup(&cluster).backend();
    let mut router = Router::new(&cluster).await;
    let all: Vec<String> = (0..60).map(|at| format!("lock:{at}")).collect();
    for name in &all {
        router.run(&["SET", name, "v", "PX", "3600000"]).await;
    }
    observe(&backend).await;
    cluster.move_slots(0, 2, 1_200).await.unwrap();
    for name in &all[..30] {
        let released = unlock(&backend, &key(), &Resource::from(name.as_str())).await;
        assert_eq!(released, Release::Released, "{name}");
    }
    assert_eq!(names(&observe(&backend).await.1).len(), 30);
    // The slot of one key, half moved: the key is on the importing node already.
    let name = "lock:{ask}:1";
    router.run(&["SET", name, "v", "PX", "3600000"]).await;
    half_moved(&cluster, &mut router, name).await;
    let resource = Resource::from(name);
    let seen = backend.inspect(&key(), &resource).await.unwrap();
    assert!(seen.lock.is_some(), "ASK is followed");
    assert!(names(&observe(&backend).await.1).contains(name));
    assert_eq!(unlock(&backend, &key(), &resource).await, Release::Released);
    assert_eq!(router.run(&["EXISTS", name]).await, redis::Value::Int(0));
}

/// Marks the key's slot as moving, and moves the key.
async fn half_moved(cluster: &RedisCluster, router: &mut Router, name: &str) {
    let slot = match run(&mut router.nodes[0].1, &["CLUSTER", "KEYSLOT", name]).await {
        redis::Value::Int(slot) => slot.to_string(),
        other => panic!("{other:?}"),
    };
    let mut ids = Vec::new();
    let mut owner = None;
    for (at, node) in cluster.nodes.iter().enumerate() {
        let mut connection = driver(node).await;
        let id = match run(&mut connection, &["CLUSTER", "MYID"]).await {
            redis::Value::BulkString(id) => String::from_utf8(id).unwrap(),
            other => panic!("{other:?}"),
        };
        let answer = redis::cmd("GET")
            .arg(name)
            .query_async::<redis::Value>(&mut connection)
            .await;
        if answer.is_ok() {
            owner = Some(at);
        }
        ids.push(id);
    }
    let from = owner.unwrap();
    let to = (from + 1) % cluster.nodes.len();
    let mut source = driver(&cluster.nodes[from]).await;
    let mut target = driver(&cluster.nodes[to]).await;
    run(
        &mut target,
        &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[from]],
    )
    .await;
    run(&mut source, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[to]]).await;
    let port = cluster.nodes[to].port().to_string();
    run(&mut source, &["MIGRATE", "127.0.0.1", &port, name, "0", "5000"]).await;
}

#[tokio::test]
async fn a_lost_master_makes_the_backend_partial_and_hides_nothing() {
    // Its keys are not known to be gone; those of the others are read as ever.
    let cluster = start().await;
    let backend = setup(&cluster).backend();
    let mut router = Router::new(&cluster).await;
    let all: Vec<String> = (0..60).map(|at| format!("lock:{at}")).collect();
    for name in &all {
        router.run(&["SET", name, "v", "PX", "3600000"]).await;
    }
    assert_eq!(observe(&backend).await.1.locks.len(), 60);
    let lost = &cluster.nodes[2];
    lost.kill().await.unwrap();
    let (pass, seen) = observe(&backend).await;
    let part = &pass.sources[0];
    assert!(matches!(part.coverage, Coverage::Partial { .. }), "{pass:?}");
    let fault = part.fault.as_deref().unwrap();
    assert!(fault.contains("1 of 3 masters do not answer"), "{fault}");
    assert!(fault.contains(&lost.port().to_string()), "{fault}");
    let found = names(&seen);
    assert!((1..60).contains(&found.len()));
    for name in &all {
        assert_eq!(seen.has_read(name), found.contains(name), "{name}");
    }
    // Every master is lost: no scan.
    for node in &cluster.nodes {
        node.kill().await.unwrap();
    }
    let error = try_observe(&backend).await.map(drop).unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_lost_master_leaves_rereads_of_the_other_masters() {
    // One request for keys of every master, one of which is dead; a key of another master was deleted.
    let cluster = start().await;
    let backend = setup(&cluster).backend();
    let mut router = Router::new(&cluster).await;
    let all: Vec<String> = (0..60).map(|at| format!("lock:{at}")).collect();
    for name in &all {
        router.run(&["SET", name, "v", "PX", "3600000"]).await;
    }
    cluster.nodes[2].kill().await.unwrap();
    let mut live = names(&observe(&backend).await.1);
    assert!((2..60).contains(&live.len()));
    let deleted = live.pop_first().unwrap();
    router.run(&["DEL", &deleted]).await;
    let wanted: Vec<(Source, Resource)> = all
        .iter()
        .map(|name| (key(), Resource::from(name.as_str())))
        .collect();
    let mut seen = Seen::default();
    let error = backend.refresh(&wanted, &mut seen).await.unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
    assert_eq!(names(&seen), live);
    seen.gone.retain(|(source, _)| *source == key());
    assert_eq!(seen.gone, [(key(), Resource::from(deleted.as_str()))]);
}

#[tokio::test]
async fn a_server_without_cluster_mode_is_refused_with_its_mode() {
    let alone: Redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let backend = Setup::mode(RedisMode::Cluster, [alone.url()]).backend();
    for error in [
        try_observe(&backend).await.map(drop).unwrap_err(),
        backend.probe().await.map(drop).unwrap_err(),
    ] {
        assert!(
            matches!(&error, BackendError::Misconfigured { remedy, .. } if remedy.contains("standalone")),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn every_master_sends_notifications() {
    // They are local to a node: one watch would hear a third of them.
    let cluster = start().await;
    let backend = setup(&cluster).backend();
    let hints = ::backends::Hints::default();
    let mut router = Router::new(&cluster).await;
    let changes = async {
        let mut live = false;
        eventually("every watch is live", async || {
            live |= hints.take().await.state == Some(domain::backend::WatchState::Live);
            live
        })
        .await;
        for at in 0..9 {
            let name = format!("lock:{at}");
            router.run(&["SET", &name, "v"]).await;
            let wanted = (key(), Resource::from(name.as_str()));
            while !hints.take().await.names.contains(&wanted) {}
        }
    };
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        () = changes => {}
    }
}

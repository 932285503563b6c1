//! The commands of docs/backends/etcd.md, run unchanged, and the account that they create.

use std::time::Duration;

use ::backends::etcd::EtcdBackend;
use ::backends::{Backend, BackendError, Hints};
use domain::backend::WatchState;
use domain::force_release::Release;
use domain::reported::Reported;

use super::watched_etcd::{
    SeenLocks, WatchedEtcd, backend, etcdctl, refreshed, seen, source_of, try_backend_with,
};
use crate::support::unlocking::{act, generation, unlock};

const GUIDE: &str = include_str!("../../../../docs/backends/etcd.md");
const UNLOCK_PASSWORD: &str = "breaks-'glass'";
const PASSWORD: &str = "it's-\"long\"-%enough\\";

/// The blocks of shell commands: of the account that watches, and of the one that unlocks.
fn commands() -> [&'static str; 2] {
    let blocks = GUIDE.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    blocks.try_into().expect("the guide has two blocks of commands")
}

/// Whether etcd refused `etcdctl args` to `user` for want of permission; any other failure fails the test.
async fn refused(endpoint: &str, user: &str, args: &[&str]) -> bool {
    let output = etcdctl(endpoint)
        .arg(format!("--user={user}"))
        .args(args)
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || text.contains("permission denied"),
        "{args:?}: {text}"
    );
    !output.status.success()
}

async fn run_as_root(endpoint: &str) {
    for args in [
        &["user", "add", "root", "--new-user-password=root-pw"][..],
        &["role", "add", "root"],
        &["user", "grant-role", "root", "root"],
        &["auth", "enable"],
    ] {
        assert!(
            etcdctl(endpoint)
                .args(args)
                .output()
                .await
                .unwrap()
                .status
                .success(),
            "{args:?}"
        );
    }
    let output = tokio::process::Command::new("sh")
        .args(["-euc", &commands().concat()])
        .env("ETCDCTL_API", "3")
        .env("ETCDCTL_ENDPOINTS", endpoint)
        .env("ETCDCTL_USER", "root:root-pw")
        .env("WATCH_PASSWORD", PASSWORD)
        .env("UNLOCK_PASSWORD", UNLOCK_PASSWORD)
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A plain key and a queue below `/locks/`, a key elsewhere, and the guide's account.
struct Guarded {
    watched: WatchedEtcd,
    watcher: EtcdBackend,
    /// On a key below `/locks/`, on a key elsewhere, and on none; in hex.
    leases: [String; 3],
}

impl Guarded {
    async fn make() -> Self {
        let mut watched = WatchedEtcd::start().await;
        let leases = [
            watched.lease(600).await,
            watched.lease(600).await,
            watched.lease(600).await,
        ];
        watched.put("/locks/a", "o", leases[0]).await;
        watched.put("/elsewhere", "o", leases[1]).await;
        watched.enqueue("/locks/job", "", 600).await;
        run_as_root(&watched.etcd.endpoint()).await;
        let watcher = backend(&[watched.etcd.endpoint()], &["/locks/"], |config| {
            config.user = Some("leasehold-watch".to_owned());
            config.password = Some(PASSWORD.to_owned().into());
        });
        let leases = leases.map(|lease| format!("{lease:x}"));
        Self {
            watched,
            watcher,
            leases,
        }
    }

    async fn sees_all(&self) -> SeenLocks {
        let all = seen(&self.watcher).await.unwrap();
        assert_eq!(all.names(), [("key", "/locks/a"), ("mutex", "/locks/job")]);
        assert!(all.whole());
        all
    }
}

#[tokio::test]
async fn the_documented_account_sees_all_locks() {
    // Made by the guide's own commands; pass, refresh, detail, watch, and rights that are just as wanted.
    let guarded = Guarded::make().await;
    let all = guarded.sees_all().await;
    let watcher = &guarded.watcher;
    assert_eq!(
        refreshed(watcher, &[("key", "/locks/a")])
            .await
            .unwrap()
            .locks
            .len(),
        1
    );
    let lock = all.lock("mutex", "/locks/job");
    assert!(
        watcher
            .inspect(&lock.source, &lock.resource)
            .await
            .unwrap()
            .lock
            .is_some()
    );
    let rights = watcher.probe().await.unwrap().rights;
    assert!(
        rights
            .iter()
            .all(|right| right.allowed == Reported::Value(right.wanted)),
        "{rights:?}"
    );
    let hints = Hints::default();
    let live = async { while hints.take().await.state != Some(WatchState::Live) {} };
    tokio::select! {
        () = watcher.watch(hints.clone()) => {}
        () = live => {}
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("the watch is not live within 30 s"),
    }
}

#[tokio::test]
async fn documented_account_changes_no_lock_and_its_rights_are_named() {
    // Each line of the guide's table, by etcdctl as that account; all locks are there afterwards.
    let guarded = Guarded::make().await;
    let endpoint = guarded.watched.etcd.endpoint();
    let user = format!("leasehold-watch:{PASSWORD}");
    let [lease, foreign, empty] = &guarded.leases;
    for args in [
        &["get", "/elsewhere"][..],
        &["get", "--prefix", "/"],
        &["put", "/locks/a", "x"],
        &["put", "/elsewhere", "x"],
        &["del", "/locks/a"],
        &["lease", "revoke", lease],
        &["lease", "revoke", foreign],
        &["user", "list"],
        &["role", "add", "more"],
    ] {
        assert!(refused(&endpoint, &user, args).await, "{args:?} is allowed");
    }
    for args in [
        &["lease", "grant", "30"][..],
        &["lease", "keep-alive", "--once", lease],
        &["lease", "keep-alive", "--once", foreign],
        &["lease", "timetolive", "--keys", foreign],
        &["lease", "revoke", empty],
        &["compaction", "2"],
    ] {
        assert!(
            !refused(&endpoint, &user, args).await,
            "{args:?} is refused: the guide says otherwise"
        );
    }
    guarded.sees_all().await;
}

#[tokio::test]
async fn documented_unlock_account_is_limited_to_its_prefixes() {
    // With the account of the guide: a plain key and a mutex are released; the limits of the account, and those that
    // etcd cannot enforce, match the guide.
    let mut guarded = Guarded::make().await;
    let endpoint = guarded.watched.etcd.endpoint();
    guarded.watcher = try_backend_with(
        std::slice::from_ref(&endpoint),
        &["/locks/"],
        |config| {
            config.user = Some("leasehold-watch".to_owned());
            config.password = Some(PASSWORD.to_owned().into());
        },
        |etcd| {
            etcd.unlock_user = Some("leasehold-unlock".to_owned());
            etcd.unlock_password = Some(UNLOCK_PASSWORD.to_owned().into());
        },
    )
    .unwrap();
    for (source, resource) in [("key", "/locks/a"), ("mutex", "/locks/job")] {
        let answer = unlock(&guarded.watcher, &source_of(source), &resource.into()).await;
        assert_eq!(answer, Release::Released, "{resource}");
    }
    let user = format!("leasehold-unlock:{UNLOCK_PASSWORD}");
    let [_, foreign, _] = &guarded.leases;
    for args in [
        &["get", "/elsewhere"][..],
        &["del", "/elsewhere"],
        &["put", "/elsewhere", "x"],
        &["lease", "revoke", foreign],
        &["user", "list"],
    ] {
        assert!(refused(&endpoint, &user, args).await, "{args:?} is allowed");
    }
    assert!(!refused(&endpoint, &user, &["put", "/locks/a", "x"]).await);
}

#[tokio::test]
async fn an_unlock_account_without_rights_changes_nothing() {
    // The watching account itself as the unlocking one; a wrong password; the keys are there afterwards.
    let guarded = Guarded::make().await;
    let unlocker = |user: &str, password: &str| {
        try_backend_with(
            &[guarded.watched.etcd.endpoint()],
            &["/locks/"],
            |config| {
                config.user = Some("leasehold-watch".to_owned());
                config.password = Some(PASSWORD.to_owned().into());
            },
            |etcd| {
                etcd.unlock_user = Some(user.to_owned());
                etcd.unlock_password = Some(password.to_owned().into());
            },
        )
        .unwrap()
    };
    let source = source_of("key");
    let powerless = unlocker("leasehold-watch", PASSWORD);
    let answer = unlock(&powerless, &source, &"/locks/a".into()).await;
    assert!(
        matches!(&answer, Release::Refused { remedy, .. } if remedy.contains("readwrite '/locks/'")),
        "{answer:?}"
    );
    let wrong = unlocker("leasehold-unlock", "wrong");
    let seen = generation(&wrong, &source, &"/locks/a".into()).await;
    let error = wrong
        .release(&source, &"/locks/a".into(), &seen, &act())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, BackendError::Denied { remedy, .. } if remedy.contains("`unlock_password`")),
        "{error:?}"
    );
    guarded.sees_all().await;
}

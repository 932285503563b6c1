//! Users and roles: authentication off, on, lost, wrong, and with too few permissions.

use std::time::Duration;

use ::backends::{Backend, BackendError, Hints};
use ::config::BackendConfig;
use domain::backend::{AccountPermission, WatchState};
use domain::reported::Reported;
use etcd_client::{Client, ConnectOptions, Permission};

use super::watched_etcd::{WatchedEtcd, backend, refreshed, seen};
use crate::support::watching::ReadParts;

/// Users `root` and `reader` (reads below /locks/), authentication on; a client as root.
async fn with_users(watched: &WatchedEtcd) -> Client {
    let mut client = watched.client.clone();
    for (user, role) in [("root", "root"), ("reader", "reader"), ("writer", "writer")] {
        client.user_add(user, "secret-pw", None).await.unwrap();
        client.role_add(role).await.unwrap();
        client.user_grant_role(user, role).await.unwrap();
    }
    client
        .role_grant_permission("reader", Permission::read("/locks/").with_prefix())
        .await
        .unwrap();
    client
        .role_grant_permission("writer", Permission::read_write("/locks/").with_prefix())
        .await
        .unwrap();
    client.auth_enable().await.unwrap();
    let options = ConnectOptions::new().with_user("root", "secret-pw");
    Client::connect([watched.etcd.endpoint()], Some(options))
        .await
        .unwrap()
}

fn as_user(name: &'static str, password: &'static str) -> impl FnOnce(&mut BackendConfig) {
    move |config| {
        config.user = Some(name.to_owned());
        config.password = Some(password.to_owned().into());
    }
}

fn allowed<'a>(rights: &'a [AccountPermission], what: &str) -> &'a Reported<bool> {
    &rights
        .iter()
        .find(|right| right.what.starts_with(what))
        .unwrap_or_else(|| panic!("{rights:?}"))
        .allowed
}

#[tokio::test]
async fn disabled_authentication_is_reported_as_writable_by_all() {
    // Without a user, and with a user that etcd has no use for.
    let mut watched = WatchedEtcd::start().await;
    watched.put("/locks/a", "o", 0).await;
    let with_user = backend(&[watched.etcd.endpoint()], &["/locks/"], as_user("reader", "pw"));
    assert_eq!(seen(&with_user).await.unwrap().locks.len(), 1);
    for backend in [&watched.backend, &with_user] {
        let rights = backend.probe().await.unwrap().rights;
        let right = rights
            .iter()
            .find(|right| right.what.contains("authentication is off"))
            .unwrap();
        assert_eq!((&right.allowed, right.wanted), (&Reported::Value(true), false));
        assert!(right.remedy.contains("auth enable"));
    }
}

#[tokio::test]
async fn a_read_only_user_sees_all_locks_and_has_no_excess() {
    // Permissions come from etcd's own roles; the check writes no key.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(60).await;
    watched.put("/locks/a", "o", lease).await;
    watched.enqueue("/locks/job", "", 60).await;
    let _root = with_users(&watched).await;
    let reader = backend(
        &[watched.etcd.endpoint()],
        &["/locks/"],
        as_user("reader", "secret-pw"),
    );
    let seen_by_reader = seen(&reader).await.unwrap();
    assert_eq!(
        seen_by_reader.names(),
        [("key", "/locks/a"), ("mutex", "/locks/job")]
    );
    assert!(seen_by_reader.whole());
    let lock = seen_by_reader.lock("key", "/locks/a");
    assert!(
        reader
            .inspect(&lock.source, &lock.resource)
            .await
            .unwrap()
            .lock
            .is_some()
    );
    let probe = reader.probe().await.unwrap();
    assert!(probe.version.is_known());
    assert_eq!(allowed(&probe.rights, "read the keys"), &Reported::Value(true));
    assert_eq!(allowed(&probe.rights, "write keys"), &Reported::Value(false));
    for name in ["writer", "root"] {
        let other = backend(
            &[watched.etcd.endpoint()],
            &["/locks/"],
            as_user(name, "secret-pw"),
        );
        assert_eq!(
            allowed(&other.probe().await.unwrap().rights, "write keys"),
            &Reported::Value(true),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_unreadable_prefix_is_named_and_others_are_read() {
    // One of two prefixes; then only the forbidden one.
    let mut watched_etcd = WatchedEtcd::start().await;
    watched_etcd.put("/locks/a", "o", 0).await;
    watched_etcd.put("/secret/b", "o", 0).await;
    let mut root = with_users(&watched_etcd).await;
    let endpoint = [watched_etcd.etcd.endpoint()];
    let both = backend(
        &endpoint,
        &["/locks/", "/secret/"],
        as_user("reader", "secret-pw"),
    );
    let partial = seen(&both).await.unwrap();
    assert_eq!(partial.names(), [("key", "/locks/a")]);
    let source = &partial.pass().sources[0];
    assert!(!source.coverage.is_complete());
    assert!(source.fault.as_ref().unwrap().contains("/secret/"), "{source:?}");
    let rights = both.probe().await.unwrap().rights;
    assert_eq!(
        allowed(&rights, "read the keys below /secret/"),
        &Reported::Value(false)
    );
    // The watch also continues on the keys that it may read.
    let hints = Hints::default();
    let watched = async {
        loop {
            let pending = hints.take().await;
            if pending
                .names
                .iter()
                .any(|(_, name)| name.as_bytes() == b"/locks/b")
            {
                break;
            }
            if pending.state == Some(WatchState::Live) {
                root.put("/locks/b", "o", None).await.unwrap();
            }
        }
    };
    tokio::select! {
        () = both.watch(hints.clone()) => {}
        () = watched => {}
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("no hint within 30 s"),
    }
    let none = backend(&endpoint, &["/secret/"], as_user("reader", "secret-pw"));
    let error = seen(&none).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Denied { detail, .. } if detail.contains("/secret/")),
        "{error:?}"
    );
    assert!(
        error.remedy().starts_with("etcdctl role grant-permission"),
        "{}",
        error.remedy()
    );
    let refused = refreshed(&none, &[("key", "/secret/b")]).await.unwrap_err();
    assert!(matches!(refused, BackendError::Denied { .. }), "{refused:?}");
}

#[tokio::test]
async fn all_locks_below_a_readable_prefix_count_as_read() {
    // One prefix of two is denied, and one key has a name over the limit: a lock that is gone is known to be gone.
    let mut watched = WatchedEtcd::start().await;
    watched
        .put(format!("/locks/{}", "k".repeat(70_000)), "o", 0)
        .await;
    let _root = with_users(&watched).await;
    let endpoint = [watched.etcd.endpoint()];
    let both = backend(
        &endpoint,
        &["/locks/", "/secret/"],
        as_user("reader", "secret-pw"),
    );
    let parts = ReadParts::from_partial_scan(&both).await;
    for (source, name) in [("key", "/locks/a"), ("mutex", "/locks/job"), ("mutex", "/locks")] {
        assert!(parts.has_read(source, name), "{source} {name}");
    }
    assert!(!parts.has_read("key", "/secret/a") && !parts.has_read("mutex", "/secret/job"));
}

#[tokio::test]
async fn invalid_logins_are_denied_without_secrets() {
    // Three ways to be rejected; each error has its remedy.
    let watched = WatchedEtcd::start().await;
    let _root = with_users(&watched).await;
    let endpoint = [watched.etcd.endpoint()];
    for backend in [
        backend(&endpoint, &["/locks/"], as_user("reader", "hunter2")),
        backend(&endpoint, &["/locks/"], as_user("nobody", "hunter2")),
        backend(&endpoint, &["/locks/"], |_| {}),
    ] {
        for error in [
            seen(&backend).await.unwrap_err(),
            backend.probe().await.unwrap_err(),
        ] {
            assert!(matches!(error, BackendError::Denied { .. }), "{error:?}");
            assert!(error.remedy().contains("`user` and `password`"));
            assert!(!format!("{error:?}").contains("hunter2"));
        }
    }
}

#[tokio::test]
async fn a_restart_that_drops_the_login_leads_to_a_new_login() {
    // etcd keeps simple tokens in memory only.
    let mut watched = WatchedEtcd::start().await;
    watched.put("/locks/a", "o", 0).await;
    let _root = with_users(&watched).await;
    let reader = backend(
        &[watched.etcd.endpoint()],
        &["/locks/"],
        as_user("reader", "secret-pw"),
    );
    for _ in 0..3 {
        assert_eq!(seen(&reader).await.unwrap().locks.len(), 1);
        watched.etcd.kill().await.unwrap();
        watched.etcd.restart().await.unwrap();
    }
    assert_eq!(seen(&reader).await.unwrap().locks.len(), 1);
}

#[tokio::test]
async fn the_adapter_follows_authentication_on_and_off() {
    // A configured user logs in as soon as etcd requires it, and keeps access when etcd no longer does.
    let mut watched = WatchedEtcd::start().await;
    watched.put("/locks/a", "o", 0).await;
    let reader = backend(
        &[watched.etcd.endpoint()],
        &["/locks/"],
        as_user("reader", "secret-pw"),
    );
    assert_eq!(seen(&reader).await.unwrap().locks.len(), 1);
    let mut root = with_users(&watched).await;
    assert_eq!(seen(&reader).await.unwrap().locks.len(), 1);
    assert_eq!(
        allowed(&reader.probe().await.unwrap().rights, "write keys"),
        &Reported::Value(false)
    );
    root.auth_disable().await.unwrap();
    assert_eq!(seen(&reader).await.unwrap().locks.len(), 1);
    watched.client.delete("/locks/a", None).await.unwrap();
    assert_eq!(seen(&reader).await.unwrap().locks.len(), 0);
}

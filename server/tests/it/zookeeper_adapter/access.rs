//! What an ACL, a chroot or a path hides is a state with a reason, never an empty list.

use ::backends::{Backend, BackendError};
use domain::observation::ObservedCondition;
use zookeeper_client::{Acls, Client, CreateMode};

use super::watched_zookeeper::{WatchedZookeeper, backend, enqueue, folder, node};
use crate::support::watching::{ReadParts, owner, refresh, scan};

#[tokio::test]
async fn a_hidden_node_is_a_row_of_unknown_state() {
    // A lock node that only its creator may list; a contender whose data only its creator may read; another lock.
    let watched = WatchedZookeeper::start().await;
    let cluster = watched.zookeeper.cluster();
    folder(&watched.client, "/locks/open").await;
    enqueue(&watched.client, "/locks/open/lock-", "w-1").await;
    let app = Client::connector().with_auth("digest", b"app:secret");
    let app = app.connect(&cluster).await.unwrap();
    let own = CreateMode::Persistent.with_acls(Acls::creator_all());
    app.create("/locks/secret", b"", &own).await.unwrap();
    folder(&watched.client, "/locks/private").await;
    let own = CreateMode::EphemeralSequential.with_acls(Acls::creator_all());
    app.create("/locks/private/lock-", b"w-2", &own).await.unwrap();
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(seen.names(), ["/locks/open", "/locks/private", "/locks/secret"]);
    let hidden = seen.lock("/locks/secret");
    assert!(hidden.generation.is_unknown() && hidden.owner.is_unknown());
    assert!(
        matches!(&hidden.condition, Some(ObservedCondition::Unrecognised { why }) if why.contains("ACL"))
    );
    let private = seen.lock("/locks/private");
    assert!(owner(private).starts_with("session:0x"));
    assert!(
        matches!(&private.condition, Some(ObservedCondition::Note { why }) if why.contains("hides its data"))
    );
    let (source, resource) = node("/locks/secret");
    let detail = watched.backend.inspect(&source, &resource).await.unwrap();
    assert!(detail.blast_radius.is_unknown());
    let again = refresh(&watched.backend, "node", &["/locks/secret"])
        .await
        .unwrap();
    assert_eq!(again.names(), ["/locks/secret"]);
}

#[tokio::test]
async fn locks_below_a_node_that_becomes_hidden_stay() {
    // A folder with a held lock; then its ACL hides its children. Read by name it may still be held, as a configured path too.
    let watched = WatchedZookeeper::start().await;
    let cluster = watched.zookeeper.cluster();
    folder(&watched.client, "/locks/team/job").await;
    enqueue(&watched.client, "/locks/team/job/lock-", "w-1").await;
    assert!(scan(&watched.backend).await.unwrap().is_whole());
    let app = Client::connector().with_auth("digest", b"app:secret");
    let app = app.connect(&cluster).await.unwrap();
    app.set_acl("/locks/team", &Acls::creator_all(), None)
        .await
        .unwrap();
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(seen.names(), ["/locks/team"]);
    assert!(
        seen.fault().contains("/locks/team hides its children"),
        "{}",
        seen.fault()
    );
    let parts = ReadParts::from_partial_scan(&watched.backend).await;
    assert!(!parts.has_read("node", "/locks/team/job"));
    assert!(parts.has_read("node", "/locks/gone"));
    let configured = backend(&cluster, |_, zookeeper| {
        zookeeper.paths = vec!["/locks/team".to_owned()]
    });
    let again = refresh(&configured, "node", &["/locks/team"]).await.unwrap();
    assert!(again.names().is_empty() && again.gone.is_empty(), "{again:?}");
}

#[tokio::test]
async fn a_missing_path_or_chroot_is_named() {
    // One path of two is missing; a chroot that does not exist; a hidden path among others.
    let watched = WatchedZookeeper::start().await;
    let cluster = watched.zookeeper.cluster();
    folder(&watched.client, "/locks/job").await;
    enqueue(&watched.client, "/locks/job/lock-", "w-1").await;
    let two = backend(&cluster, |_, zookeeper| {
        zookeeper.paths.push("/mistyped".to_owned())
    });
    let seen = scan(&two).await.unwrap();
    assert_eq!(seen.names(), ["/locks/job"]);
    assert!(
        seen.fault().contains("/mistyped does not exist"),
        "{}",
        seen.fault()
    );
    let nowhere = backend(&format!("{cluster}/nowhere"), |_, _| {});
    let error = scan(&nowhere).await.unwrap_err();
    let BackendError::Misconfigured { detail, remedy } = &error else {
        panic!("{error:?}")
    };
    assert!(
        detail.contains("the chroot /nowhere") && remedy.contains("`connect`"),
        "{error:?}"
    );
    assert!(matches!(
        nowhere.probe().await,
        Err(BackendError::Misconfigured { .. })
    ));
    let app = Client::connector().with_auth("digest", b"app:secret");
    let app = app.connect(&cluster).await.unwrap();
    let own = CreateMode::Persistent.with_acls(Acls::creator_all());
    app.create("/hidden", b"", &own).await.unwrap();
    let some = backend(&cluster, |_, zookeeper| {
        zookeeper.paths.push("/hidden".to_owned())
    });
    let seen = scan(&some).await.unwrap();
    assert_eq!(seen.names(), ["/locks/job"]);
    assert!(
        !seen.is_whole() && seen.fault().contains("/hidden"),
        "{}",
        seen.fault()
    );
    let parts = ReadParts::from_partial_scan(&some).await;
    assert!(parts.has_read("node", "/locks/gone"));
    assert!(!parts.has_read("node", "/hidden") && !parts.has_read("node", "/hidden/job"));
    let alone = backend(&cluster, |_, zookeeper| {
        zookeeper.paths = vec!["/hidden".to_owned()]
    });
    assert!(matches!(scan(&alone).await, Err(BackendError::Denied { .. })));
}

#[tokio::test]
async fn a_configured_path_below_a_hidden_one_is_read() {
    // The root and a node of another team are closed to this account; one path below each is configured and open.
    let watched = WatchedZookeeper::start().await;
    let cluster = watched.zookeeper.cluster();
    for job in ["/locks/job", "/teams/a/locks/job", "/other/job"] {
        folder(&watched.client, job).await;
        enqueue(&watched.client, &format!("{job}/lock-"), "w-1").await;
    }
    let app = Client::connector().with_auth("digest", b"app:secret");
    let app = app.connect(&cluster).await.unwrap();
    for closed in ["/teams/a", "/"] {
        app.set_acl(closed, &Acls::creator_all(), None).await.unwrap();
    }
    let configured = backend(&cluster, |_, zookeeper| {
        zookeeper.paths = ["/", "/locks", "/teams", "/teams/a/locks"]
            .map(str::to_owned)
            .to_vec();
    });
    let seen = scan(&configured).await.unwrap();
    assert_eq!(seen.names(), ["/locks/job", "/teams/a", "/teams/a/locks/job"]);
    assert!(
        seen.fault().contains("the ACL of / hides its children"),
        "{}",
        seen.fault()
    );
    let parts = ReadParts::from_partial_scan(&configured).await;
    assert!(parts.has_read("node", "/locks/gone") && parts.has_read("node", "/teams/a/locks/gone"));
    assert!(!parts.has_read("node", "/other/job") && !parts.has_read("node", "/teams/a/other"));
}

#[tokio::test]
async fn a_path_over_the_limit_leaves_no_other_lock_unread() {
    // A held lock whose path is longer than a lock may have: a lock that is gone is known to be gone.
    let watched = WatchedZookeeper::start().await;
    let long = format!("/locks/{}", "k".repeat(70_000));
    folder(&watched.client, &long).await;
    enqueue(&watched.client, &format!("{long}/lock-"), "w-1").await;
    let parts = ReadParts::from_partial_scan(&watched.backend).await;
    assert!(parts.has_read("node", "/locks/gone"));
}

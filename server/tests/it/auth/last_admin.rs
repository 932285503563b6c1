//! The last admin stays: when two admins remove each other at the same time, and on a replica that is behind.

use domain::access::{Grant, Role};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, IdentityError, Principal};
use runtime::clock::Clock;
use runtime::db::Db;

use crate::support::{Store, TestServer, on};

async fn of_two_removals_one_fails(store: Store) {
    // Both pass the check of the directory in memory before either writes.
    let server = TestServer::builder().start_on(store).await;
    let admins = || vec![Grant::everywhere(Role::Admin)];
    let (ada, eve) = (
        server.add_user("ada", admins()).await,
        server.add_user("eve", admins()).await,
    );
    let (identity, who) = (server.identity(), Principal::system("test"));
    let viewer = vec![Grant::everywhere(Role::Viewer)];
    let (disabled, demoted) = tokio::join!(
        identity.disable_user(&who, &ada),
        identity.set_grants(&who, &eve, viewer)
    );
    let refused: Vec<String> = [disabled.err(), demoted.err()]
        .into_iter()
        .flatten()
        .map(|error| error.to_string())
        .collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("last enabled admin"), "{refused:?}");
    assert_eq!(identity.directory().admins().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_the_last_two_admins_stays() {
    of_two_removals_one_fails(Store::sqlite()).await;
    of_two_removals_one_fails(Store::postgres().await).await;
}

async fn is_decided_by_the_store(store: Store) {
    // The other replica has not read yet that the admin changed: to it, eve is a viewer and no admin is removed.
    let server = TestServer::builder().start_on(store).await;
    let ada = server.add_user("ada", on(Role::Admin, None, None)).await;
    let eve = server.add_user("eve", on(Role::Viewer, None, None)).await;
    let db = Db::open(&server.store.url).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let behind = Identity::open(db, audit, Clock::start()).await.unwrap();
    let (here, who) = (server.identity(), Principal::system("test"));
    let (admin, viewer) = (on(Role::Admin, None, None), on(Role::Viewer, None, None));
    here.set_grants(&who, &eve, admin).await.unwrap();
    here.set_grants(&who, &ada, viewer.clone()).await.unwrap();
    let refused = [
        behind.set_grants(&who, &eve, viewer).await.err(),
        behind.disable_user(&who, &eve).await.err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(IdentityError::LastAdmin)), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_behind_keeps_the_last_admin() {
    is_decided_by_the_store(Store::sqlite()).await;
    is_decided_by_the_store(Store::postgres().await).await;
}

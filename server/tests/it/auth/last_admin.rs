//! Two admins who remove each other at the same time.

use domain::access::{Grant, Role};
use leasehold::identity::Principal;

use crate::support::{Store, TestServer};

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

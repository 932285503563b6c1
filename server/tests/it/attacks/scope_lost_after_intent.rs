//! An operator of a whole backend requests an unlock, loses all but one name, and confirms: the
//! release would end the locks of others with the same session. The scope is checked again on
//! the blast radius at the release.

use crate::support::{code, on};
use domain::access::Role;
use leasehold::identity::Principal;

use crate::unlock::blast_radius::{is_alive, postgres_and_server, session};

const NAME: &str = "advisory:postgres:1";

#[tokio::test]
async fn scope_is_checked_again_on_the_blast_radius() {
    let (postgres, server) = postgres_and_server().await;
    let eve = server.user("eve", on(Role::Operator, None, None)).await;
    let locks = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    let mut holder = session(&postgres, "billing", locks).await;
    let held = server.inventory_lock(&eve, "orders-db", NAME).await;
    let id = server.begun(&eve, &held).await;
    let identity = server.identity();
    let eve_id = identity.directory().user_named("eve").unwrap().id.clone();
    let grants = on(Role::Operator, None, Some(NAME));
    identity
        .set_grants(&Principal::system("test"), &eve_id, grants)
        .await
        .unwrap();
    let refused = server.confirm(&eve, &id, NAME).await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    assert!(is_alive(&mut holder).await);
}

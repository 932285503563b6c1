//! An operator of a whole backend begins an unlock, loses all but one name, and confirms: the act would end the locks of
//! others with the same session. The scope is checked again on what would be released at the act.

use domain::access::Role;
use leasehold::identity::Who;

use crate::unlock::radius::{is_alive, session, world};
use crate::unlock::stage::{code, on};

const NAME: &str = "advisory:postgres:1";

#[tokio::test]
async fn scope_is_checked_again_on_what_the_act_would_release() {
    let (postgres, stage) = world().await;
    let eve = stage.person("eve", on(Role::Operator, None, None)).await;
    let locks = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    let mut holder = session(&postgres, "billing", locks).await;
    let held = stage.seen(&eve, "orders-db", NAME).await;
    let id = stage.begun(&eve, &held).await;
    let identity = stage.identity();
    let eve_id = identity.directory().person_named("eve").unwrap().id.clone();
    let grants = on(Role::Operator, None, Some(NAME));
    identity
        .set_grants(&Who::system("test"), &eve_id, grants)
        .await
        .unwrap();
    let refused = stage.confirm(&eve, &id, NAME).await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    assert!(is_alive(&mut holder).await);
}

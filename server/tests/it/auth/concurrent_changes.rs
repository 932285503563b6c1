//! Changes of roles while other transactions have connections of the same pool.

use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, Principal};
use runtime::clock::Clock;
use runtime::db::Db;

use crate::support::{Store, TestServer, on};

#[tokio::test]
async fn one_free_connection_is_enough_to_change_roles() {
    // Other transactions have three of the four connections, as changes that wait for a lock of this one.
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    let ada = server.add_user("ada", on(Role::Approver, None, None)).await;
    let db = Db::open(&server.store.url).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let identity = Identity::open(db.clone(), audit, Clock::start()).await.unwrap();
    let waiting = [
        db.begin().await.unwrap(),
        db.begin().await.unwrap(),
        db.begin().await.unwrap(),
    ];
    let roles = on(Role::Approver, None, None);
    let changed = identity.set_grants(&Principal::system("test"), &ada, roles).await;
    assert!(changed.is_ok(), "{changed:?}");
    drop(waiting);
}

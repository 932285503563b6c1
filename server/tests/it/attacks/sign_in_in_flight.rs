//! A sign-in whose password is changed, or whose user is disabled, while the password is evaluated.

use crate::support::{PASSWORD, Store, TestServer, on};
use domain::access::Role;
use leasehold::audit::Origin;
use leasehold::identity::{IdentityError, SignedIn};
use runtime::db::{Db, Tx};
use testkit::eventually;

/// Works while a transaction with this change is open; it commits once the stored password was read.
pub(super) async fn work_during<T>(
    server: &TestServer,
    change: &'static str,
    work: impl Future<Output = T>,
) -> T {
    let identity = server.identity();
    let db = Db::open(&server.store.url).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let changed = match &mut tx {
        Tx::Sqlite(tx) => {
            let done = sqlx::query(change).execute(&mut **tx).await;
            done.unwrap().rows_affected()
        }
        Tx::Postgres(tx) => {
            let done = sqlx::query(change).execute(&mut **tx).await;
            done.unwrap().rows_affected()
        }
    };
    assert_eq!(changed, 1);
    let evaluated = identity.hashes_evaluated();
    let committing = async {
        // Counted after the stored password was read. The result of the work cannot be written before the commit.
        eventually("the password is evaluated", async || {
            identity.hashes_evaluated() > evaluated
        })
        .await;
        tx.commit().await.unwrap();
    };
    tokio::join!(work, committing).0
}

async fn sign_in_during(
    server: &TestServer,
    name: &str,
    change: &'static str,
) -> Result<SignedIn, IdentityError> {
    let (password, origin) = (PASSWORD.into(), Origin::default());
    let signing_in = Box::pin(server.identity().sign_in(name, &password, &origin));
    work_during(server, change, signing_in).await
}

#[tokio::test]
async fn sign_in_in_flight_does_not_survive_a_change() {
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        for (name, change) in [
            ("ada", "UPDATE users SET password_hash = 'x' WHERE name = 'ada'"),
            ("bob", "UPDATE users SET disabled_at = 1 WHERE name = 'bob'"),
        ] {
            server.add_user(name, on(Role::Viewer, None, None)).await;
            let refused = sign_in_during(&server, name, change).await;
            let is_refused = matches!(refused, Err(IdentityError::WrongPassword));
            assert!(is_refused, "{name}: {refused:?}");
        }
        assert_eq!(server.identity().sessions().await.unwrap(), []);
        // A write that changes neither.
        server.add_user("eve", on(Role::Viewer, None, None)).await;
        let unchanged = "UPDATE users SET created_at = 1 WHERE name = 'eve'";
        sign_in_during(&server, "eve", unchanged).await.unwrap();
    }
}

//! `leasehold token revoke`: it prints what ended with the token.

use super::{leasehold, run};
use crate::support::{TestServer, on};

use domain::access::Role;
use leasehold::audit::Origin;
use leasehold::identity::{Principal, Subject};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_revoke_prints_what_ended_with_it() {
    // A token with a child, a session and an unused link, and with ones that had ended by time; then a token without.
    let server = TestServer::start().await;
    let identity = server.identity();
    let bob = server.add_user("bob", on(Role::Viewer, None, None)).await;
    let carol = server.add_user("carol", on(Role::Viewer, None, None)).await;
    let secret = server.token("deploy", on(Role::Admin, None, None)).await;
    server.token("ci", on(Role::Viewer, None, None)).await;
    let token = identity.token(secret.secret()).await.unwrap().unwrap();
    let by_token = Principal {
        subject: Subject::Token {
            id: token.id.clone(),
            name: token.name.clone(),
        },
        ..Principal::system("test")
    };
    server
        .token_by(&by_token, "child", on(Role::Viewer, None, None))
        .await;
    let open_session = async || {
        let link = identity.user_link(&by_token, &bob).await.unwrap();
        identity
            .open_link(link.expose(), &Origin::default())
            .await
            .unwrap();
    };
    open_session().await;
    identity.user_link(&by_token, &carol).await.unwrap();
    let aged = "UPDATE sessions SET last_seen_at = 1; UPDATE one_time_links SET expires_at = 1";
    server.store.sql(aged).await;
    open_session().await;
    identity.user_link(&by_token, &bob).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leasehold.toml");
    std::fs::write(&file, format!("store = \"{}\"\n", server.store.url)).unwrap();
    let revoke = |name: &str| {
        let mut command = leasehold(folder.path());
        run(command
            .args(["token", "revoke", "--name", name, "--config"])
            .arg(&file))
    };
    let expected = "Revoked: child, deploy\nAlso ended: 1 sign-in link, 1 session\n";
    assert_eq!(revoke("deploy"), (0, expected.to_owned(), String::new()));
    assert_eq!(revoke("ci"), (0, String::new(), String::new()));
}

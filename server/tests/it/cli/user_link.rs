//! `leasehold user link`: a link for a user of a running server, with the audit entry and the notification of any other
//! link.

use super::{leasehold, run};
use crate::support::TestServer;

use domain::access::{Grant, Role};
use leasehold::identity::Principal;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_link_prints_a_link_that_signs_in() {
    // The configuration names the store and the address of the server.
    let server = TestServer::start().await;
    let ada = server
        .add_user("ada", vec![Grant::everywhere(Role::Viewer)])
        .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leasehold.toml");
    let address = server.serving.address;
    let toml = format!("listen = \"{address}\"\nstore = \"{}\"\n", server.store.url);
    std::fs::write(&file, toml).unwrap();
    let make = |name: &str| {
        let mut command = leasehold(folder.path());
        run(command
            .args(["user", "link", "--name", name, "--config"])
            .arg(&file))
    };
    let (code, out, err) = make("ada");
    assert_eq!((code, err.as_str()), (0, ""));
    let secret = out
        .trim_end()
        .strip_prefix(&format!("http://{address}/sign-in?link="))
        .unwrap_or_else(|| panic!("no link: {out}"));
    let entry = &server.audit_entries().await[0];
    let after = entry.after.as_deref().unwrap();
    assert!(
        after.contains("\"link\":\"made\"") && after.contains("ada"),
        "{after}"
    );
    let browser = server.browser();
    let welcome = browser.post("/sign-in", &[("link", secret)]).await;
    assert_eq!(welcome.status(), 303);
    assert_eq!(browser.get("/").await.status(), 200);

    let system = Principal::system("test");
    server.identity().disable_user(&system, &ada).await.unwrap();
    let (code, out, err) = make("ada");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("is disabled; enable it first"), "{err}");
    let (code, out, err) = make("eve");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("there is no user \"eve\""), "{err}");
}

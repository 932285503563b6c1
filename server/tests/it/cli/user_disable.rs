//! `leasehold user disable`: it prints the API tokens that stay.

use super::{leasehold, run};
use crate::support::{TestServer, on};

use domain::access::Role;
use leasehold::audit::Origin;
use leasehold::identity::{Principal, Subject};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_disable_prints_tokens_that_still_work() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", on(Role::Viewer, None, None)).await;
    server.add_user("bob", on(Role::Viewer, None, None)).await;
    let mut by_ada = Principal::anonymous(Origin::default());
    by_ada.subject = Subject::User {
        id: ada.as_str().into(),
        name: "ada".into(),
    };
    for name in ["deploy", "ci"] {
        server.token_by(&by_ada, name, on(Role::Viewer, None, None)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leasehold.toml");
    std::fs::write(&file, format!("store = \"{}\"\n", server.store.url)).unwrap();
    let disable = |name: &str| {
        let mut command = leasehold(folder.path());
        run(command
            .args(["user", "disable", "--name", name, "--config"])
            .arg(&file))
    };
    let (code, out, err) = disable("ada");
    assert_eq!((code, err.as_str()), (0, ""));
    let expected = "API tokens of ada that still work: ci, deploy\n";
    assert!(out.starts_with(expected), "{out}");
    assert!(out.contains("leasehold token revoke --name"), "{out}");
    let (code, out, err) = disable("bob");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
}

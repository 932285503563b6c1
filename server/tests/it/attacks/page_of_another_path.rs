//! A path with dot segments, backslashes, two slashes at its start or one at its end: the table of routes checks one page or none, and the
//! pages' router, which resolves the path as browsers do, would render another one, of admins.

use domain::access::Role;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{TestCaller, TestServer, on};

const ADMIN_PAGES: [&str; 4] = [
    "settings/users",
    "settings/tokens",
    "settings/sessions",
    "alerts/receivers",
];

/// The answer to a request with exactly this path: HTTP clients resolve it before they send it.
async fn send(server: &TestServer, caller: &TestCaller, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(server.serving.address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         accept: text/html\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 0\r\n\r\n",
        caller.secret()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_path_is_checked_as_the_page_that_it_opens() {
    // A viewer of one prefix; every way to write the path, below routes that the viewer may open, and below none.
    let server = TestServer::start().await;
    server.user("zebra", on(Role::Viewer, None, None)).await;
    server.token("zebra-token", on(Role::Client, None, None)).await;
    let viewer = server
        .token("viewer", on(Role::Viewer, None, Some("tenant_1:")))
        .await;
    for page in ADMIN_PAGES {
        for way in [
            "/locks/x/../../",
            "/unlock/builtin/%2e%2e/.%2E/",
            "/docs/../",
            "/nowhere/..\\",
            "/api/x/../../",
            "//host/",
        ] {
            let answer = send(&server, &viewer, "GET", &format!("{way}{page}")).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{way}{page}: {answer}");
            assert!(!answer.contains("zebra"), "{way}{page}: {answer}");
        }
    }
    // As an address that the pages' router cannot parse.
    let answer = send(&server, &viewer, "GET", "//[/settings").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    // With a slash at the end the path has no route, and so needs no permission, but the pages' router opens the page.
    for page in ADMIN_PAGES
        .iter()
        .chain(&["settings/protected-prefixes", "audit", "unlocks"])
    {
        let answer = send(&server, &viewer, "GET", &format!("/{page}/")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "/{page}/: {answer}");
        assert!(!answer.contains("zebra"), "/{page}/: {answer}");
    }
    // As a decoded id, in the page that answers a form.
    let operator = server.operator().await;
    for page in ADMIN_PAGES {
        let path = format!("/unlocks/..%2F{}/cancel", page.replace('/', "%2F"));
        let answer = send(&server, &operator, "POST", &path).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(!answer.contains("zebra"), "{path}: {answer}");
    }
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let answer = send(&server, &admin, "GET", "/settings/users").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("zebra"),
        "{answer}"
    );
}

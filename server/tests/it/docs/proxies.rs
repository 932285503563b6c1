//! The proxy configurations of docs/deploy unchanged except for addresses, names and certificates: a real nginx and a
//! real Caddy with TLS in front of a whole server. Users sign in, forms pass the CSRF guard, streams arrive at once,
//! forged headers are ignored.

use crate::listener::tls_client::client;
use crate::support::token;
use crate::support::{PASSWORD, TestServer, on};
use std::path::Path;
use std::process::Stdio;

use domain::access::Role;
use reqwest::{Client, Response, StatusCode, header};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::support::form::Form as _;
use testkit::Certs;
use testkit::eventually;

/// A port that was free a moment ago.
async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// A server that trusts a proxy on this machine.
async fn served(front: u16) -> TestServer {
    let server = TestServer::builder().config(&format!(
        "listen = \"127.0.0.1:0\"\npublic_url = \"https://localhost:{front}\"\n[proxy]\ntrusted = [\"127.0.0.1\"]\n"
    )).start()
    .await;
    server.add_user("ada", on(Role::Admin, None, None)).await;
    server
}

fn started(program: &str, args: &[&str], folder: &Path) -> Child {
    let child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env("PATH", "/usr/sbin:/usr/bin:/usr/local/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("proxy.log")).unwrap())
        .kill_on_drop(true)
        .spawn();
    child.unwrap_or_else(|error| {
        panic!("{program}: {error}; install it with: apt-get install -y nginx-light caddy")
    })
}

/// Requests that every proxy must pass on, and requests that it must reject.
async fn speaks(front: u16, server: &TestServer, certs: &Certs, log: &Path) {
    let base = format!("https://localhost:{front}");
    // From another address than the proxy's own.
    let client = client(&certs.ca(), [127, 0, 0, 2]);
    eventually("the proxy answers", || async {
        let answer = client.get(format!("{base}/healthz")).send().await;
        let is_there = answer.is_ok_and(|answer| answer.status() == 200);
        if !is_there {
            println!("{}", std::fs::read_to_string(log).unwrap_or_default());
        }
        is_there
    })
    .await;
    let cookie = signed_in(&client, &base).await;
    let page = client.get(format!("{base}/docs")).header(header::COOKIE, &cookie);
    assert_eq!(page.send().await.unwrap().status(), StatusCode::OK);
    // A form of another site is refused behind a proxy too.
    let foreign = client
        .post(format!("{base}/sign-out"))
        .header(header::COOKIE, &cookie);
    let foreign = foreign
        .header(header::ORIGIN, "https://evil.example")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(foreign.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    let token = token(&server.serving, Role::Client).await;
    streams(&client, &base, token.expose()).await;
    long_requests(&client, &base, token.expose()).await;
    // A client's own value in the proxy's header does not become its address.
    let wrong = [("name", "ada"), ("password", "wrong, on purpose")];
    let forged = client
        .post(format!("{base}/sign-in"))
        .header("x-forwarded-for", "203.0.113.9")
        .form(&wrong);
    assert!(!forged.send().await.unwrap().status().is_success());
    let record = server.audit_entries().await;
    let logins: Vec<_> = record.iter().filter(|row| row.action == "LOGIN").collect();
    assert_eq!(logins.len(), 2, "{record:?}");
    for row in logins {
        assert_eq!(row.ip.as_deref(), Some("127.0.0.2"), "{row:?}");
    }
}

/// Through the form, as a browser; the cookie is one for HTTPS alone.
async fn signed_in(client: &Client, base: &str) -> String {
    let form = [("name", "ada"), ("password", PASSWORD)];
    let post = client
        .post(format!("{base}/sign-in"))
        .header(header::ORIGIN, base)
        .form(&form);
    let answer = post.header("sec-fetch-site", "same-origin").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("Secure"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

/// The loss of a lease comes through an open stream while it is open.
async fn streams(client: &Client, base: &str, token: &str) {
    let body = serde_json::json!({"resource": "proxied", "ownerId": "o", "ttlSeconds": 60});
    let acquire = client
        .post(format!("{base}/v1/locks/acquire"))
        .bearer_auth(token)
        .json(&body);
    let lease: serde_json::Value = acquire.send().await.unwrap().json().await.unwrap();
    let path = format!("{base}/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    let mut stream = client
        .get(format!("{path}/events"))
        .bearer_auth(token)
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    let mut received = first(&mut stream).await;
    let released = client.delete(&path).bearer_auth(token).send().await.unwrap();
    assert!(released.status().is_success());
    while !received.contains("released") {
        received += &first(&mut stream).await;
    }
}

/// A batch near its limit of 256 KB, and the page of a lock with a long name, whose redirect to the sign-in page repeats it.
async fn long_requests(client: &Client, base: &str, token: &str) {
    let acquire = |number: u32| {
        let resource = format!("{number:0>500}");
        serde_json::json!({"acquire": {"resource": resource, "ownerId": "o", "ttlSeconds": 60}})
    };
    let operations: Vec<serde_json::Value> = (0..400).map(acquire).collect();
    let batch = client
        .post(format!("{base}/v1/locks/batch"))
        .bearer_auth(token)
        .json(&serde_json::json!({"operations": operations}));
    assert_eq!(batch.send().await.unwrap().status(), StatusCode::OK);
    let name = "n".repeat(10_000);
    let page = client.get(format!("{base}/locks/builtin/{name}")).send().await;
    let page = page.unwrap();
    assert_eq!(page.status(), StatusCode::SEE_OTHER);
    assert!(
        page.headers()[header::LOCATION]
            .to_str()
            .unwrap()
            .ends_with(&name)
    );
}

async fn first(stream: &mut Response) -> String {
    let chunk = stream.chunk().await.unwrap().expect("the stream continues");
    String::from_utf8_lossy(&chunk).into_owned()
}

fn certified(folder: &Path) -> Certs {
    let certs = Certs::make();
    let server = certs.server();
    std::fs::copy(server.cert, folder.join("tls.crt")).unwrap();
    std::fs::copy(server.key, folder.join("tls.key")).unwrap();
    certs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_nginx_passes_users_forms_and_streams() {
    // Its own ports and certificate, and no IPv6, which the machine may lack; every other line of the file is used.
    let folder = tempfile::tempdir().unwrap();
    let (front, plain) = (free_port().await, free_port().await);
    let server = served(front).await;
    let certs = certified(folder.path());
    let shown = folder.path().display();
    let site = include_str!("../../../../docs/deploy/nginx.conf")
        .replace(
            "server 127.0.0.1:3000",
            &format!("server {}", server.serving.address),
        )
        .replace("listen [::]:443 ssl http2;", "")
        .replace("listen [::]:80;", "")
        .replace("listen 443 ssl", &format!("listen 127.0.0.1:{front} ssl"))
        .replace("listen 80", &format!("listen 127.0.0.1:{plain}"))
        .replace("Host $host;", "Host $http_host;")
        .replace("locks.example.com", "localhost")
        .replace("/var/log/nginx/", &format!("{shown}/"))
        .replace("/etc/leasehold/", &format!("{shown}/"));
    let user = if rustix::process::geteuid().is_root() {
        "user root;\n"
    } else {
        ""
    };
    let whole = format!(
        "{user}daemon off;\nmaster_process off;\npid {shown}/nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\nclient_body_temp_path {shown}/b;\n\
         proxy_temp_path {shown}/p;\nfastcgi_temp_path {shown}/f;\nuwsgi_temp_path {shown}/u;\nscgi_temp_path {shown}/s;\n{site}}}\n"
    );
    let config = folder.path().join("nginx.conf");
    std::fs::write(&config, whole).unwrap();
    let args = [
        "-e",
        "stderr",
        "-p",
        folder.path().to_str().unwrap(),
        "-c",
        config.to_str().unwrap(),
    ];
    let _nginx = started("nginx", &args, folder.path());
    speaks(front, &server, &certs, &folder.path().join("proxy.log")).await;
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let plain = client
        .get(format!("http://127.0.0.1:{plain}/locks"))
        .send()
        .await
        .unwrap();
    assert_eq!(plain.status(), StatusCode::PERMANENT_REDIRECT);
    // A link's secret is not in the log of the proxy.
    let link = client_to_proxy(&certs).get(format!("https://localhost:{front}/setup?link=planted-secret"));
    link.send().await.unwrap();
    eventually("the log has the page", || async {
        logged(folder.path()).contains("\"GET /setup HTTP/")
    })
    .await;
    assert!(!logged(folder.path()).contains("planted-secret"));
}

fn client_to_proxy(certs: &Certs) -> Client {
    client(&certs.ca(), [127, 0, 0, 2])
}

fn logged(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("leasehold.log")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_caddy_passes_users_forms_and_streams() {
    // With a certificate of its own instead of one from an authority of the internet, which the file shows in a comment.
    let folder = tempfile::tempdir().unwrap();
    let front = free_port().await;
    let server = served(front).await;
    let certs = certified(folder.path());
    let shown = folder.path().display();
    let site = include_str!("../../../../docs/deploy/Caddyfile")
        .replace("# With your own certificate: tls", "tls")
        .replace(
            "locks.example.com {",
            &format!("https://localhost:{front} {{\n\tbind 127.0.0.1"),
        )
        .replace("/etc/leasehold/", &format!("{shown}/"))
        .replace(
            "reverse_proxy 127.0.0.1:3000",
            &format!("reverse_proxy {}", server.serving.address),
        );
    let whole = format!(
        "{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {shown}/caddy\n}}\n{site}"
    );
    let config = folder.path().join("Caddyfile");
    std::fs::write(&config, whole).unwrap();
    let args = [
        "run",
        "--adapter",
        "caddyfile",
        "--config",
        config.to_str().unwrap(),
    ];
    let _caddy = started("caddy", &args, folder.path());
    speaks(front, &server, &certs, &folder.path().join("proxy.log")).await;
}

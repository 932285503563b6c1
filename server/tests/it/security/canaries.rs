//! Secrets of every kind are planted in a real server, which is then used and misused; none appears in its logs,
//! pages, answers, audit log or store.

pub(crate) mod server;

use std::path::Path;

use ::testkit::{Redis, RedisOptions, Throwaway};
use leasehold::http::routes::TABLE;
use reqwest::{Client, RequestBuilder, StatusCode, header, redirect};
use serde_json::{Value, json};

use self::server::{Server, output, serve, serve_setup};
use crate::support::form::Form as _;

const ADMIN: &str = "c4nary-admin-password";
const GUESS: &str = "c4nary-wrong-guess";
const CHOSEN: &str = "c4nary-chosen-password";
/// In the configuration: of backends that cannot be reached, and of the identity provider.
const CONFIGURED: [&str; 6] = [
    "c4nary-redis-watch",
    "c4nary-redis-unlock",
    "c4nary-postgres-watch",
    "c4nary-postgres-query",
    "c4nary-etcd",
    "c4nary-oidc-client",
];
/// With which a webhook is signed, the query of its address, and Slack's address. They are used, so the store has them.
const RECEIVER_SECRETS: [&str; 3] = [
    "c4nary-webhook-secret",
    "c4nary-webhook-query",
    "c4nary-slack-path",
];
/// The value of a program's Redis lock: it is a secret, because it allows a release.
const VALUE: &str = "c4nary-redis-value";

fn toml(folder: &Path, redis: &Redis) -> String {
    let [watch, unlock, postgres, query, etcd, oidc] = CONFIGURED;
    format!(
        r#"
listen = "127.0.0.1:0"
notify.allowed_networks = ["127.0.0.1/32"]
store = "sqlite:{store}"
log = "leasehold=trace,tower_http=trace,sqlx=debug,info"
[oidc]
issuer = "http://127.0.0.1:1"
client_id = "leasehold"
client_secret = "{oidc}"
role = [{{ value = "*", role = "viewer" }}]
[[backend]]
name = "live"
kind = "redis"
urls = ["{live}"]
patterns = ["*"]
poll_interval = "1s"
[[backend]]
name = "cache"
kind = "redis"
urls = ["redis://watcher:{watch}@127.0.0.1:1"]
unlock_url = "redis://unlocker:{unlock}@127.0.0.1:1"
[[backend]]
name = "orders"
kind = "postgres"
url = "postgres://watcher:{postgres}@127.0.0.1:1/orders"
unlock_url = "postgres://unlocker@127.0.0.1:1/orders?password={query}"
[[backend]]
name = "coord"
kind = "etcd"
endpoints = ["http://127.0.0.1:1"]
user = "watcher"
password = "{etcd}"
"#,
        store = folder.join("leasehold.db").display(),
        live = redis.url(),
    )
}

/// All output of the server, except the answers that show a secret once.
#[derive(Default)]
struct Responses(Vec<(String, String)>);

impl Responses {
    async fn record(&mut self, request: RequestBuilder, what: &str) -> Option<String> {
        let answer = request.send().await.unwrap();
        let cookie = answer.headers().get(header::SET_COOKIE).cloned();
        let mut text = String::new();
        for (name, value) in answer.headers() {
            if name != header::SET_COOKIE {
                text += &format!("{name}: {value:?}\n");
            }
        }
        text += &answer.text().await.unwrap();
        self.0.push((what.to_owned(), text));
        cookie.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned())
    }

    /// The server's files, except those written for it.
    fn note_files(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap() != "leasehold.toml" {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                self.0.push((path.display().to_string(), text));
            }
        }
    }
}

/// Shown once: the only answer that may hold it.
async fn shown(request: RequestBuilder, field: &str) -> String {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let body: Value = answer.json().await.unwrap();
    body[field]
        .as_str()
        .unwrap_or_else(|| panic!("{body}"))
        .to_owned()
}

/// Secrets that the server made during use, and shows once.
struct Made {
    session: String,
    token: String,
    link: String,
}

/// A user of the console, with a session.
struct User<'s> {
    http: Client,
    server: &'s Server,
    cookie: String,
}

impl User<'_> {
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.home)
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.at(path)).header(header::COOKIE, &self.cookie)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(self.at(path)).header(header::COOKIE, &self.cookie)
    }

    /// A token, another user, and the setup link for them.
    async fn make(&self) -> Made {
        let grants = json!([{"role": "operator"}]);
        let token = json!({"name": "billing", "grants": grants});
        let token = shown(self.post("/v1/tokens").json(&token), "token").await;
        let user = json!({"name": "bea", "grants": grants});
        let id = shown(self.post("/v1/users").json(&user), "id").await;
        let link = shown(self.post(&format!("/v1/users/{id}/link")), "link").await;
        Made {
            session: self.cookie.split_once('=').unwrap().1.to_owned(),
            token,
            link: link.rsplit('=').next().unwrap().to_owned(),
        }
    }

    /// Right and wrong, with every secret in the place where it belongs and in some where it does not.
    async fn misuse(&self, made: &Made, setup: &str, responses: &mut Responses) {
        let Made { token, link, .. } = made;
        let password = [("old", ADMIN), ("password", CHOSEN)];
        responses
            .record(self.post("/settings/password").form(&password), "a new password")
            .await;
        let weak = [("old", CHOSEN), ("password", "c4nary")];
        responses
            .record(self.post("/settings/password").form(&weak), "a weak password")
            .await;
        let users = || self.http.get(self.at("/v1/users"));
        responses
            .record(users().bearer_auth(format!("{token}x")), "a wrong token")
            .await;
        responses
            .record(users().bearer_auth(token), "too few rights")
            .await;
        // The page of a link holds it, for its form; the log must not.
        for path in [format!("/sign-in?link={link}"), format!("/setup?link={setup}")] {
            let _page = self.http.get(self.at(&path)).send().await.unwrap();
        }
        for what in ["a link", "a link again"] {
            responses
                .record(self.http.post(self.at("/sign-in")).form(&[("link", link)]), what)
                .await;
        }
        responses
            .record(self.http.get(self.at("/sign-in/oidc")), "a provider that is away")
            .await;
        let broken = self.post("/v1/tokens").body(format!("{{\"name\": {GUESS}"));
        responses.record(broken, "no JSON").await;
    }

    /// Receivers that cannot be reached, tried and changed.
    async fn read_streams(&self, responses: &mut Responses) {
        let [secret, query, path] = RECEIVER_SECRETS;
        let hook = json!({
            "name": "hook", "kind": "webhook", "urls": [format!("http://127.0.0.1:1/?{query}")], "secret": secret
        });
        let chat = json!({"name": "chat", "kind": "slack", "urls": [format!("http://127.0.0.1:1/{path}")]});
        for (what, receiver) in [("a webhook", &hook), ("slack", &chat), ("a webhook again", &hook)] {
            responses
                .record(self.post("/v1/receivers").json(receiver), what)
                .await;
        }
        for name in ["hook", "chat"] {
            let test = format!("/v1/receivers/{name}/test");
            responses.record(self.post(&test), &test).await;
            responses
                .record(self.post(&format!("/alerts/receivers/{name}/test")), name)
                .await;
            responses
                .record(self.get(&format!("/alerts/receivers/{name}")), "its page")
                .await;
        }
        let change = json!({"secret": secret, "urls": [format!("http://127.0.0.1:1/{path}")]});
        responses
            .record(
                self.http
                    .put(self.at("/v1/receivers/chat"))
                    .header(header::COOKIE, &self.cookie)
                    .json(&change),
                "a change",
            )
            .await;
    }

    /// Everything that can be read.
    async fn read_all(&self, responses: &mut Responses) {
        for path in TABLE.iter().filter(|row| row.method == "GET").map(|row| row.path) {
            // Streams do not end by themselves.
            if path.ends_with("/events") {
                continue;
            }
            let path = path
                .replace("{backend}", "live")
                .replace("{*resource}", "lock:a")
                .replace("{resource}", "lock:a")
                .replace(['{', '}', '*'], "");
            responses.record(self.get(&path), &path).await;
        }
    }
}

async fn sign_in<'s>(server: &'s Server, responses: &mut Responses) -> User<'s> {
    let http = Client::builder()
        .redirect(redirect::Policy::none())
        .build()
        .unwrap();
    let with = |password: &'static str| {
        let form = [("name", "root"), ("password", password)];
        http.post(format!("{}/sign-in", server.home)).form(&form)
    };
    responses.record(with(GUESS), "a wrong password").await;
    let cookie = responses.record(with(ADMIN), "signing in").await.unwrap();
    User { http, server, cookie }
}

async fn lock(redis: &Redis) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    set.arg("lock:a").arg(VALUE).arg("PX").arg(600_000);
    let () = set.query_async(&mut connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_planted_everywhere_and_found_nowhere() {
    // Seventeen: six configured, three passwords, a raw value, a session, a token, a link, a setup link, and three of
    // receivers, which the store alone has.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    lock(&redis).await;
    std::fs::write(folder.join("leasehold.toml"), toml(folder, &redis)).unwrap();
    let mut responses = Responses::default();
    responses
        .0
        .push(("check-config".to_owned(), output(folder, &["check-config"], "")));
    let setup = serve_setup(folder)
        .split("/setup#")
        .nth(1)
        .unwrap()
        .trim()
        .to_owned();
    let add = [
        "user",
        "add",
        "--name",
        "root",
        "--role",
        "admin",
        "--password-stdin",
    ];
    responses
        .0
        .push(("user add".to_owned(), output(folder, &add, ADMIN)));

    let server = serve(folder);
    let user = sign_in(&server, &mut responses).await;
    let made = user.make().await;
    user.misuse(&made, &setup, &mut responses).await;
    user.read_streams(&mut responses).await;
    user.read_all(&mut responses).await;
    responses.0.push(("the log".to_owned(), server.stop()));
    for format in ["csv", "json"] {
        let text = output(folder, &["audit", "export", "--format", format], "");
        responses.0.push((format!("the record as {format}"), text));
    }
    responses.note_files(folder);

    let mut planted: Vec<String> = CONFIGURED.iter().map(|secret| (*secret).to_owned()).collect();
    planted.extend([ADMIN, GUESS, CHOSEN, VALUE].map(str::to_owned));
    planted.extend([made.session, made.token, made.link, setup]);
    assert!(
        planted.len() >= 12 && planted.iter().all(|secret| secret.len() > 10),
        "{planted:?}"
    );
    assert!(responses.0.len() > 45, "{}", responses.0.len());
    for (what, text) in responses.0.iter().filter(|(what, _)| !what.contains(".db")) {
        for secret in RECEIVER_SECRETS {
            assert!(!text.contains(secret), "{secret} stands in {what}:\n{text}");
        }
    }
    for (what, text) in &responses.0 {
        // A command that succeeds may print nothing.
        assert!(
            !text.is_empty() || what.contains(".db") || what == "user add",
            "{what} says nothing"
        );
        for secret in &planted {
            assert!(
                !text.contains(secret.as_str()),
                "{secret} stands in {what}:\n{text}"
            );
        }
    }
}

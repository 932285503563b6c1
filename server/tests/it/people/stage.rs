//! A guarded server over a throwaway Redis, its people, and browsers and programs that talk to it.

use std::sync::{Arc, Mutex};

use domain::access::{Grant, Role};
use domain::audit::{AuditQuery, AuditRow};
use domain::names::BackendName;
use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, Config, FileSource, HistoryConfig, Sources};
use leasehold::db::Db;
use leasehold::identity::{Identity, NewPerson, NewToken, Secret, Who};
use leasehold::serve::{self, Serving, Setup};
use leasehold::throwaway::{Redis, RedisOptions, Throwaway};
use reqwest::{Client, Method, Response, StatusCode, header, redirect};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const PASSWORD: &str = "correct horse battery";

pub(crate) struct Stage {
    pub(crate) serving: Serving,
    pub(crate) store: String,
    pub(crate) redis: Redis,
    _stop: DropGuard,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
        let text = format!(
            "[notify]\nallow = [\"127.0.0.1/32\"]\n[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{}\"]\npatterns = [\"*\"]\npoll = \"200ms\"\n",
            redis.port()
        );
        let file = FileSource {
            path: "leasehold.toml".into(),
            text,
        };
        let config = Config::load(&Sources {
            file: Some(file),
            ..Sources::default()
        })
        .unwrap();
        let stop = CancellationToken::new();
        let setup = Setup {
            listen: "127.0.0.1:0".parse().unwrap(),
            store: store.clone().into(),
            lease: config.lease,
            backends: config.backends,
            access: AccessConfig::default(),
            history: HistoryConfig::default(),
            notify: config.notify,
            clock: Clock::start(),
            stop: stop.clone(),
        };
        Self {
            serving: serve::start(setup).await.unwrap(),
            store,
            redis,
            _stop: stop.drop_guard(),
            _folder: folder,
        }
    }

    pub(crate) fn identity(&self) -> &Arc<Identity> {
        &self.serving.identity
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving.address)
    }

    /// Somebody with a password.
    pub(crate) async fn person(&self, name: &str, grants: Vec<Grant>) -> String {
        let new = NewPerson {
            name: name.to_owned(),
            grants,
            password: Some(PASSWORD.into()),
        };
        self.identity()
            .add_person(&Who::system("test"), new)
            .await
            .unwrap()
    }

    pub(crate) async fn token(&self, name: &str, grants: Vec<Grant>) -> Secret {
        let new = NewToken {
            name: name.to_owned(),
            grants,
            expires_in: None,
        };
        self.identity()
            .create_token(&Who::system("test"), new)
            .await
            .unwrap()
    }

    /// All of the record, newest first, as another reader of the store finds it.
    pub(crate) async fn record(&self) -> Vec<AuditRow> {
        let db = Db::open(&self.store).await.unwrap();
        let audit = Audit::new(db, Clock::start(), Heads::default());
        let query = AuditQuery {
            limit: 1_000,
            ..AuditQuery::default()
        };
        audit.page(&query).await.unwrap().rows
    }

    /// Refused anonymous requests with this outcome, as the entries of the record count them once a minute is over.
    pub(crate) async fn counted(&self, outcome: &str) -> u64 {
        let rows = self.record().await;
        let times = |row: &AuditRow| {
            let after = row.after.as_deref().unwrap_or("{}");
            let after: Value = serde_json::from_str(after).unwrap();
            after["times"].as_u64().unwrap_or(1)
        };
        rows.iter().filter(|row| row.outcome == outcome).map(times).sum()
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser {
            client: Client::builder()
                .redirect(redirect::Policy::none())
                .build()
                .unwrap(),
            base: self.url(""),
            cookie: Mutex::default(),
        }
    }

    pub(crate) async fn signed_in(&self, name: &str) -> Browser {
        let browser = self.browser();
        let answer = browser
            .post("/sign-in", &[("name", name), ("password", PASSWORD)])
            .await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        browser
    }
}

/// Keeps the cookie, follows nothing, and says where its requests come from as a browser does.
pub(crate) struct Browser {
    client: Client,
    base: String,
    cookie: Mutex<String>,
}

impl Browser {
    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        self.post_from("same-origin", path, form).await
    }

    pub(crate) async fn post_from(&self, site: &str, path: &str, form: &[(&str, &str)]) -> Response {
        self.post_with(("sec-fetch-site", site), path, form).await
    }

    pub(crate) async fn post_with(
        &self,
        header: (&str, &str),
        path: &str,
        form: &[(&str, &str)],
    ) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        self.send(
            Method::POST,
            path,
            &[
                header,
                ("content-type", "application/x-www-form-urlencoded"),
                ("body", &body),
            ],
        )
        .await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, parts: &[(&str, &str)]) -> Response {
        let cookie = self.cookie.lock().unwrap().clone();
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header(header::COOKIE, cookie);
        for (name, value) in parts {
            request = match *name {
                "body" => request.body((*value).to_owned()),
                name => request.header(name, *value),
            };
        }
        let answer = request.send().await.unwrap();
        if let Some(set) = answer.headers().get(header::SET_COOKIE) {
            let value = set.to_str().unwrap().split(';').next().unwrap();
            value.clone_into(&mut self.cookie.lock().unwrap());
        }
        answer
    }
}

pub(crate) fn on(role: Role, backend: Option<&str>, prefix: Option<&str>) -> Vec<Grant> {
    vec![Grant {
        role,
        backend: backend.map(|name| BackendName::parse(name).unwrap()),
        prefix: prefix.map(str::to_owned),
    }]
}

pub(crate) async fn acquire(stage: &Stage, token: &Secret, resource: &str) -> (StatusCode, Value) {
    let body = json!({"resource": resource, "ownerId": "w", "ttlSeconds": 30});
    call(
        Client::new().post(stage.url("/v1/locks/acquire")).json(&body),
        token,
    )
    .await
}

pub(crate) async fn get(stage: &Stage, token: &Secret, path: &str) -> (StatusCode, Value) {
    call(Client::new().get(stage.url(path)), token).await
}

pub(crate) async fn call(request: reqwest::RequestBuilder, token: &Secret) -> (StatusCode, Value) {
    let answer = request.bearer_auth(token.expose()).send().await.unwrap();
    let status = answer.status();
    (status, answer.json().await.unwrap_or_default())
}

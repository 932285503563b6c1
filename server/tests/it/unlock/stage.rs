//! A guarded server, people and programs who ask it, and leases and keys to unlock.

use std::time::Duration;

use domain::access::{Grant, Role};
use domain::audit::{AuditQuery, AuditRow};
use domain::names::BackendName;
use leasehold::audit::{Audit, Heads, Origin};
use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, Config, FileSource, HistoryConfig, Sources};
use leasehold::db::Db;
use leasehold::identity::{Identity, NewPerson, NewToken, Who};
use leasehold::serve::{self, Serving, Setup};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use super::home::Home;
use crate::support::eventually::eventually;

pub(crate) const REASON: &str = "stuck since 03:00, its owner agrees";

pub(crate) struct Stage {
    pub(crate) home: Home,
    toml: String,
    pub(crate) serving: Serving,
    stop: CancellationToken,
    http: Client,
}

/// How somebody proves who they are.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    Token(String),
    /// A person's browser, on our own page.
    Browser(String),
}

/// A lock as the inventory shows it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) backend: &'static str,
    pub(crate) resource: String,
    pub(crate) generation: String,
    /// Of a built-in lease.
    pub(crate) lease: String,
}

pub(crate) type Reply = (u16, Value);

impl Stage {
    /// The lease service alone.
    pub(crate) async fn start() -> Self {
        Self::on(Home::sqlite(), "").await
    }

    /// With the backends of this configuration.
    pub(crate) async fn on(home: Home, toml: &str) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let (serving, stop) = run(&home, toml).await;
        let http = Client::builder()
            .timeout(Duration::from_secs(70))
            .build()
            .unwrap();
        Self {
            home,
            toml: toml.to_owned(),
            serving,
            stop,
            http,
        }
    }

    /// Another server on the same store; the first one goes.
    pub(crate) async fn again(self) -> Self {
        let Self {
            home,
            toml,
            serving,
            stop,
            http,
        } = self;
        stop.cancel();
        serving.ended().await;
        let (serving, stop) = run(&home, &toml).await;
        Self {
            home,
            toml,
            serving,
            stop,
            http,
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.serving.identity
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving.address)
    }

    pub(crate) async fn token(&self, name: &str, grants: Vec<Grant>) -> Caller {
        self.token_by(&Who::system("test"), name, grants).await
    }

    pub(crate) async fn token_by(&self, who: &Who, name: &str, grants: Vec<Grant>) -> Caller {
        let new = NewToken {
            name: name.to_owned(),
            grants,
            expires_in: None,
        };
        let secret = self.identity().create_token(who, new).await.unwrap();
        Caller::Token(secret.expose().to_owned())
    }

    pub(crate) async fn operator(&self) -> Caller {
        self.token("operator", on(Role::Operator, None, None)).await
    }

    /// Somebody who signed in a moment ago.
    pub(crate) async fn person(&self, name: &str, grants: Vec<Grant>) -> Caller {
        let new = NewPerson {
            name: name.to_owned(),
            grants,
            password: None,
        };
        self.identity()
            .add_person(&Who::system("test"), new)
            .await
            .unwrap();
        self.sign_in(name).await
    }

    /// By a link: hashing a password is slow on purpose.
    pub(crate) async fn sign_in(&self, name: &str) -> Caller {
        let identity = self.identity();
        let person = identity.directory().person_named(name).unwrap().id.clone();
        let link = identity.person_link(&Who::system("test"), &person).await.unwrap();
        let signed_in = identity.open_link(link.expose(), &Origin::default()).await;
        Caller::Browser(signed_in.unwrap().secret.expose().to_owned())
    }

    pub(crate) fn request(&self, caller: &Caller, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, self.url(path));
        match caller {
            Caller::Token(secret) => request.bearer_auth(secret),
            Caller::Browser(secret) => request
                .header("cookie", format!("leasehold={secret}"))
                .header("sec-fetch-site", "same-origin"),
        }
    }

    pub(crate) async fn get(&self, caller: &Caller, path: &str) -> Reply {
        answered(self.request(caller, Method::GET, path)).await
    }

    pub(crate) async fn post(&self, caller: &Caller, path: &str, body: &Value) -> Reply {
        answered(self.request(caller, Method::POST, path).json(body)).await
    }

    pub(crate) async fn acquire(&self, caller: &Caller, resource: &str, owner: &str) -> Value {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 600});
        let (status, lease) = self.post(caller, "/v1/locks/acquire", &body).await;
        assert_eq!((status, &lease["acquired"]), (200, &json!(true)), "{lease}");
        lease
    }

    /// A built-in lease, taken and seen by the inventory.
    pub(crate) async fn hold(&self, caller: &Caller, resource: &str) -> Held {
        let lease = self.acquire(caller, resource, "worker-7").await;
        let lease = lease["leaseId"].as_str().unwrap().to_owned();
        let mut held = self.seen(caller, "builtin", resource).await;
        held.lease = lease;
        held
    }

    /// Until the inventory shows it.
    pub(crate) async fn seen(&self, caller: &Caller, backend: &'static str, resource: &str) -> Held {
        let name: String = url::form_urlencoded::byte_serialize(resource.as_bytes()).collect();
        let path = format!("/v1/inventory/{backend}/{}", name.replace('+', "%20"));
        let found = std::cell::RefCell::new(Value::Null);
        eventually("the inventory shows it", async || {
            let (status, lock) = self.get(caller, &path).await;
            *found.borrow_mut() = lock;
            status == 200
        })
        .await;
        Held {
            backend,
            resource: resource.to_owned(),
            generation: found.into_inner()["generation"].as_str().unwrap().to_owned(),
            lease: String::new(),
        }
    }

    pub(crate) async fn begin(&self, caller: &Caller, held: &Held) -> Reply {
        self.begin_for(caller, held, REASON).await
    }

    pub(crate) async fn begin_for(&self, caller: &Caller, held: &Held, reason: &str) -> Reply {
        let body = json!({
            "backend": held.backend, "resource": held.resource, "generation": held.generation, "reason": reason
        });
        self.post(caller, "/v1/unlocks", &body).await
    }

    /// The id of a new intent. A machine under load may show its backends as stale for a moment.
    pub(crate) async fn begun(&self, caller: &Caller, held: &Held) -> String {
        let id = std::cell::RefCell::new(String::new());
        eventually("an intent", async || {
            let (status, unlock) = self.begin(caller, held).await;
            assert!(
                status == 201 || unlock["code"] == "backend_stale",
                "{status} {unlock}"
            );
            *id.borrow_mut() = unlock["unlockId"].as_str().unwrap_or_default().to_owned();
            status == 201
        })
        .await;
        id.into_inner()
    }

    pub(crate) async fn confirm(&self, caller: &Caller, id: &str, name: &str) -> Reply {
        self.post(
            caller,
            &format!("/v1/unlocks/{id}/confirm"),
            &json!({"resource": name}),
        )
        .await
    }

    pub(crate) async fn act(&self, caller: &Caller, id: &str, step: &str) -> Reply {
        self.post(caller, &format!("/v1/unlocks/{id}/{step}"), &json!({}))
            .await
    }

    pub(crate) async fn state(&self, caller: &Caller, id: &str) -> Value {
        let (status, unlock) = self.get(caller, &format!("/v1/unlocks/{id}")).await;
        assert_eq!(status, 200, "{unlock}");
        unlock
    }

    pub(crate) async fn is_held(&self, caller: &Caller, held: &Held) -> bool {
        // By name and token: the id answers the principal of the lease alone.
        let path = format!("/v1/resources/{}", held.resource.replace('/', "%2F"));
        let (_, resource) = self.get(caller, &path).await;
        let grant = format!("token:{}:", resource["holder"]["fencingToken"]);
        held.generation.starts_with(&grant)
    }

    pub(crate) async fn audit(&self) -> Audit {
        let db = Db::open(&self.home.url).await.unwrap();
        Audit::new(db, Clock::start(), Heads::default())
    }

    /// Rows about forced unlocks, oldest first; the chain is whole.
    pub(crate) async fn record(&self) -> Vec<AuditRow> {
        let audit = self.audit().await;
        let heads = std::collections::BTreeMap::new();
        let verified = audit.verify(&heads, |_| {}).await.unwrap();
        assert!(verified.is_ok(), "{verified:?}");
        let mut query = AuditQuery {
            limit: 1_000,
            action: Some(domain::audit::Action::ForceUnlock),
            ..AuditQuery::default()
        };
        // All pages: a long run writes more than one.
        let mut rows = Vec::new();
        loop {
            let page = audit.page(&query).await.unwrap();
            rows.extend(page.rows);
            let Some(next) = page.next_cursor else { break };
            query.before_seq = Some(next.parse().unwrap());
        }
        rows.reverse();
        rows
    }

    /// Phase and outcome of the rows of one unlock, in order.
    pub(crate) async fn told(&self, id: &str) -> Vec<String> {
        let rows = self.record().await.into_iter();
        rows.filter(|row| row.unlock_id.as_deref() == Some(id))
            .map(|row| format!("{} {}", row.phase, row.outcome))
            .collect()
    }
}

pub(crate) fn on(role: Role, backend: Option<&str>, prefix: Option<&str>) -> Vec<Grant> {
    vec![Grant {
        role,
        backend: backend.map(|name| BackendName::parse(name).unwrap()),
        prefix: prefix.map(str::to_owned),
    }]
}

/// Status and code of a problem.
pub(crate) fn code(reply: &Reply) -> (u16, &str) {
    (reply.0, reply.1["code"].as_str().unwrap_or_default())
}

/// Status and state of an unlock.
pub(crate) fn state(reply: &Reply) -> (u16, &str) {
    (reply.0, reply.1["state"].as_str().unwrap_or_default())
}

pub(crate) async fn answered(request: RequestBuilder) -> Reply {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

async fn run(home: &Home, toml: &str) -> (Serving, CancellationToken) {
    let file = FileSource {
        path: "leasehold.toml".into(),
        text: toml.to_owned(),
    };
    let config = Config::load(&Sources {
        file: Some(file),
        ..Sources::default()
    })
    .unwrap();
    let stop = CancellationToken::new();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: home.url.clone().into(),
        lease: config.lease,
        backends: config.backends,
        access: AccessConfig::default(),
        history: HistoryConfig::default(),
        notify: config.notify,
        clock: Clock::start(),
        stop: stop.clone(),
    };
    (serve::start(setup).await.unwrap(), stop)
}

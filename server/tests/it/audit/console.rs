//! A guarded server over a throwaway store, and readers of its record.

use std::collections::BTreeMap;

use domain::access::{Grant, Role};
use domain::names::BackendName;
use leasehold::audit::{Actor, Audit, Entry, Origin};
use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, Config, Sources};
use leasehold::identity::{NewPerson, NewToken, Who};
use leasehold::serve::{self, Serving, Setup};
use reqwest::{Client, Method, RequestBuilder, Response, redirect};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::stage::Home;

pub(super) struct Console {
    pub(super) home: Home,
    pub(super) serving: Serving,
    /// The same record, from beside the server.
    pub(super) audit: Audit,
    stop: CancellationToken,
    http: Client,
}

/// How somebody proves who they are.
#[derive(Debug, Clone)]
pub(super) enum Caller {
    Token(String),
    Browser(String),
}

impl Console {
    pub(super) async fn on(home: Home) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let (serving, stop) = run(&home).await;
        Self {
            audit: home.open().await,
            home,
            serving,
            stop,
            http: Client::builder()
                .redirect(redirect::Policy::none())
                .build()
                .unwrap(),
        }
    }

    /// Another server on the same store; the first one goes.
    pub(super) async fn again(self) -> Self {
        self.stop.cancel();
        self.serving.ended().await;
        Self::on(self.home).await
    }

    pub(super) async fn token(&self, name: &str, grants: Vec<Grant>) -> Caller {
        let new = NewToken {
            name: name.to_owned(),
            grants,
            expires_in: None,
        };
        let who = Who::system("test");
        let secret = self.serving.identity.create_token(&who, new).await.unwrap();
        Caller::Token(secret.expose().to_owned())
    }

    pub(super) async fn auditor(&self) -> Caller {
        self.token("auditor", on(Role::Auditor, None, None)).await
    }

    /// Somebody who signed in a moment ago, by a link.
    pub(super) async fn person(&self, name: &str, grants: Vec<Grant>) -> Caller {
        let (identity, who) = (&self.serving.identity, Who::system("test"));
        let new = NewPerson {
            name: name.to_owned(),
            grants,
            password: None,
        };
        let id = identity.add_person(&who, new).await.unwrap();
        let link = identity.person_link(&who, &id).await.unwrap();
        let signed_in = identity.open_link(link.expose(), &Origin::default()).await;
        Caller::Browser(signed_in.unwrap().secret.expose().to_owned())
    }

    pub(super) fn request(&self, caller: &Caller, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.serving.address);
        let request = self.http.request(method, url);
        match caller {
            Caller::Token(secret) => request.bearer_auth(secret),
            Caller::Browser(secret) => request
                .header("cookie", format!("leasehold={secret}"))
                .header("sec-fetch-site", "same-origin"),
        }
    }

    pub(super) async fn send(&self, caller: &Caller, method: Method, path: &str) -> Response {
        self.request(caller, method, path).send().await.unwrap()
    }

    pub(super) async fn get(&self, caller: &Caller, path: &str) -> (u16, Value) {
        let answer = self.send(caller, Method::GET, path).await;
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// As it came.
    pub(super) async fn text(&self, caller: &Caller, path: &str) -> (u16, String) {
        let answer = self.send(caller, Method::GET, path).await;
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(super) async fn post(&self, caller: &Caller, path: &str, body: &Value) -> (u16, Value) {
        let request = self.request(caller, Method::POST, path).json(body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// Numbers of the rows of `GET /v1/audit` with this query.
    pub(super) async fn ids(&self, caller: &Caller, query: &str) -> Vec<i64> {
        let (status, page) = self.get(caller, &format!("/v1/audit?{query}")).await;
        assert_eq!(status, 200, "{query}: {page}");
        ids(&page)
    }

    /// The chain, with all exported heads.
    pub(super) async fn is_whole(&self) -> bool {
        self.audit.verify(&BTreeMap::new(), |_| {}).await.unwrap().is_ok()
    }
}

pub(super) fn ids(page: &Value) -> Vec<i64> {
    let rows = page["rows"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

pub(super) fn on(role: Role, backend: Option<&str>, prefix: Option<&str>) -> Vec<Grant> {
    vec![Grant {
        role,
        backend: backend.map(|name| BackendName::parse(name).unwrap()),
        prefix: prefix.map(str::to_owned),
    }]
}

pub(super) fn actor(id: &str, name: &str) -> Actor {
    Actor {
        id: id.to_owned(),
        name: name.to_owned(),
        role: Some("operator".to_owned()),
    }
}

/// About this lock, by somebody, with everything that a row can have.
pub(super) fn about(backend: &str, resource: &str) -> Entry {
    use domain::audit::Action;
    let origin = Origin {
        ip: Some([192, 0, 2, 7].into()),
        user_agent: Some("curl/8".into()),
        request_id: Some("r-1".into()),
        trace_id: Some("t-1".into()),
    };
    Entry {
        subject: leasehold::audit::Subject {
            backend: Some(backend.to_owned()),
            source: Some("key".to_owned()),
            resource: Some(resource.to_owned()),
            unlock_id: Some("u_1".to_owned()),
        },
        reason: Some("stuck since 03:00".to_owned()),
        approver_id: Some("p_bob".to_owned()),
        before: Some(serde_json::json!({"ownerId": "w-1"})),
        after: Some(serde_json::json!({"state": "released"})),
        ..Entry::new(Action::ForceUnlock, "released", actor("p_ada", "ada"), origin)
    }
}

async fn run(home: &Home) -> (Serving, CancellationToken) {
    let config = Config::load(&Sources::default()).unwrap();
    let stop = CancellationToken::new();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: home.url.clone().into(),
        lease: config.lease,
        backends: config.backends,
        access: AccessConfig::default(),
        history: leasehold::config::HistoryConfig::default(),
        notify: leasehold::config::NotifyConfig::default(),
        clock: Clock::start(),
        stop: stop.clone(),
    };
    (serve::start(setup).await.unwrap(), stop)
}

//! A whole Leasehold server inside the test, on a free port: `TestServer::builder().config(toml).start()`.
//!
//! Helpers of one topic are `impl TestServer` blocks in the folder of the topic.

use domain::access::{Grant, Role};
use domain::audit::{AuditEntry, AuditQuery};
use domain::names::BackendName;
use leasehold::audit::{Audit, ChainCheckpoints, Origin};
use leasehold::identity::{Identity, NewToken, NewUser, Principal};
use leasehold::serve::Serving;
use reqwest::Client;
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::Value;
use testkit::{Redis, eventually};
use tokio_util::sync::DropGuard;

use super::browser::Browser;
use super::caller::TestCaller;
use super::server_builder::ServerBuilder;
use super::store::Store;

/// Of every user with a password.
pub(crate) const PASSWORD: &str = "correct horse battery";

pub(crate) struct TestServer {
    pub(crate) serving: Serving,
    pub(crate) store: Store,
    /// Sends the operator's token where the builder made one; else it is anonymous and follows no redirect.
    pub(crate) client: Client,
    /// Sends no credentials.
    pub(super) anonymous: Client,
    pub(super) operator: Option<TestCaller>,
    pub(super) redis: Option<Redis>,
    pub(super) builder: ServerBuilder,
    pub(super) stop: DropGuard,
}

impl TestServer {
    pub(crate) fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// With the default configuration.
    pub(crate) async fn start() -> Self {
        Self::builder().start().await
    }

    /// Another server on the same store; this one ends first.
    pub(crate) async fn restart(self) -> Self {
        let (builder, store) = (self.builder.clone(), self.stop().await);
        builder.start_on(store).await
    }

    /// Stops the server and returns its store.
    pub(crate) async fn stop(self) -> Store {
        drop(self.stop);
        assert_eq!(self.serving.ended().await, None, "the server ended by itself");
        self.store
    }

    pub(crate) fn identity(&self) -> &std::sync::Arc<Identity> {
        self.serving.identity()
    }

    pub(crate) fn port(&self) -> u16 {
        self.serving.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving.address)
    }

    /// The token that [`Self::client`] sends.
    pub(crate) fn operator_token(&self) -> &str {
        let operator = self.operator.as_ref();
        operator.expect("a server with an operator").secret()
    }

    pub(crate) const fn redis(&self) -> &Redis {
        self.redis.as_ref().expect("a server with a Redis")
    }

    /// An API token with these grants.
    pub(crate) async fn token(&self, name: &str, grants: Vec<Grant>) -> TestCaller {
        self.token_by(&Principal::system("test"), name, grants).await
    }

    pub(crate) async fn token_by(&self, who: &Principal, name: &str, grants: Vec<Grant>) -> TestCaller {
        let new = NewToken {
            name: name.to_owned(),
            grants,
            expires_in: None,
        };
        let secret = self.identity().create_token(who, new).await.unwrap();
        secret.into()
    }

    /// An API token of an operator of everything.
    pub(crate) async fn operator(&self) -> TestCaller {
        self.token("operator", on(Role::Operator, None, None)).await
    }

    /// An API token with this role on everything, under a name of its own.
    pub(crate) async fn token_of(&self, role: Role) -> TestCaller {
        let secret = super::caller::token(&self.serving, role).await;
        secret.into()
    }

    /// A user with [`PASSWORD`]; returns the id.
    pub(crate) async fn add_user(&self, name: &str, grants: Vec<Grant>) -> String {
        self.add(name, grants, Some(PASSWORD.into())).await
    }

    async fn add(&self, name: &str, grants: Vec<Grant>, password: Option<secrecy::SecretString>) -> String {
        let new = NewUser {
            name: name.to_owned(),
            grants,
            password,
        };
        let who = Principal::system("test");
        self.identity().add_user(&who, new).await.unwrap()
    }

    /// A user without a password, signed in by a link: hashing a password is slow on purpose.
    pub(crate) async fn user(&self, name: &str, grants: Vec<Grant>) -> TestCaller {
        self.add(name, grants, None).await;
        self.sign_in(name).await
    }

    pub(crate) fn user_id(&self, name: &str) -> String {
        let directory = self.identity().directory();
        directory.user_named(name).unwrap().id.clone()
    }

    /// A new session of this user, by a link.
    pub(crate) async fn sign_in(&self, name: &str) -> TestCaller {
        let (identity, user) = (self.identity(), self.user_id(name));
        let link = identity.user_link(&Principal::system("test"), &user).await;
        self.open_link(link.unwrap().expose()).await
    }

    pub(crate) async fn open_link(&self, link: &str) -> TestCaller {
        let signed_in = self.identity().open_link(link, &Origin::default()).await;
        TestCaller::Session(signed_in.unwrap().secret.expose().to_owned())
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.url(""))
    }

    /// A browser that signs in with [`PASSWORD`].
    pub(crate) async fn signed_in(&self, name: &str) -> Browser {
        let browser = self.browser();
        let form = [("name", name), ("password", PASSWORD)];
        let answer = browser.post("/sign-in", &form).await;
        assert_eq!(answer.status(), 303);
        browser
    }

    /// As the operator.
    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        self.get(path).await.json().await.unwrap()
    }

    /// Until the server ends by itself; returns why.
    pub(crate) async fn ended(self) -> Option<String> {
        self.serving.ended().await
    }

    /// Until every backend was scanned once.
    pub(crate) async fn ready(&self) {
        eventually("every backend was scanned once", || async {
            self.get("/readyz").await.status() == 200
        })
        .await;
    }

    /// Until `/v1/inventory` with this query satisfies `check`; returns the page.
    pub(crate) async fn inventory_where(&self, query: &str, check: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/inventory?{query}");
        let found = std::cell::RefCell::new(Value::Null);
        eventually(&format!("{path} as expected"), || async {
            let page = self.json(&path).await;
            let fits = check(&page);
            found.replace(page);
            fits
        })
        .await;
        found.into_inner()
    }

    /// The audit log through a connection of its own.
    pub(crate) async fn audit(&self) -> Audit {
        let db = Db::open(&self.store.url).await.unwrap();
        Audit::new(db, Clock::start(), ChainCheckpoints::default())
    }

    /// Audit entries, newest first, 1,000 at most.
    pub(crate) async fn audit_entries(&self) -> Vec<AuditEntry> {
        let query = AuditQuery {
            limit: 1_000,
            ..AuditQuery::default()
        };
        self.audit().await.page(&query).await.unwrap().rows
    }
}

/// One grant, on everything unless limited.
pub(crate) fn on(role: Role, backend: Option<&str>, prefix: Option<&str>) -> Vec<Grant> {
    vec![Grant {
        role,
        backend: backend.map(|name| BackendName::parse(name).unwrap()),
        prefix: prefix.map(str::to_owned),
    }]
}

//! A whole Leasehold server inside the test, on a free port: `TestServer::builder().config(toml).start()`.
//!
//! Helpers of one topic are `impl TestServer` blocks in the folder of the topic.

use std::net::SocketAddr;
use std::time::Duration;

use ::config::{BackendConfig, Config, ConfigSources, FileSource};
use app::session::TourLinks;
use domain::access::{Grant, Role};
use domain::audit::{AuditEntry, AuditQuery};
use domain::names::BackendName;
use domain::waits::identity::IdentityRule;
use leasehold::audit::{Audit, ChainCheckpoints, Origin};
use leasehold::http::DemoConsole;
use leasehold::identity::{Identity, NewToken, NewUser, Principal};
use leasehold::serve::{self, ServeError, Serving, Setup};
use reqwest::{Client, redirect};
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::browser::Browser;
use super::caller::{TestCaller, bearer};
use super::store::Store;
use ::testkit::{Redis, RedisOptions, Throwaway};
use testkit::eventually;

/// Of every user with a password.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Of a client; some requests wait for a minute.
const PATIENCE: Duration = Duration::from_secs(70);

pub(crate) struct TestServer {
    pub(crate) serving: Serving,
    pub(crate) store: Store,
    /// Sends the operator's token where the builder made one; else it is anonymous and follows no redirect.
    pub(crate) client: Client,
    /// Sends no credentials.
    pub(super) anonymous: Client,
    operator: Option<TestCaller>,
    redis: Option<Redis>,
    builder: ServerBuilder,
    stop: DropGuard,
}

/// Options of a server; each has a default.
#[derive(Clone)]
pub(crate) struct ServerBuilder {
    toml: String,
    listen: Option<SocketAddr>,
    lease: Option<lease::LeaseConfig>,
    backends: Vec<BackendConfig>,
    identity_rules: Vec<IdentityRule>,
    has_operator: bool,
    /// `poll_interval` of the Redis; `None`: without a Redis.
    redis_polls: Option<&'static str>,
    /// The command line for another sign-in link.
    demo: Option<String>,
}

impl ServerBuilder {
    /// The text of its `leasehold.toml`.
    pub(crate) fn config(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.toml);
        self
    }

    /// Instead of a free port of loopback.
    pub(crate) fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Instead of `[lease]` in the text.
    pub(crate) fn lease(mut self, config: lease::LeaseConfig) -> Self {
        self.lease = Some(config);
        self
    }

    /// As `leasehold demo` serves it, with this command line for another sign-in link.
    pub(crate) fn demo(mut self, link_command: &str) -> Self {
        self.demo = Some(link_command.to_owned());
        self
    }

    /// Besides those in the text.
    pub(crate) fn backends(mut self, backends: Vec<BackendConfig>) -> Self {
        self.backends = backends;
        self
    }

    /// Besides those in the text.
    pub(crate) fn identity_rules(mut self, rules: Vec<IdentityRule>) -> Self {
        self.identity_rules = rules;
        self
    }

    /// With an API token of an operator of everything, which [`TestServer::client`] sends.
    pub(crate) fn operator(mut self) -> Self {
        self.has_operator = true;
        self
    }

    /// With an empty Redis as the backend `cache`, whose keys are all locks.
    pub(crate) fn redis(self) -> Self {
        self.redis_polled_every("200ms")
    }

    /// The same with another interval: a row is stale after two.
    pub(crate) fn redis_polled_every(mut self, interval: &'static str) -> Self {
        self.redis_polls = Some(interval);
        self
    }

    /// On an empty SQLite store.
    pub(crate) async fn start(self) -> TestServer {
        self.start_on(Store::sqlite()).await
    }

    pub(crate) async fn start_on(self, store: Store) -> TestServer {
        Box::pin(self.try_start_on(store)).await.unwrap()
    }

    pub(crate) async fn try_start_on(self, store: Store) -> Result<TestServer, ServeError> {
        // Another test of this process may have been first.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let (mut redis, mut cache) = (None, String::new());
        if let Some(interval) = self.redis_polls {
            let started = redis.insert(Throwaway::redis(RedisOptions::default()).await.unwrap());
            cache = cache_backend(started, interval);
        }
        let mut config = load_config(&format!("{}{cache}", self.toml)).unwrap();
        config.backends.extend(self.backends.clone());
        config.identity_rules.extend(self.identity_rules.clone());
        // Tests wait for resolved alerts: without a pause, unless the text has one.
        if config.notify.group_interval == ::config::notify::GROUP_INTERVAL_DEFAULT {
            config.notify.group_interval = Duration::ZERO;
        }
        let has_address = config.listen != ::config::LISTEN_DEFAULT;
        let listen = self.listen.or(has_address.then_some(config.listen));
        let stop = CancellationToken::new();
        let setup = Setup {
            listen: listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))),
            store: store.url.clone().into(),
            lease: self.lease.clone().unwrap_or(config.lease),
            backends: config.backends,
            identity_rules: config.identity_rules,
            access: config.access,
            history: config.history,
            notify: config.notify,
            demo: self.demo.clone().map(demo_console),
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let serving = Box::pin(serve::start(setup)).await?;
        let mut server = TestServer {
            serving,
            store,
            client: client().build().unwrap(),
            anonymous: client().build().unwrap(),
            operator: None,
            redis,
            stop: stop.drop_guard(),
            builder: self,
        };
        if server.builder.has_operator {
            let operator = server.token_of(Role::Operator).await;
            let headers = bearer(operator.secret());
            server.client = Client::builder()
                .default_headers(headers)
                .timeout(PATIENCE)
                .build()
                .unwrap();
            server.operator = Some(operator);
        }
        Ok(server)
    }
}

fn demo_console(link_command: String) -> DemoConsole {
    let tour = TourLinks {
        find: "/locks?q=payout".to_owned(),
        understand: "/locks/builtin/close".to_owned(),
        break_safely: "/unlock/builtin/mail".to_owned(),
        alert: "/alerts/rules/long_held".to_owned(),
    };
    DemoConsole::new(link_command, tour)
}

fn cache_backend(redis: &Redis, interval: &str) -> String {
    let url = format!("redis://127.0.0.1:{}", redis.port());
    format!(
        "\n[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{url}\"]\npatterns = [\"*\"]\npoll_interval = \"{interval}\"\n"
    )
}

/// Follows no redirect, so that tests see the original answer.
fn client() -> reqwest::ClientBuilder {
    Client::builder()
        .redirect(redirect::Policy::none())
        .timeout(PATIENCE)
}

/// Parses the text of a `leasehold.toml`.
pub(crate) fn load_config(toml: &str) -> Result<Config, ::config::ConfigErrors> {
    let file = FileSource {
        path: "leasehold.toml".into(),
        text: toml.to_owned(),
    };
    Config::load(&ConfigSources {
        file: Some(file),
        ..ConfigSources::default()
    })
}

impl TestServer {
    pub(crate) fn builder() -> ServerBuilder {
        ServerBuilder {
            toml: String::new(),
            listen: None,
            lease: None,
            backends: Vec::new(),
            identity_rules: Vec::new(),
            has_operator: false,
            redis_polls: None,
            demo: None,
        }
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

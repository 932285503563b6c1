//! Options of a [`TestServer`], and its start.

use std::net::SocketAddr;
use std::time::Duration;

use ::config::{BackendConfig, Config, ConfigSources, FileSource};
use app::session::TourLinks;
use domain::access::Role;
use domain::waits::identity::IdentityRule;
use leasehold::http::DemoConsole;
use leasehold::serve::{self, ServeError, Setup};
use reqwest::{Client, redirect};
use runtime::clock::Clock;
use testkit::{Redis, RedisOptions, Throwaway};
use tokio_util::sync::CancellationToken;

use super::caller::bearer;
use super::store::Store;
use super::test_server::TestServer;

/// Of a client; some requests wait for a minute.
const PATIENCE: Duration = Duration::from_secs(70);

/// Options of a server; each has a default.
#[derive(Clone, Default)]
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
            client: client_builder().build().unwrap(),
            anonymous: client_builder().build().unwrap(),
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
fn client_builder() -> reqwest::ClientBuilder {
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

//! A console over servers that contain the text, and the same text in everything that the
//! console stores.

use crate::support::{TestCaller, TestServer};
use std::time::Duration;

use domain::access::{Grant, Role};
use reqwest::{Client, Method, RequestBuilder, header, redirect};
use serde_json::{Value, json};

use super::pages::{As, Ask, Page};
use super::servers::{RECEIVER, Servers};
use crate::support::form::Form as _;
use crate::support::html::Html;
use crate::support::routes::segment;
use testkit::eventually;

/// Two consoles with all their backends share the machine with other tests: only an answer that never comes is a fault.
const ANSWER_MAX: Duration = Duration::from_secs(90);
const KEY: &str = "advisory:postgres:42";

pub(super) struct HostileConsole {
    pub(super) payload: String,
    pub(super) console: TestServer,
    /// Paths of locks below `/locks` and `/unlock`: one of each backend and source, and one that was released.
    pub(super) locks: Vec<String>,
    pub(super) admin_id: String,
    /// Unlocks: one waits for its confirmation, one was done, and the page of two at once.
    pub(super) pending: String,
    pub(super) released: String,
    pub(super) several: String,
    /// Numbers of audit entries about forced unlocks.
    pub(super) entries: Vec<i64>,
    http: Client,
    admin: TestCaller,
    viewer: TestCaller,
    servers: Servers,
}

pub(super) struct PageResponse {
    pub(super) status: u16,
    pub(super) is_html: bool,
    pub(super) text: String,
}

impl HostileConsole {
    pub(super) async fn start(p: &str) -> Self {
        let servers = Servers::start(p).await;
        let console = TestServer::builder()
            .config(&servers.toml(p))
            .operator()
            .start()
            .await;
        let mut grants: Vec<Grant> = [Role::Admin, Role::Operator, Role::Approver, Role::Auditor]
            .map(Grant::everywhere)
            .to_vec();
        grants.push(Grant {
            role: Role::Viewer,
            backend: None,
            prefix: Some(format!("granted-{p}")),
        });
        let admin = console.user("ada", grants).await;
        let admin_id = console.user_id("ada");
        let viewer = console.user("vera", vec![Grant::everywhere(Role::Viewer)]).await;
        let http = Client::builder()
            .redirect(redirect::Policy::none())
            .timeout(ANSWER_MAX)
            .build()
            .unwrap();
        let locks = [
            ("cache", format!("a-lock:{p}")),
            ("coord", format!("/locks/b-{p}")),
            ("orders-db", format!("c-{p}")),
            ("orders-db", KEY.to_owned()),
            ("builtin", format!("d-{p}")),
            ("builtin", format!("g-{p}")),
        ];
        let mut hostile_console = Self {
            payload: p.to_owned(),
            console,
            locks: locks
                .iter()
                .map(|(backend, name)| format!("/{backend}/{}", segment(name)))
                .collect(),
            admin_id,
            pending: String::new(),
            released: String::new(),
            several: String::new(),
            entries: Vec::new(),
            http,
            admin,
            viewer,
            servers,
        };
        hostile_console.plant().await;
        hostile_console
    }

    pub(super) fn unlockable(&self) -> impl Iterator<Item = String> {
        let released = self.locks.len() - 1;
        self.locks.clone().into_iter().take(released)
    }

    async fn plant(&mut self) {
        let p = self.payload.clone();
        let receiver = json!({
            "name": RECEIVER, "kind": "webhook", "urls": [self.servers.receiver.url],
            "secret": "a secret of thirty-two characters"
        });
        self.json(Method::POST, "/v1/receivers", &receiver).await;
        for name in ["d", "g", "h", "i"] {
            let lease = json!({
                "resource": format!("{name}-{p}"), "ownerId": format!("own-{p}"), "ttlSeconds": 3_600,
                "metadata": {"host": p}
            });
            self.json(Method::POST, "/v1/locks/acquire", &lease).await;
        }
        let rejection = json!({
            "resource": format!("e-{p}"), "ownerId": format!("own-{p}"), "source": format!("src-{p}"), "fencingToken": 3,
            "highestToken": 5
        });
        self.json(Method::POST, "/v1/fencing/rejections", &rejection)
            .await;
        let rule = json!({
            "id": "mine", "name": format!("rule {p}"), "condition": "contention", "prefix": format!("f-{p}"),
            "anyPrefix": true, "template": format!("message {p}")
        });
        self.json(Method::PUT, "/v1/rules", &rule).await;
        let silence = json!({
            "matchers": [{"label": "resource", "value": format!("s-{p}")}], "lasts": "2h", "comment": format!("why {p}")
        });
        self.json(Method::POST, "/v1/silences", &silence).await;
        let protection = json!({"prefix": format!("t-{p}"), "protection": "protected"});
        self.json(Method::PUT, "/v1/protected-prefixes", &protection)
            .await;
        eventually("all locks and the alert are seen", async || {
            let page = self.console.json("/v1/inventory?sort=resource").await;
            let alerts = self.console.json("/v1/alerts").await.to_string();
            page["total"].as_u64() >= Some(8) && alerts.contains("src-") | alerts.contains("e-")
        })
        .await;
        eventually("a notification was refused with the text", async || {
            let dead = self.json(Method::GET, "/v1/notifications", &Value::Null).await;
            dead.to_string().contains("refused ")
        })
        .await;
        self.pending = self.begin(&format!("d-{p}")).await;
        self.released = self.begin(&format!("g-{p}")).await;
        let confirm = format!("/v1/unlocks/{}/confirm", self.released);
        let done = self
            .json(Method::POST, &confirm, &json!({"resource": format!("g-{p}")}))
            .await;
        assert_eq!(done["state"], "released", "{done}");
        self.several = self.begin_several().await;
        let audit = self
            .json(Method::GET, "/v1/audit?action=FORCE_UNLOCK", &Value::Null)
            .await;
        let rows = audit["entries"].as_array().unwrap_or_else(|| panic!("{audit}"));
        self.entries = rows
            .iter()
            .filter_map(|row| row["id"].as_str()?.parse().ok())
            .collect();
        assert!(self.entries.len() >= 3, "{audit}");
    }

    async fn begin(&self, resource: &str) -> String {
        let path = format!("/v1/inventory/builtin/{}", segment(resource));
        let lock = self.json(Method::GET, &path, &Value::Null).await;
        let intent = json!({
            "backend": "builtin", "resource": resource, "generation": lock["generation"],
            "reason": format!("stuck since 03:00 {}", self.payload)
        });
        let intent = self.json(Method::POST, "/v1/unlocks", &intent).await;
        intent["unlockId"]
            .as_str()
            .unwrap_or_else(|| panic!("{intent}"))
            .to_owned()
    }

    /// Two at once, by the page; the address of their confirmation.
    async fn begin_several(&self) -> String {
        let list = self
            .send(As::Admin, Method::GET, "/unlocks?backend=builtin")
            .send()
            .await
            .unwrap();
        let list = Html::parse(&list.text().await.unwrap());
        let values = &list.attribute_values;
        let is_item = |pair: &(String, String)| pair.0 == "name" && pair.1 == "item";
        let items = (0..values.len()).filter(|at| is_item(&values[*at]));
        let items = items.map(|at| {
            let value = values[at..].iter().find(|(name, _)| name == "value").unwrap();
            ("item", value.1.clone())
        });
        let mut form: Vec<(&str, String)> = items
            .filter(|(_, value)| value.contains("h-") || value.contains("i-"))
            .collect();
        assert!(form.len() >= 2, "{form:?}");
        form.push(("reason", format!("stuck since 03:00 {}", self.payload)));
        let begun = self
            .send(As::Admin, Method::POST, "/unlocks")
            .form(&form)
            .send()
            .await
            .unwrap();
        let to = begun.headers().get(header::LOCATION).cloned();
        let text = begun.text().await.unwrap();
        to.unwrap_or_else(|| panic!("{text}"))
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn send(&self, by: As, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, self.console.url(path))
            .header(header::USER_AGENT, &self.payload)
            .header(header::ACCEPT, "text/html");
        match by {
            As::Admin => self.admin.authenticate(request),
            As::Viewer => self.viewer.authenticate(request),
            As::Nobody => request.header("sec-fetch-site", "same-origin"),
        }
    }

    async fn json(&self, method: Method, path: &str, body: &Value) -> Value {
        let mut request = self.send(As::Admin, method.clone(), path);
        if method != Method::GET {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) async fn fetch(&self, page: &Page) -> PageResponse {
        let request = match &page.ask {
            Ask::Get(path) => self.send(page.by, Method::GET, path),
            Ask::Post(path, fields) => self.send(page.by, Method::POST, path).form(fields),
        };
        let answer = request.send().await.unwrap();
        let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
        PageResponse {
            status: answer.status().as_u16(),
            is_html: kind.is_some_and(|kind| kind.to_str().unwrap().starts_with("text/html")),
            text: answer.text().await.unwrap(),
        }
    }
}

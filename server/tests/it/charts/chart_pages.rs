//! Pages with charts, read by a viewer, and a client whose leases they show.

use std::path::Path;

use domain::access::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestCaller, TestServer, on};
use testkit::eventually;

pub(super) struct ChartPages {
    server: TestServer,
    client: TestCaller,
    viewer: TestCaller,
}

impl ChartPages {
    pub(super) async fn start() -> Self {
        let server = TestServer::start().await;
        Self {
            client: server.token("client", on(Role::Client, None, None)).await,
            viewer: server.token("viewer", on(Role::Viewer, None, None)).await,
            server,
        }
    }

    /// A token that sees the names under one prefix alone.
    pub(super) async fn viewer_of(&self, prefix: &str) -> TestCaller {
        self.server
            .token(prefix, on(Role::Viewer, None, Some(prefix)))
            .await
    }

    /// The events of history cannot be read from now on.
    pub(super) async fn break_history(&self) {
        let file = runtime::db::history_file(self.leases_file());
        hide_table(&file, "lock_events").await;
    }

    /// This table of the lease store cannot be read from now on.
    pub(super) async fn break_leases(&self, table: &str) {
        hide_table(self.leases_file(), table).await;
    }

    fn leases_file(&self) -> &Path {
        Path::new(self.server.store.url.strip_prefix("sqlite:").unwrap())
    }

    /// As the viewer of everything.
    pub(super) async fn page(&self, path: &str) -> (StatusCode, String) {
        self.page_as(&self.viewer, path).await
    }

    pub(super) async fn page_as(&self, token: &TestCaller, path: &str) -> (StatusCode, String) {
        let (status, page) = self.server.as_user(token).text(path).await;
        // Without the markers that separate texts for hydration.
        (StatusCode::from_u16(status).unwrap(), page.replace("<!>", ""))
    }

    /// The page, once it contains all of `texts`. On one page: a chart whose read took too long says so in its place, and the
    /// next page is whole.
    pub(super) async fn page_with(&self, path: &str, texts: &[&str]) -> String {
        self.page_with_as(&self.viewer, path, texts).await
    }

    pub(super) async fn page_with_as(&self, token: &TestCaller, path: &str, texts: &[&str]) -> String {
        let mut html = String::new();
        let what = format!("{path} tells {texts:?}");
        eventually(&what, async || {
            let (status, page) = self.page_as(token, path).await;
            html = page;
            status == StatusCode::OK && texts.iter().all(|texts| html.contains(texts))
        })
        .await;
        html
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        self.server.as_user(&self.client).done(method, path, body).await
    }

    /// Returns lease and token.
    pub(super) async fn acquire(&self, resource: &str, owner: &str) -> (String, u64) {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 30});
        let lease = self.call(Method::POST, "/v1/locks/acquire", &body).await;
        let id = lease["leaseId"].as_str().unwrap().to_owned();
        (id, lease["fencingToken"].as_u64().unwrap())
    }

    pub(super) async fn release(&self, lease: &str) {
        self.call(Method::DELETE, &format!("/v1/locks/{lease}"), &json!({}))
            .await;
    }

    /// A write that a resource refused.
    pub(super) async fn refuse(&self, resource: &str, token: u64, source: &str) {
        let body =
            json!({"resource": resource, "fencingToken": token, "highestToken": token + 1, "source": source});
        self.call(Method::POST, "/v1/fencing/rejections", &body).await;
    }
}

async fn hide_table(file: &Path, table: &str) {
    let url = format!("sqlite:{}", file.display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let rename = format!("ALTER TABLE {table} RENAME TO {table}_aside");
    sqlx::query(sqlx::AssertSqlSafe(rename))
        .execute(&pool)
        .await
        .unwrap();
}

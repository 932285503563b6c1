//! Rows of a job table without expiry, judged by their signs of life.

use crate::support::{TestServer, bearer, token};
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::access::Role;
use domain::state::LockState;
use serde_json::json;

use super::state_agreement::{alert, detail, lock, reason, shows};
use super::systems::execute;
use testkit::eventually;

const TABLE: &str =
    "CREATE TABLE running (job text PRIMARY KEY, worker text, started_at timestamptz, seen_at timestamptz)";
const SIGN_OF_LIFE: &str = "UPDATE running SET seen_at = clock_timestamp() WHERE job = ";

async fn console(postgres: &Postgres) -> TestServer {
    let toml = format!(
        "[[backend]]\nname = \"jobs\"\nkind = \"postgres\"\nurl = \"{}\"\npoll_interval = \"1s\"\n\
         [[backend.lease_table]]\ntable = \"running\"\nstale_after = \"3s\"\n\
         columns = {{ resource = \"job\", owner = \"worker\", lease_id = \"\", fencing_token = \"\", expires_at = \"\", \
         created_at = \"started_at\", updated_at = \"\", heartbeat = \"seen_at\" }}\n",
        postgres.superuser_url()
    );
    let console = TestServer::builder().config(&toml).operator().start().await;
    console.ready().await;
    console
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_a_heartbeat_is_not_renewing() {
    let options = PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    execute(&postgres, TABLE).await;
    let console = console(&postgres).await;
    execute(
        &postgres,
        "INSERT INTO running VALUES ('report/alive', 'worker-1', now(), now()), ('report/dead', 'worker-2', now(), now())",
    )
    .await;
    let (alive, dead) = (
        lock("jobs", "table:public.running", "report/alive"),
        lock("jobs", "table:public.running", "report/dead"),
    );
    shows(&console, LockState::Healthy, &dead).await;
    // One of them continues; the other has sent its last heartbeat.
    eventually("the silent job is not renewing", async || {
        execute(&postgres, &format!("{SIGN_OF_LIFE}'report/alive'")).await;
        assert_eq!(detail(&console, &alive).await["state"], "healthy");
        detail(&console, &dead).await["state"] == "not_renewing"
    })
    .await;
    shows(&console, LockState::NotRenewing, &dead).await;
    let found = detail(&console, &dead).await;
    let why = reason(&found, LockState::NotRenewing).unwrap();
    assert!(
        why.contains("No sign of life for") && why.contains("`stale_after` is 3 s"),
        "{why}"
    );
    assert!(
        found["remainingMs"].is_null() && found["absent"]["remainingMs"].is_string(),
        "{found}"
    );
    // A sign of life ends it, and the alert.
    execute(&postgres, &format!("{SIGN_OF_LIFE}'report/dead'")).await;
    eventually("the alert has resolved", async || {
        execute(&postgres, &format!("{SIGN_OF_LIFE}'report/dead'")).await;
        alert(&console, "not_renewing", &dead).await.is_none()
    })
    .await;
    previewed(&console, &postgres).await;
    console.stop().await;
}

/// The preview of the built-in rule finds the silence in the history. The job lives on: a second silence would count too.
async fn previewed(console: &TestServer, postgres: &Postgres) {
    let rule = json!({"name": "Silent jobs", "condition": "not_renewing", "prefix": "report/", "severity": "critical"});
    let admin = token(&console.serving, Role::Admin).await;
    eventually("the preview has the firing", async || {
        execute(postgres, &format!("{SIGN_OF_LIFE}'report/dead'")).await;
        let request = reqwest::Client::new().post(console.url("/v1/rules/preview"));
        let request = request.headers(bearer(admin.expose())).json(&rule);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let preview: serde_json::Value = answer.json().await.unwrap_or_default();
        assert!(status.is_success(), "{status} {preview}");
        preview["count"] == 1
    })
    .await;
}

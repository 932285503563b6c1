//! A reader of the console searches the SQL of other sessions for passwords and personal data.

use crate::support::{TestServer, client, token};
use std::time::Duration;

use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::access::Role;
use reqwest::Client;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::support::routes::{read_paths, segment};

const CANARY: &str = "c4nary";
const KEY: &str = "advisory:postgres:42";
const TABLE: &str = "relation:postgres:public.patients";

struct PatientsServer {
    console: TestServer,
    /// Sees everything that can be read, the audit log included.
    reader: Client,
    _sessions: Vec<PgConnection>,
    _waiting: Vec<tokio::task::JoinHandle<()>>,
    _server: Postgres,
}

async fn session(server: &Postgres, sql: &str) -> PgConnection {
    let mut session = PgConnection::connect(&server.superuser_url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut session)
        .await
        .unwrap();
    session
}

/// Holders of a key and of a row, and a session behind each of them, all with the canary in their statements.
async fn hostile_console(query_text: &str) -> PatientsServer {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let server = Throwaway::postgres(options).await.unwrap();
    let mut sessions = vec![
        session(
            &server,
            "CREATE TABLE patients (name text); INSERT INTO patients VALUES ('a')",
        )
        .await,
    ];
    for sql in [
        "SELECT pg_advisory_lock(42), pg_advisory_lock(43), 'c4nary-1', E'\\'c4nary-2', $x$c4nary-3$x$ /* c4nary-4 */",
        "BEGIN; UPDATE patients SET name = 'c4nary-5' WHERE name <> 'c4nary''s'",
    ] {
        sessions.push(session(&server, sql).await);
    }
    let mut waiting = Vec::new();
    for sql in [
        "SELECT pg_advisory_lock(42) -- c4nary-6",
        "UPDATE patients SET name = U&'c4nary-7'",
    ] {
        waiting.push(wait_with(
            PgConnection::connect(&server.superuser_url()).await.unwrap(),
            sql,
        ));
    }
    let url = server.superuser_url();
    let console = TestServer::builder().config(&format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{url}\"\nunlock_url = \"{url}\"\npoll_interval = \"1s\"\n{query_text}\n"
    )).operator().start()
    .await;
    console
        .inventory_where("sort=resource", |page| {
            let text = page.to_string();
            text.contains(KEY) && text.contains(TABLE)
        })
        .await;
    let auditor = token(&console.serving, Role::Auditor).await;
    PatientsServer {
        reader: client(auditor.expose(), Duration::from_secs(10)),
        console,
        _sessions: sessions,
        _waiting: waiting,
        _server: server,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a session of the test that waits until the server ends it"
)]
fn wait_with(mut session: PgConnection, sql: &'static str) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        // The forced unlock, or the end of the test, cuts it off.
        let _ended = sqlx::raw_sql(sql).execute(&mut session).await;
    })
}

impl PatientsServer {
    async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self
            .console
            .client
            .post(self.console.url(path))
            .json(body)
            .send()
            .await;
        answer.unwrap().json().await.unwrap()
    }

    /// Begins and confirms a forced unlock of the key; both documents.
    async fn unlock(&self) -> (Value, Value) {
        let lock = self
            .console
            .json(&format!("/v1/inventory/orders-db/{}", segment(KEY)))
            .await;
        let intent = json!({
            "backend": "orders-db", "resource": KEY, "generation": lock["generation"], "reason": "stuck since 03:00"
        });
        let intent = self.post("/v1/unlocks", &intent).await;
        let id = intent["unlockId"].as_str().unwrap_or_else(|| panic!("{intent}"));
        let confirmed = self
            .post(&format!("/v1/unlocks/{id}/confirm"), &json!({"resource": KEY}))
            .await;
        assert_eq!(confirmed["state"], "released", "{confirmed}");
        (intent, confirmed)
    }

    /// What each route that reads answers, to an operator and to an auditor.
    async fn read_all(&self, unlock: &str) -> Vec<(String, String)> {
        let mut answers = Vec::new();
        for resource in [KEY, TABLE] {
            let paths = read_paths(|_, name| match name {
                "{backend}" => Some("orders-db".to_owned()),
                "{resource}" | "{*resource}" => Some(segment(resource)),
                "{unlockId}" | "{unlock_id}" => Some(unlock.to_owned()),
                _ => Some("1".to_owned()),
            });
            for path in paths {
                for client in [&self.console.client, &self.reader] {
                    let answer = client.get(self.console.url(&path)).send().await.unwrap();
                    answers.push((path.clone(), answer.text().await.unwrap()));
                }
            }
        }
        for number in 1..12 {
            let path = format!("/audit/{number}");
            let answer = self.reader.get(self.console.url(&path)).send().await.unwrap();
            answers.push((path, answer.text().await.unwrap()));
        }
        for format in ["csv", "json"] {
            let path = format!("/v1/audit/export?format={format}");
            let answer = self.reader.get(self.console.url(&path)).send().await.unwrap();
            answers.push((path, answer.text().await.unwrap()));
        }
        answers
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_literals_of_other_sessions_are_never_shown() {
    // On no page, in no JSON, in no entry of the audit log; before, during and after a forced unlock.
    for (query_text, shown) in [
        ("", "SELECT pg_advisory_lock(?), pg_advisory_lock(?), ?, ?, ?"),
        ("query_text = \"hidden\"", "not shown: query_text is"),
    ] {
        let console = hostile_console(query_text).await;
        let mut answers = console.read_all("none").await;
        let detail = format!("/v1/inventory/orders-db/{}", segment(KEY));
        assert!(
            answers
                .iter()
                .any(|(path, text)| *path == detail && text.contains(shown)),
            "{query_text}"
        );
        let (intent, confirmed) = console.unlock().await;
        answers.extend(console.read_all(intent["unlockId"].as_str().unwrap()).await);
        answers.push(("intent".to_owned(), intent.to_string()));
        answers.push(("confirmed".to_owned(), confirmed.to_string()));
        for (path, text) in answers {
            assert!(!text.contains(CANARY), "{query_text} {path}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_sql_is_shown_with_the_lock_and_its_waits() {
    // Unchanged if configured; still not in the blast radius of an unlock, and not in the audit
    // log.
    let console = hostile_console("query_text = \"full\"").await;
    let before = console.read_all("none").await;
    let (intent, confirmed) = console.unlock().await;
    let dies = intent["blastRadius"].to_string();
    assert!(dies.contains("session#") && !dies.contains("SELECT"), "{dies}");
    let mut answers = console.read_all(intent["unlockId"].as_str().unwrap()).await;
    answers.extend(before);
    answers.push(("intent".to_owned(), intent.to_string()));
    answers.push(("confirmed".to_owned(), confirmed.to_string()));
    // The contention page and API show the blocker trees, each session with its query.
    let shows = ["/v1/inventory/", "/locks/", "/contention", "/v1/contention"];
    let of_lock = |path: &str| shows.iter().any(|start| path.starts_with(start));
    let is_shown = |it: &(String, String)| it.1.contains(CANARY);
    assert!(answers.iter().any(|it| of_lock(&it.0) && is_shown(it)));
    for it in answers.iter().filter(|it| !of_lock(&it.0)) {
        assert!(!is_shown(it), "{}: {}", it.0, it.1);
    }
    let audit = answers.iter().filter(|it| it.0.contains("audit"));
    assert!(audit.clone().any(|it| it.1.contains("stuck since 03:00")));
    for it in audit {
        assert!(!it.1.contains("pg_advisory_lock"), "{}: {}", it.0, it.1);
    }
}

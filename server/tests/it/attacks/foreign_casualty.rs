//! A tenant reads the unlock document of a lock in its scope, whose session also holds a lock of another tenant.

use crate::support::{TestServer, bearer, code, on};
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::access::{Grant, Role};
use leasehold::identity::{NewToken, Principal, Secret};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};

const OWN: &str = "advisory:postgres:424242";
const FOREIGN: &str = "advisory:postgres:737373";

async fn start() -> (Postgres, TestServer) {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let url = postgres.superuser_url();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{url}\"\nunlock_url = \"{url}\"\n\
         poll_interval = \"1s\"\nadvisory_locks = true\n"
    );
    (
        postgres,
        TestServer::builder().config(&toml).operator().start().await,
    )
}

async fn reader(console: &TestServer) -> Secret {
    let new = NewToken {
        name: "tenant".to_owned(),
        grants: vec![Grant {
            role: Role::Viewer,
            backend: None,
            prefix: Some(OWN.to_owned()),
        }],
        expires_in: None,
    };
    console
        .serving
        .identity()
        .create_token(&Principal::system("test"), new)
        .await
        .unwrap()
}

/// By an operator of everything.
async fn begin(console: &TestServer) -> Value {
    let page = console
        .inventory_where("backend=orders-db", |page| page["total"] == 2)
        .await;
    let mut locks = page["locks"].as_array().unwrap().iter();
    let own = locks.find(|lock| lock["resource"] == OWN).unwrap();
    let body = json!({"backend": "orders-db", "resource": OWN, "generation": own["generation"],
        "reason": "stuck since 03:00, its owner agrees"});
    let begin = console.client.post(console.url("/v1/unlocks")).json(&body);
    begin.send().await.unwrap().json().await.unwrap()
}

async fn read(console: &TestServer, tenant: &Secret, path: &str) -> String {
    let request = reqwest::Client::new().get(console.url(path));
    let answer = request.headers(bearer(tenant.expose())).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

#[tokio::test]
async fn an_unlock_counts_foreign_locks_without_their_names() {
    // One session holds two keys; an operator of everything begins the unlock of the first; then the session takes a third.
    let (postgres, console) = start().await;
    let mut session = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    session
        .execute("SELECT pg_advisory_lock(424242), pg_advisory_lock(737373)")
        .await
        .unwrap();
    let begun = begin(&console).await;
    assert!(begun["blastRadius"].to_string().contains("737373"), "{begun}");
    let id = begun["unlockId"].as_str().unwrap();
    let tenant = reader(&console).await;
    let paths = [
        format!("/v1/unlocks/{id}"),
        format!("/unlocks/{id}"),
        format!("/unlocks/bulk?id={id}"),
        format!("/unlock/orders-db/{OWN}"),
    ];
    for path in &paths {
        let text = read(&console, &tenant, path).await;
        assert!(
            text.contains("424242") && !text.contains("737373"),
            "{path}: {text}"
        );
    }
    let document = read(&console, &tenant, &paths[0]).await;
    assert!(document.contains("1 lock outside of your scope"), "{document}");
    // More locks than were shown: the refusal names one, and not to the tenant.
    session.execute("SELECT pg_advisory_lock(515151)").await.unwrap();
    let confirm = console
        .client
        .post(console.url(&format!("/v1/unlocks/{id}/confirm")));
    let refused = confirm.json(&json!({"resource": OWN})).send().await.unwrap();
    let refused: Value = refused.json().await.unwrap();
    let why = refused["outcome"]["why"].as_str().unwrap();
    assert!(why.contains("515151"), "{refused}");
    for path in &paths[..2] {
        let text = read(&console, &tenant, path).await;
        assert!(
            !text.contains("515151") && !text.contains("737373"),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn entries_of_a_refusal_name_no_foreign_lock() {
    // The second key of the session is protected, and the confirmation without approval names it to its user: not to an
    // auditor of the first key alone, in any view of the audit log.
    let (postgres, console) = start().await;
    console.protect(FOREIGN).await;
    let mut session = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    session
        .execute("SELECT pg_advisory_lock(424242), pg_advisory_lock(737373)")
        .await
        .unwrap();
    let ada = console.user("ada", on(Role::Operator, None, None)).await;
    let held = console.inventory_lock(&ada, "orders-db", OWN).await;
    let id = console.begun(&ada, &held).await;
    let refused = console.confirm(&ada, &id, OWN).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert!(refused.1["detail"].to_string().contains(FOREIGN), "{}", refused.1);
    let all = console.token("all", on(Role::Auditor, None, None)).await;
    let tenant = console.token("own", on(Role::Auditor, None, Some(OWN))).await;
    let list = format!("/v1/audit?unlockId={id}");
    let (_, text) = console.as_user(&all).text(&list).await;
    assert!(text.contains(FOREIGN), "{text}");
    let (_, text) = console.as_user(&tenant).text(&list).await;
    assert!(text.contains("session: the session that holds it"), "{text}");
    assert!(
        text.contains("the approval of a second approver is missing"),
        "{text}"
    );
    let mut paths = vec![
        list,
        format!("/audit?unlockId={id}"),
        format!("/v1/audit/export?unlockId={id}"),
        format!("/v1/audit/export?format=csv&unlockId={id}"),
    ];
    let entries = console.unlock_entries().await;
    paths.extend(entries.iter().map(|entry| format!("/audit/{}", entry.id)));
    for path in &paths {
        let (status, text) = console.as_user(&tenant).text(path).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(
            text.contains("424242") && !text.contains("737373"),
            "{path}: {text}"
        );
    }
}

//! Every route and every server function, requested by each role that is cut to one tenant, on a server that holds rules, locks,
//! counts, unlocks and silences of another. A route, a parameter or a server function without a line here fails.

use crate::support::{TestCaller, TestServer, on, reply};
use std::time::Duration;

use domain::access::Role;
use leasehold::http::auth::route_permissions::RouteRow;
use leasehold::http::routes::TABLE;
use reqwest::{Client, Method};
use runtime::db::Db;
use serde_json::{Value, json};

use testkit::eventually;

/// Foreign keys. A number that no other figure has.
const KEYS: u64 = 1_371;
/// The word in every foreign name and text.
const FOREIGN: &str = "zebra";
const FOREIGN_LOCK: &str = "tenant_2:zebra";

/// Values for the parameters of paths.
struct Planted {
    foreign_lease: String,
    /// Of a lock of the tenant, with a foreign casualty.
    unlock: String,
}

async fn put_rule(server: &TestServer, admin: &TestCaller, rule: Value) {
    let request = Client::new().put(server.url("/v1/rules")).json(&rule);
    let (status, saved) = reply(admin.authenticate(request)).await;
    assert_eq!(status, 200, "{saved}");
}

async fn post(server: &TestServer, token: &TestCaller, path: &str, body: Value) -> Value {
    let (status, answer) = server.as_user(token).post(path, &body).await;
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    answer
}

/// Rules with versions, a silence, refused writes, keys, a lease, and an unlock that names a foreign lock.
async fn plant(server: &TestServer) -> Planted {
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let text = format!("https://{FOREIGN}.example/");
    for (id, prefix) in [
        ("zebra_rule", FOREIGN_LOCK),
        ("own_rule", FOREIGN_LOCK),
        ("own_rule", "tenant_1:job"),
    ] {
        let runbook = if prefix == FOREIGN_LOCK { text.as_str() } else { "" };
        let rule = json!({"id": id, "name": format!("{prefix} held"), "condition": "long_held", "prefix": prefix,
            "anyPrefix": true, "runbook": runbook});
        put_rule(server, &admin, rule).await;
    }
    let broad = json!({"id": "zebra_contract", "name": "Contract of zebra", "condition": "long_held", "for": "0s",
        "runbook": text, "template": "Call zebra", "with": {"longer_than": "1s", "at_least": "0s"}});
    put_rule(server, &admin, broad).await;
    let silence = json!({"matchers": [{"label": "prefix", "value": FOREIGN_LOCK}], "lasts": "2h", "comment": "zebra sleeps"});
    post(server, &admin, "/v1/silences", silence).await;
    let report =
        json!({"resource": FOREIGN_LOCK, "fencingToken": 3, "highestToken": 5, "source": "zebra-db"});
    post(server, &admin, "/v1/fencing/rejections", report).await;

    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", server.redis().port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let mut keys = redis::pipe();
    for key in 0..KEYS {
        keys.set(format!("{FOREIGN_LOCK}:{key}"), "zebra-owner").ignore();
    }
    keys.set(FOREIGN_LOCK, "zebra-owner").ignore();
    keys.set("tenant_1:own", "own").ignore();
    let () = keys.query_async(&mut redis).await.unwrap();
    let (_, foreign) = server.as_user(&admin).acquire(FOREIGN_LOCK).await;
    let (_, own) = server.as_user(&admin).acquire("tenant_1:job").await;
    assert!(own["leaseId"].is_string(), "{own}");
    eventually("all of it is seen, and the foreign rule fires", || async {
        let (_, page) = server.as_user(&admin).get("/v1/inventory?limit=1").await;
        let (_, alerts) = server.as_user(&admin).get("/v1/alerts").await;
        page["total"].as_u64() == Some(KEYS + 4) && alerts.to_string().contains("zebra_contract")
    })
    .await;
    Planted {
        foreign_lease: foreign["leaseId"].as_str().unwrap().to_owned(),
        unlock: plant_unlock(server, &admin).await,
    }
}

/// Begun by an operator of everything; the foreign casualty and the telling outcome are written into the store.
async fn plant_unlock(server: &TestServer, admin: &TestCaller) -> String {
    let (_, detail) = server
        .as_user(admin)
        .get("/v1/inventory/builtin/tenant_1%3Ajob")
        .await;
    let begin = json!({"backend": "builtin", "resource": "tenant_1:job", "generation": detail["generation"],
        "reason": "stuck since 03:00, its owner agrees"});
    let begun = post(server, admin, "/v1/unlocks", begin).await;
    let id = begun["unlockId"].as_str().unwrap().to_owned();
    let Db::Sqlite(pool) = Db::open(&server.store.url).await.unwrap() else {
        panic!("the store is a file")
    };
    let casualties =
        json!([{"kind": "lock", "what": FOREIGN_LOCK}, {"kind": "session", "what": "runs zebra"}]);
    let update =
        "UPDATE unlocks SET observed = json_set(observed, '$.blastRadius.dies', json($1)) WHERE id = $2";
    let done = sqlx::query(update).bind(casualties.to_string()).bind(&id);
    assert_eq!(done.execute(&pool).await.unwrap().rows_affected(), 1);
    pool.close().await;
    id
}

/// The path with each of its parameters; queries that may reveal more.
fn filled(planted: &Planted, path: &str) -> Vec<String> {
    let parameter = |name: &str| match name {
        "{backend}" => "cache",
        "{resource}" | "{*resource}" => FOREIGN_LOCK,
        "{leaseId}" => &planted.foreign_lease,
        "{unlockId}" | "{unlock_id}" => &planted.unlock,
        "{id}" if path.starts_with("/v1/rules") || path.starts_with("/alerts/rules") => "zebra_rule",
        "{id}" | "{name}" => "1",
        "{*file}" => "leasehold.css",
        "{page}" => "alerts",
        "{part}" => "inventory",
        other => panic!("{path}: no value for {other}"),
    };
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => parameter(part),
        false => part,
    });
    let plain = parts.collect::<Vec<_>>().join("/");
    let more: &[&str] = match path {
        "/v1/inventory" => &[
            "?q=zebra",
            "?backend=nowhere",
            "?prefix=tenant_2",
            "?owner=zebra-owner",
        ],
        "/v1/prefixes" => &["?prefix=tenant_2:"],
        "/v1/rules" => &["?format=toml", "?format=prometheus"],
        "/v1/resources/{resource}" => &["?waiters=1"],
        "/alerts/rules/new" => &["?condition=long_held"],
        "/alerts/rules/{id}" => return vec![plain, "/alerts/rules/own_rule".to_owned()],
        "/fencing" => &["?range=30d"],
        "/locks" => &["?backend=cache", "?q=zebra"],
        "/locks/{backend}/{*resource}" => return vec![plain, "/locks/builtin/tenant_1:job".to_owned()],
        "/unlock/{backend}/{*resource}" => return vec![plain, "/unlock/builtin/tenant_1:job".to_owned()],
        "/unlocks/bulk" => return vec![format!("{plain}?id={}", planted.unlock)],
        "/v1/inventory/{backend}/{resource}" => {
            return vec![plain, "/v1/inventory/builtin/tenant_1:job".to_owned()];
        }
        _ => &[],
    };
    let more = more.iter().map(|query| format!("{plain}{query}"));
    std::iter::once(plain.clone()).chain(more).collect()
}

/// Requests to the server functions of the pages, by their names.
fn questions(planted: &Planted) -> Vec<String> {
    let functions = leptos::server_fn::axum::server_fn_paths();
    let requests = functions.flat_map(|(path, _)| {
        let question = path.rsplit('/').next().unwrap();
        let queries: &[&str] = match question {
            "backends" => &[""],
            "overview" => &["?search="],
            "inventory" => &["?query=", "?query=q%3Dzebra", "?query=backend%3Dnowhere"],
            "prefixes" => &["?prefix=", "?prefix=tenant_2%3A"],
            "lock" => &[
                "?backend=cache&source=&resource=tenant_2%3Azebra&search=",
                "?backend=builtin&source=&resource=tenant_1%3Ajob&search=",
            ],
            "alerts" => &["?search=", "?search=q%3Dzebra%26state%3Dresolved"],
            "silence-preview" => &["?search=label1%3Dbackend%26value1%3Dcache"],
            "rule" => &[
                "?id=zebra_rule&search=",
                "?id=own_rule&search=",
                "?id=&search=condition%3Dlong_held",
            ],
            "rule-preview" => &["?id=zebra_rule&search=&fields=&part="],
            "receivers" => &[""],
            "receiver" => &["?name=1"],
            "contention" => &["?search=", "?search=backend%3Dcache%26prefix%3Dtenant_2"],
            "waits" => &[""],
            "fencing" => &["?search=", "?search=range%3D30d"],
            "audit" => &["?search=", "?search=prefix%3Dtenant_2"],
            "audit-entry" => &["?id=1"],
            "account" | "protected-prefixes" | "sessions" | "tokens" | "users" => &[""],
            "user" => &["?id=1"],
            "docs" => &["?path=%2Fdocs"],
            "unlock" => &["?id={unlock}"],
            "bulk-unlocks" => &["?search=id%3D{unlock}"],
            "unlock-candidates" => &["?search=", "?search=prefix%3Dtenant_2"],
            "unlock-review" => &[
                "?backend=cache&resource=tenant_2%3Azebra&search=",
                "?backend=builtin&resource=tenant_1%3Ajob&search=",
            ],
            other => panic!("/api/{other}: what does a tenant ask it?"),
        };
        queries
            .iter()
            .map(move |query| format!("{path}{}", query.replace("{unlock}", &planted.unlock)))
    });
    let requests: Vec<String> = requests.collect();
    assert!(requests.len() >= 5, "{requests:?}");
    requests
}

/// The answer; of a stream its first event.
async fn answer(
    (server, http): (&TestServer, &Client),
    token: &TestCaller,
    method: Method,
    path: &str,
) -> (u16, String) {
    let mut request = http
        .request(method.clone(), server.url(path))
        .bearer_auth(token.secret());
    if method != Method::GET {
        request = request.header("content-type", "application/json").body("{}");
    }
    let mut answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let is_stream = path.ends_with("/events") && status == 200;
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.unwrap() {
        bytes.extend(part);
        if is_stream && bytes.windows(2).any(|end| end == b"\n\n") {
            break;
        }
    }
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

/// Whole numbers of the text, with and without thousands marks.
fn has_number(text: &str, number: u64) -> bool {
    let with_marks = format!("{},{:03}", number / 1_000, number % 1_000);
    [number.to_string(), with_marks].iter().any(|shown| {
        text.match_indices(shown.as_str()).any(|(at, _)| {
            // Ids and hashes hold digits too.
            let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '.');
            !digit(text[..at].chars().next_back()) && !digit(text[at + shown.len()..].chars().next())
        })
    })
}

/// No foreign name, except the requested one.
fn shows_nothing(who: &str, path: &str, text: &str) {
    let mut rest = text.replace("%3A", ":").replace("%3a", ":");
    for requests in [
        FOREIGN_LOCK,
        "zebra_rule",
        "zebra-owner",
        "q=zebra",
        "value=\"zebra\"",
        "\"zebra\"",
    ] {
        let is_asked = path
            .replace("%3A", ":")
            .replace("%3D", "=")
            .contains(requests.trim_matches('"'));
        if is_asked || (requests.contains('"') && path.contains("zebra")) {
            rest = rest.replace(requests, "ASKED");
        }
    }
    assert!(!rest.to_lowercase().contains(FOREIGN), "{who} {path}: {text}");
    for number in KEYS..=KEYS + 6 {
        assert!(!has_number(&rest, number), "{who} {path}: {number}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_shows_data_of_another_tenant() {
    // Routes that read, server functions and streams, then every other method with a body that names nothing.
    let server = TestServer::builder().redis().start().await;
    let planted = plant(&server).await;
    let http = Client::new();
    let roles = [
        Role::Viewer,
        Role::Client,
        Role::Operator,
        Role::Approver,
        Role::Auditor,
    ];
    let mut readers = Vec::new();
    for role in roles {
        readers.push((
            role.as_str(),
            server
                .token(role.as_str(), on(role, None, Some("tenant_1:")))
                .await,
        ));
    }
    let reads = TABLE.iter().filter(|row| row.method == "GET");
    let reads: Vec<String> = reads
        .flat_map(|row| filled(&planted, row.path))
        .chain(questions(&planted))
        .collect();
    for (who, token) in &readers {
        for path in &reads {
            let requests = answer((&server, &http), token, Method::GET, path);
            let (status, text) = tokio::time::timeout(Duration::from_secs(30), requests)
                .await
                .unwrap();
            assert_ne!(status, 405, "{path}");
            shows_nothing(who, path, &text);
            let is_foreign = path.contains(&planted.foreign_lease)
                || path.contains("zebra_rule")
                || (path.contains(FOREIGN_LOCK) && !path.starts_with("/api/"));
            if is_foreign {
                let none = [403, 404];
                assert!(none.contains(&status), "{who} {path}: {status} {text}");
            }
        }
    }
    for RouteRow { method, path, .. } in TABLE.iter().filter(|row| row.method != "GET") {
        for path in filled(&planted, path).into_iter().take(1) {
            for (who, token) in &readers {
                let (_, text) = answer((&server, &http), token, method.parse().unwrap(), &path).await;
                shows_nothing(who, &path, &text);
            }
        }
    }
}

#[tokio::test]
async fn the_matrix_recognizes_foreign_numbers() {
    // The check itself: a number alone, with a mark, and as part of others.
    assert!(has_number("of 1371 held", 1_371) && has_number("<b>1,371</b>", 1_371));
    assert!(!has_number("11371 13710 0.1371", 1_371));
}

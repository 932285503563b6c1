//! Paths, names, statuses, codes and limits of the HTTP contract.

use ::lease::{LeaseCaller, LeaseConfig, LeasePrincipal};
use axum::http::StatusCode;
use domain::lease::Scope;
use serde_json::{Value, json};

use super::lease_server::{LeaseStore, StoreKind, answer, is_granted, on_every_store, token};

/// An object's names in order, as one text.
fn keys(value: &Value) -> String {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(" ")
}

on_every_store!(a_live_lease_has_the_fields_of_the_contract, |store| {
    // Acquire, refusal, renew, reads: the sets of names are exact. Trap 10: the token is a JSON number.
    let server = store.serve().await;
    let body =
        json!({"resource": "a:b/c d", "ownerId": "w1", "ttlSeconds": 30, "metadata": {"b": "2", "a": "1"}});
    let (status, lease) = server.post("/v1/locks/acquire", body).await;
    assert_eq!(status, StatusCode::OK);
    let granted = "acquired expiresAt fencingToken leaseId remainingMs ttlSeconds";
    assert_eq!(keys(&lease), granted);
    assert!(lease["fencingToken"].is_u64() && token(&lease) == 1);
    assert!(
        (29_000..=30_000).contains(&lease["remainingMs"].as_i64().unwrap()),
        "{lease}"
    );

    let refused = server.acquire("a:b/c d", "w1", 5).await;
    assert_eq!(keys(&refused), "acquired heldBy retryAfterMs waiters");
    assert_eq!(keys(&refused["heldBy"]), "fencingToken ownerId remainingMs");
    assert_eq!(
        (&refused["heldBy"]["ownerId"], &refused["waiters"]),
        (&json!("w1"), &json!(0))
    );

    let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    let (status, renewed) = server
        .post(&format!("{path}/renew"), json!({"ttlSeconds": 60}))
        .await;
    assert_eq!(status, StatusCode::OK, "{renewed}");
    assert_eq!(
        keys(&renewed),
        "expiresAt fencingToken leaseId remainingMs renewed ttlSeconds"
    );
    assert_eq!(renewed["ttlSeconds"], 60);
    let (_, kept) = server.renew(&lease).await;
    assert_eq!(kept["ttlSeconds"], 60, "an empty body keeps the stored TTL");

    let (_, read) = server.get(&path).await;
    let whole =
        "acquiredAt expiresAt fencingToken leaseId metadata ownerId remainingMs resource state ttlSeconds";
    assert_eq!(keys(&read), whole);
    assert_eq!(
        (&read["state"], &read["metadata"]),
        (&json!("held"), &json!({"a": "1", "b": "2"}))
    );
    let (_, list) = server.get("/v1/locks?prefix=a:b/").await;
    assert_eq!(
        (keys(&list), keys(&list["locks"][0])),
        ("complete locks nextCursor".to_owned(), whole.to_owned())
    );
    let resource = server.resource("a:b/c d").await;
    assert_eq!(keys(&resource), "holder lastFencingToken resource waiters");
    assert_eq!(
        keys(&resource["holder"]),
        "acquiredAt fencingToken ownerId remainingMs ttlSeconds"
    );

    server.close().await;
});

on_every_store!(an_ended_lease_has_the_status_codes_of_the_contract, |store| {
    // Check, report, release twice, renew after it; a lease never granted; malformed ids.
    let server = store.serve().await;
    let lease = server.acquire("a:b/c d", "w1", 30).await;
    let question = json!({"resource": "a:b/c d", "fencingToken": 1});
    let (_, checked) = server.post("/v1/fencing/check", question).await;
    assert_eq!(
        keys(&checked),
        "accepted fencingToken highestToken holder leaseState"
    );
    assert_eq!(checked["accepted"], true);
    let report = json!({"resource": "a:b/c d", "fencingToken": 1, "highestToken": 2, "source": "db", "at": "2026-01-02T03:04:05Z"});
    assert_eq!(
        server.post("/v1/fencing/rejections", report).await.0,
        StatusCode::ACCEPTED
    );

    assert_eq!(
        server.delete(&lease).await,
        (StatusCode::OK, json!({"released": true}))
    );
    assert_eq!(
        server.delete(&lease).await,
        (StatusCode::OK, json!({"released": false, "state": "released"}))
    );
    let (status, lost) = server.renew(&lease).await;
    assert_eq!((status, &lost["code"]), (StatusCode::GONE, &json!("released")));
    assert!(!lost["requestId"].as_str().unwrap().is_empty());
    let never = server.resource("never").await;
    assert_eq!(
        never,
        json!({"resource": "never", "holder": null, "lastFencingToken": 0, "waiters": []})
    );
    for method in ["GET", "DELETE"] {
        for id in ["nonsense", "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", "%FF"] {
            let url = format!("{}/v1/locks/{id}", server.base);
            let (status, problem) = answer(server.http.request(method.parse().unwrap(), url)).await;
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::NOT_FOUND, &json!("not_found")),
                "{method} {id}"
            );
        }
    }
    server.close().await;
});

on_every_store!(a_check_rejects_and_records_every_other_token, |store| {
    // Stale, never issued, and reported by a resource itself: three rows; an accepted token leaves no row.
    let server = store.serve().await;
    let first = server.acquire("r", "w1", 30).await;
    server.delete(&first).await;
    server.acquire("r", "w2", 30).await;
    for (presented, reason) in [(1, json!("stale")), (2, Value::Null), (3, json!("never_issued"))] {
        let question =
            json!({"resource": "r", "fencingToken": presented, "ownerId": "w1", "source": "ledger"});
        let (_, checked) = server.post("/v1/fencing/check", question).await;
        assert_eq!(
            (&checked["reason"], &checked["highestToken"]),
            (&reason, &json!(2)),
            "{checked}"
        );
    }
    let report = json!({"resource": "r", "fencingToken": 1, "source": "db"});
    server.post("/v1/fencing/rejections", report).await;
    let rows = server.service.rejections(None).await.unwrap();
    let rejections: Vec<(i64, &str, &str)> = rows
        .iter()
        .map(|row| (row.token, &*row.reason, &*row.source))
        .collect();
    assert_eq!(
        rejections,
        [
            (1, "reported", "db"),
            (3, "never_issued", "ledger"),
            (1, "stale", "ledger")
        ]
    );
    server.close().await;
});

#[tokio::test]
async fn the_examples_of_the_description_work() {
    // Every request body's example in the served OpenAPI is sent unchanged.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    let (_, api) = server.get("/v1/openapi.json").await;
    let lease = server.acquire("for-the-path", "o", 30).await;
    let mut sent = 0;
    for (path, calls) in api["paths"].as_object().unwrap() {
        let body = calls["post"]["requestBody"].to_string();
        let Some(name) = body
            .split("#/components/schemas/")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
        else {
            continue;
        };
        let path = path.replace("{leaseId}", lease["leaseId"].as_str().unwrap());
        let (status, answer) = server
            .post(&path, api["components"]["schemas"][name]["example"].clone())
            .await;
        assert!(status.is_success(), "{path}: {answer}");
        sent += 1;
    }
    assert_eq!(sent, 5);
    for path in [
        "/v1/locks",
        "/v1/locks/{leaseId}",
        "/v1/resources/{resource}",
        "/v1/locks/{leaseId}/events",
    ] {
        assert!(api["paths"][path]["get"].is_object(), "{path}");
    }
    server.close().await;
}

on_every_store!(the_list_is_in_order_and_cut_into_pages, |store| {
    // By bytes, literal prefix (`_` and `%` are no wildcards), cursor to the end.
    let server = store.serve().await;
    let names = ["a:1", "a:2", "aX:3", "a_:4", "a%:5", "b", "é", "e\u{301}"];
    for name in names {
        assert!(is_granted(&server.acquire(name, "o", 60).await));
    }
    let listed = |list: &Value| -> Vec<String> {
        let locks = list["locks"].as_array().unwrap();
        locks
            .iter()
            .map(|lock| lock["resource"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut sorted = names.map(str::to_owned).to_vec();
    sorted.sort_unstable();
    assert_eq!(listed(&server.get("/v1/locks").await.1), sorted);
    assert_eq!(listed(&server.get("/v1/locks?prefix=a_").await.1), ["a_:4"]);
    assert_eq!(listed(&server.get("/v1/locks?prefix=a%25").await.1), ["a%:5"]);
    let (mut paged, mut path) = (Vec::new(), "/v1/locks?limit=3".to_owned());
    loop {
        let (_, page) = server.get(&path).await;
        paged.extend(listed(&page));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        path = format!("/v1/locks?limit=3&cursor={cursor}");
    }
    assert_eq!(paged, sorted);
    server.close().await;
});

on_every_store!(a_scope_is_whole_segments_everywhere, |store| {
    // Trap 37: `team_a` reaches neither `team_ab` nor `teamXa`; by name 403, by id 404, and no rows in lists.
    let open = store.serve_with(LeaseConfig::default(), None).await;
    let foreign = open.acquire("teamXa:job", "o", 60).await;
    open.acquire("team_a:own", "o", 60).await;
    open.acquire("team_ab:job", "o", 60).await;
    open.close().await;
    let caller = LeaseCaller {
        principal: LeasePrincipal::new("token-a"),
        scope: Scope::prefixes(["team_a".to_owned()]),
    };
    let server = store.serve_with(LeaseConfig::default(), Some(caller)).await;
    for name in ["teamXa:job", "team_ab:job", "team_ab:free"] {
        let body = json!({"resource": name, "ownerId": "o", "ttlSeconds": 5});
        let (status, problem) = server.post("/v1/locks/acquire", body).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::FORBIDDEN, &json!("out_of_scope"))
        );
        assert_eq!(
            server.get(&format!("/v1/resources/{name}")).await.0,
            StatusCode::FORBIDDEN
        );
        let question = json!({"resource": name, "fencingToken": 1});
        assert_eq!(
            server.post("/v1/fencing/check", question).await.0,
            StatusCode::FORBIDDEN
        );
    }
    assert_eq!(server.renew(&foreign).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.delete(&foreign).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        server
            .get(&format!("/v1/locks/{}", foreign["leaseId"].as_str().unwrap()))
            .await
            .0,
        StatusCode::NOT_FOUND
    );
    let (_, list) = server.get("/v1/locks").await;
    assert_eq!(list["locks"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(
        (&list["locks"][0]["resource"], &list["locks"][0]["leaseId"]),
        (&json!("team_a:own"), &Value::Null)
    );
    assert_eq!(server.get("/v1/locks?prefix=teamX").await.1["locks"], json!([]));
    server.close().await;
});

on_every_store!(lookalike_names_are_different_locks, |store| {
    // Trap 38: NFC and NFD, case, inner spaces: each its own lock on both stores; edges and 12 KB are refused on both.
    let server = store.serve().await;
    let names = [
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{c9}",
        "a b",
        "a  b",
        "\u{1F512}",
        "a\u{200b}b",
        "ab",
    ];
    for (place, name) in names.iter().enumerate() {
        let lease = server.acquire(name, &format!("o{place}"), 60).await;
        assert!(is_granted(&lease) && token(&lease) == 1, "{name:?}: {lease}");
    }
    for (place, name) in names.iter().enumerate() {
        let found = server.resource(name).await;
        assert_eq!(
            (&found["resource"], &found["holder"]["ownerId"]),
            (&json!(name), &json!(format!("o{place}")))
        );
    }
    for name in ["ab ".to_owned(), "a\0b".to_owned(), "x".repeat(12_288)] {
        let body = json!({"resource": name, "ownerId": "o", "ttlSeconds": 5});
        assert_eq!(
            server.post("/v1/locks/acquire", body).await.0,
            StatusCode::BAD_REQUEST
        );
    }
    server.close().await;
});

on_every_store!(an_idempotency_key_finds_the_lease_whose_reply_was_lost, |store| {
    // Trap 22: same key and body give the same lease and token, also after a restart; another body 409; once lost 410.
    let server = store.serve().await;
    let body = json!({"resource": "r", "ownerId": "o", "ttlSeconds": 30, "metadata": {"a": "1", "b": "2"}});
    let keyed = |server: &crate::lease::lease_server::LeaseServer, key: &str, body: &Value| {
        let request = server
            .http
            .post(format!("{}/v1/locks/acquire", server.base))
            .header("Idempotency-Key", key);
        answer(request.json(body))
    };
    let together = futures::future::join_all((0..8).map(|_| keyed(&server, "k1", &body))).await;
    let first = together[0].1.clone();
    for (status, answer) in &together {
        assert_eq!(
            (status, &answer["leaseId"]),
            (&StatusCode::OK, &first["leaseId"]),
            "{answer}"
        );
        assert_eq!(token(answer), 1);
    }
    let reordered = json!({"metadata": {"b": "2", "a": "1"}, "waitSeconds": 0, "ttlSeconds": 30, "ownerId": "o", "resource": "r"});
    assert_eq!(
        keyed(&server, "k1", &reordered).await.1["leaseId"],
        first["leaseId"]
    );
    let other = json!({"resource": "r", "ownerId": "o", "ttlSeconds": 31});
    let (status, problem) = keyed(&server, "k1", &other).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("idempotency_key_reused"))
    );
    for bad in ["", "a b", &"k".repeat(129)] {
        assert_eq!(
            keyed(&server, bad, &body).await.0,
            StatusCode::BAD_REQUEST,
            "{bad:?}"
        );
    }
    // Refused, then free: a retry with the same key tries again.
    let blocked = json!({"resource": "r", "ownerId": "p", "ttlSeconds": 30});
    assert!(!is_granted(&keyed(&server, "k2", &blocked).await.1));
    server.close().await;
    let server = store.serve().await;
    let (_, again) = keyed(&server, "k1", &body).await;
    assert_eq!((&again["leaseId"], token(&again)), (&first["leaseId"], 1));
    server.delete(&first).await;
    let (status, problem) = keyed(&server, "k1", &body).await;
    assert_eq!((status, &problem["code"]), (StatusCode::GONE, &json!("released")));
    assert_eq!(token(&keyed(&server, "k2", &blocked).await.1), 2);
    server.close().await;
});

//! Bad input: a 4xx problem that names the field, never 5xx, and no grant.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::lease_server::{LeaseStore, StoreKind, answer};

#[tokio::test]
async fn an_invalid_ttl_names_its_field() {
    // Trap 32: thirty that JSON can carry, five that it cannot.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    let url = format!("{}/v1/locks/acquire", server.base);
    let send = |body: String| {
        let request = server.http.post(&url).header("content-type", "application/json");
        answer(request.body(body))
    };
    let ttls = r#"0 -1 -0 3601 1e308 1e3 1.5 10.0 1e-1 "10" "" null true [] [10] {} 9223372036854775807 -9223372036854775808 9223372036854775808 18446744073709551616 1e400 0.0 -1.5 4294967296 2147483648 3600.0000001 "NaN" "Infinity" "1e1" "10s""#;
    let ttls: Vec<&str> = ttls.split_whitespace().collect();
    assert_eq!(ttls.len(), 30);
    for ttl in ttls {
        let (status, problem) = send(format!(r#"{{"resource":"r","ownerId":"o","ttlSeconds":{ttl}}}"#)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{ttl}: {problem}");
        let field = problem["field"].as_str().unwrap();
        assert!(
            field == "ttlSeconds" || (ttl == "1e400" && field == "body"),
            "{ttl}: {problem}"
        );
    }
    for ttl in ["NaN", "Infinity", "010", "0x10", "+1"] {
        let (status, problem) = send(format!(r#"{{"resource":"r","ownerId":"o","ttlSeconds":{ttl}}}"#)).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::BAD_REQUEST, &json!("body")),
            "{ttl}"
        );
    }
    assert_eq!(server.service.metrics().granted.read(), 0);
    server.close().await;
}

#[tokio::test]
async fn an_invalid_member_names_its_field() {
    // Hostile and oversized names, wrong types, unknown fields, broken and huge bodies, another content type.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    let url = format!("{}/v1/locks/acquire", server.base);
    let send = |body: String| {
        let request = server.http.post(&url).header("content-type", "application/json");
        answer(request.body(body))
    };
    let good = json!({"resource": "r", "ownerId": "o", "ttlSeconds": 10});
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body.to_string()
    };
    for (body, field) in [
        (with("resource", json!("")), "resource"),
        (with("resource", json!("a\0")), "resource"),
        (with("resource", json!("x".repeat(513))), "resource"),
        (with("resource", json!("a\u{202e}b")), "resource"),
        (with("resource", json!(" a")), "resource"),
        (with("resource", json!(7)), "resource"),
        (with("ownerId", json!("o".repeat(257))), "ownerId"),
        (with("ownerId", Value::Null), "ownerId"),
        (with("waitSeconds", json!(61)), "waitSeconds"),
        (with("waitSeconds", json!(0.5)), "waitSeconds"),
        (with("metadata", json!([])), "metadata"),
        (with("metadata", json!({"a": 1})), "metadata.a"),
        (with("metadata", json!({"a": "x".repeat(4_096)})), "metadata"),
        (
            r#"{"resource":"r","ownerId":"o","ttlSeconds":1,"metadata":{"a":"1","a":"2"}}"#.to_owned(),
            "metadata",
        ),
        (with("ttl", json!(1)), "ttl"),
        (r#"{"resource":"r","ownerId":"o","ttlSec"#.to_owned(), "body"),
        ("[]".to_owned(), "body"),
        (String::new(), "body"),
        (
            r#"{"resource":"\ud800","ownerId":"o","ttlSeconds":1}"#.to_owned(),
            "body",
        ),
        ("[".repeat(10_000), "body"),
    ] {
        let (status, problem) = send(body).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{problem}"
        );
        assert_eq!(
            (&problem["code"], problem["detail"].is_string()),
            (&json!("invalid"), true)
        );
    }
    assert_eq!(
        send(with("metadata", json!({"a": "x".repeat(70_000)}))).await.0,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let plain = answer(
        server
            .http
            .post(&url)
            .header("content-type", "text/plain")
            .body(good.to_string()),
    )
    .await;
    assert_eq!(plain.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(server.service.metrics().granted.read(), 0);
    server.close().await;
}

#[tokio::test]
async fn an_invalid_parameter_names_its_field() {
    // Of the listing, and a resource that is no name.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=%25",
        "prefix=%00",
        "nope=1",
    ] {
        let (status, problem) = server.get(&format!("/v1/locks?{query}")).await;
        let field = query.split('=').next().unwrap();
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{query}"
        );
    }
    for name in ["%FF", "%00", "%20x"] {
        let (status, problem) = server.get(&format!("/v1/resources/{name}")).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::BAD_REQUEST, &json!("resource")),
            "{name}"
        );
    }
    assert_eq!(server.service.metrics().granted.read(), 0);
    server.close().await;
}

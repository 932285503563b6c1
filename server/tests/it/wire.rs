//! Snapshots of everything that programs read: bodies of the HTTP API, events, notifications, JSON of the command line, metrics.
//!
//! A snapshot is a file in `wire/snapshots`. After an intended change write them again with
//! `INSTA_UPDATE=always cargo nextest run … -E 'test(wire::)'` and review the diff.

mod alerts;
mod command_line;
mod events;
mod http_client;
mod identity;
mod inventory;
mod leases;
pub(crate) mod metrics;
mod notifications;
mod problems;
mod redaction;
mod unlocks;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::TestServer;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wire/snapshots");

/// Compares with the snapshot of this name, without what differs from run to run.
pub(crate) fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(FOLDER);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, redaction::redacted(text)));
}

/// As [`assert_snapshot`], of JSON without its sentences.
pub(crate) fn assert_shape_snapshot(name: &str, value: &Value) {
    assert_snapshot(name, &shape(value));
}

/// Indented JSON without its sentences.
fn shape(value: &Value) -> String {
    redaction::without_sentences(&serde_json::to_string_pretty(value).unwrap())
}

/// Of the success body of an endpoint.
fn endpoint_snapshot_name(method: &str, path: &str) -> String {
    let path = path.replace(['{', '}'], "").replace('/', "-");
    format!("{}{path}", method.to_lowercase())
}

#[tokio::test]
async fn every_endpoint_with_a_json_body_has_a_snapshot() {
    // Read from the OpenAPI description, so that a new endpoint without a snapshot fails here.
    let server = TestServer::builder().operator().start().await;
    let description = server.json("/v1/openapi.json").await;
    let mut names = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            let has_body = responses.iter().any(|(status, response)| {
                status.starts_with('2') && response["content"]["application/json"].is_object()
            });
            if has_body {
                names.insert(endpoint_snapshot_name(method, path));
            }
        }
    }
    assert!(names.len() > 30, "{names:?}");
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| !Path::new(FOLDER).join(format!("{name}.snap")).exists())
        .collect();
    assert!(missing.is_empty(), "endpoints without a snapshot: {missing:#?}");
}

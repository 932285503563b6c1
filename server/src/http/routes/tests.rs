use std::collections::BTreeSet;

use app::pages::{PAGES, SETTINGS};
use axum::http::Method;

use super::*;
use crate::http::auth::route_permissions;

#[test]
fn handlers_are_described_with_the_method_and_path_of_their_row() {
    // The authentication layer would refuse a route whose handler declares another path than its row: both lists must be equal.
    let document = serde_json::to_value(&*DESCRIPTION).unwrap();
    let mut described = BTreeSet::new();
    for (path, calls) in document["paths"].as_object().unwrap() {
        for method in calls.as_object().unwrap().keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let table = TABLE
        .iter()
        .map(|row| (row.method.to_owned(), row.path.to_owned()));
    let table: BTreeSet<_> = table.collect();
    assert_eq!(table.len(), TABLE.len(), "a row is in the table twice");
    let missing: Vec<_> = described.difference(&table).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let not_described = table
        .difference(&described)
        .filter(|(_, path)| path.starts_with("/v1/"));
    let not_described: Vec<_> = not_described.map(|(_, path)| path.as_str()).collect();
    assert_eq!(not_described, ["/v1/openapi.json"]);
}

#[test]
fn navigation_entries_have_the_permission_of_their_route() {
    let access = |path| route_permissions::access(&Method::GET, Some(path));
    let pages = PAGES.iter().map(|entry| (entry.path, entry.permission));
    let sections = SETTINGS.iter().map(|entry| (entry.path, entry.permission));
    for (path, permission) in pages.chain(sections) {
        assert_eq!(access(path), Some(permission.map_or(SignedIn, May)), "{path}");
    }
}

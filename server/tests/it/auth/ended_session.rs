//! What a form keeps when its session ended while it was filled in.

use std::collections::BTreeSet;

use app::forms::reply::TypedFields;
use domain::access::Role;
use domain::alerts::ConditionKind;

use crate::support::html::Html;
use crate::support::{TestServer, on};
use crate::unlock::pages::{address, begun, see};

/// Fields that may hold a secret: typed again after signing in.
const SECRET: [&str; 1] = ["urls"];

#[tokio::test]
async fn forms_keep_all_their_fields_but_secrets() {
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Admin, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let mut paths: Vec<String> = ConditionKind::ALL
        .iter()
        .map(|kind| format!("/alerts/rules/new?condition={}", kind.as_str()))
        .collect();
    paths.extend([
        address(&held),
        begun(&server, &ada, &held).await,
        "/unlocks?backend=builtin".to_owned(),
        format!("/settings/users/{}", server.user_id("ada")),
    ]);
    let plain = [
        "/",
        "/alerts",
        "/alerts/silences/new",
        "/alerts/receivers",
        "/audit",
        "/settings",
        "/settings/users",
        "/settings/tokens",
        "/settings/sessions",
        "/settings/protected-prefixes",
    ];
    paths.extend(plain.map(str::to_owned));
    let mut fields = BTreeSet::new();
    for path in &paths {
        let page = see(&server, &ada, path).await;
        fields.extend(Html::parse(&page.is(200).text).posted_fields);
    }
    for known in ["reason", "version", "line", "lasts", "role"] {
        assert!(fields.contains(known), "{known} is on no page: {fields:?}");
    }
    let is_left_out =
        |name: &&String| TypedFields::without_secrets(vec![((*name).clone(), "x".to_owned())]).has_secret;
    let left_out: Vec<&String> = fields.iter().filter(is_left_out).collect();
    assert_eq!(left_out, SECRET);
}

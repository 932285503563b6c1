//! Where a state is shown, and that all of them agree: the inventory, the lock's detail, the list page, the tree, the alert.

use crate::support::TestServer;
use domain::alerts::ConditionKind;
use domain::names::{BackendName, LockId, Resource, Source};
use domain::state::LockState;
use serde_json::Value;

use testkit::eventually;

/// A lock by its name.
pub(super) fn lock(backend: &str, source: &str, resource: &str) -> LockId {
    LockId {
        backend: BackendName::parse(backend).unwrap(),
        source: Source::parse(source).unwrap(),
        resource: Resource::from(resource),
    }
}

fn detail_path(lock: &LockId) -> String {
    let name: String = url::form_urlencoded::byte_serialize(lock.resource.as_bytes()).collect();
    let source: String = url::form_urlencoded::byte_serialize(lock.source.as_str().as_bytes()).collect();
    format!(
        "/v1/inventory/{}/{}?source={source}",
        lock.backend,
        name.replace('+', "%20")
    )
}

pub(super) async fn detail(console: &TestServer, lock: &LockId) -> Value {
    console.json(&detail_path(lock)).await
}

/// The sentence for a state of the lock, where it holds.
pub(super) fn reason(detail: &Value, state: LockState) -> Option<String> {
    let reasons = detail["reasons"].as_array()?;
    let found = reasons.iter().find(|reason| reason["state"] == state.as_str())?;
    found["why"].as_str().map(str::to_owned)
}

pub(super) async fn is_listed(console: &TestServer, state: LockState, lock: &LockId) -> bool {
    let path = format!(
        "/v1/inventory?state={}&backend={}&limit=1000",
        state.as_str(),
        lock.backend
    );
    let page = console.json(&path).await;
    let locks = page["locks"].as_array().unwrap();
    locks
        .iter()
        .any(|row| row["resource"] == lock.resource.text() && row["state"] == state.as_str())
}

/// The page of the list has a row for it, with the shape of the state.
async fn is_on_page(console: &TestServer, state: LockState, lock: &LockId) -> bool {
    let path = format!("/locks?state={}&backend={}", state.as_str(), lock.backend);
    let page = console.get(&path).await.text().await.unwrap();
    let link = app::links::lock_path(lock).replace('&', "&amp;");
    page.contains(&format!("\"{link}\"")) && page.contains(&format!("#s-{}", state.as_str()))
}

/// The number in the tree, at the segment of the lock.
async fn is_counted(console: &TestServer, state: LockState, lock: &LockId) -> bool {
    let tree = console.json("/v1/prefixes?prefix=").await;
    let name = lock.resource.text();
    let children = tree["children"].as_array().unwrap();
    children.iter().any(|child| {
        name.starts_with(child["prefix"].as_str().unwrap())
            && child["states"][state.as_str()].as_u64().unwrap_or(0) > 0
    })
}

/// Pending or firing.
pub(super) async fn alert(console: &TestServer, rule: &str, lock: &LockId) -> Option<Value> {
    let alerts = console.json("/v1/alerts").await;
    let found = alerts["alerts"].as_array().unwrap().iter().find(|alert| {
        alert["rule"] == rule
            && alert["labels"]["resource"] == lock.resource.text()
            && alert["labels"]["backend"] == lock.backend.as_str()
    });
    found.cloned()
}

/// Until every surface shows the state.
pub(super) async fn shows(console: &TestServer, state: LockState, lock: &LockId) {
    let wire = state.as_str();
    let name = lock.resource.text();
    eventually(&format!("{name} is {wire} everywhere"), async || {
        let detail = detail(console, lock).await;
        let has_alert = match ConditionKind::parse(wire) {
            Some(_) => alert(console, wire, lock).await.is_some(),
            None => true,
        };
        has_alert
            && detail["state"] == wire
            && reason(&detail, state).is_some_and(|why| why.ends_with('.'))
            && is_listed(console, state, lock).await
            && is_on_page(console, state, lock).await
            && is_counted(console, state, lock).await
    })
    .await;
}

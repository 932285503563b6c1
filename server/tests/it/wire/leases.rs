//! The lease service and fencing.

use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::http_client::SnapshotClient;
use crate::support::{TestServer, on};

#[tokio::test]
async fn bodies_of_leases_and_fencing() {
    let server = TestServer::builder().start().await;
    let operator = server.token("operator", on(Role::Operator, None, None)).await;
    let client = SnapshotClient {
        server: &server,
        caller: &operator,
    };
    let acquire = json!({
        "resource": "jobs/nightly", "ownerId": "worker-1", "ttlSeconds": 600, "metadata": {"host": "db-1"}
    });
    let lease = client.post("/v1/locks/acquire", acquire).await;
    let id = lease["leaseId"].as_str().unwrap();
    client.get("/v1/locks").await;
    let path = format!("/v1/locks/{id}");
    client
        .send(Method::GET, "/v1/locks/{leaseId}", &path, Value::Null)
        .await;
    let renew = format!("{path}/renew");
    client
        .send(Method::POST, "/v1/locks/{leaseId}/renew", &renew, json!({}))
        .await;
    let resource = "/v1/resources/jobs%2Fnightly";
    client
        .send(Method::GET, "/v1/resources/{resource}", resource, Value::Null)
        .await;
    let operations = json!({"operations": [
        {"acquire": {"resource": "jobs/weekly", "ownerId": "worker-1", "ttlSeconds": 600}},
        {"acquire": {"resource": "jobs/nightly", "ownerId": "worker-2", "ttlSeconds": 600}},
        {"renew": {"leaseId": id}},
        {"release": {"leaseId": "01980000-0000-7000-8000-000000000000"}},
    ]});
    client.post("/v1/locks/batch", operations).await;
    let check = json!({"resource": "jobs/nightly", "fencingToken": 1, "source": "orders-db"});
    client.post("/v1/fencing/check", check).await;
    client
        .send(Method::DELETE, "/v1/locks/{leaseId}", &path, Value::Null)
        .await;
}

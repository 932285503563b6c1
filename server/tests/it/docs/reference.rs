//! The examples of the reference, run unchanged by a shell against a real server.

use crate::support::{TestServer, on};
use std::collections::BTreeMap;
use std::process::Stdio;

use domain::access::Role;
use serde_json::Value;
use tokio::process::Command;

const PARTS: [&str; 8] = [
    "inventory",
    "leases",
    "fencing",
    "unlocks",
    "alerts",
    "users",
    "audit",
    "health",
];

/// Of each operation its anchor and its example.
fn examples(page: &str) -> Vec<(String, String)> {
    let sections = page
        .split("<section ")
        .filter(|section| section.contains("class=\"op\""));
    let example = |section: &str| {
        let (_, id) = section.split_once("id=\"").unwrap();
        let (_, rest) = section.split_once("Example</h3>").unwrap();
        let (_, rest) = rest.split_once("class=\"doc-pre\">").unwrap();
        let text = rest.split("</pre>").next().unwrap();
        let text = text
            .replace("<!>", "")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&#x27;", "'")
            .replace("&amp;", "&");
        (id.split('"').next().unwrap().to_owned(), text)
    };
    sections.map(example).collect()
}

/// Whether it succeeded, and its output.
async fn shell(script: &str, variables: &BTreeMap<&str, String>) -> (bool, String) {
    let output = Command::new("sh")
        .args(["-euc", script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(variables)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(
        !text.contains("curl: not found"),
        "install it with: apt-get install -y curl"
    );
    (output.status.success(), text)
}

/// Objects that the examples use, made by the examples themselves.
struct ReferenceRun {
    server: TestServer,
    variables: BTreeMap<&'static str, String>,
    examples: BTreeMap<String, String>,
}

impl ReferenceRun {
    async fn start() -> Self {
        let server = TestServer::builder().redis().start().await;
        let token = server.token("root", on(Role::Admin, None, None)).await;
        let mut variables = BTreeMap::from([
            ("LEASEHOLD_SERVER", server.url("")),
            ("LEASEHOLD_TOKEN", token.secret().to_owned()),
            ("BACKEND", "builtin".to_owned()),
            ("RESOURCE", "billing:close:2026-04".to_owned()),
            ("RECEIVER", "ops".to_owned()),
            ("RULE_ID", "billing_long".to_owned()),
        ]);
        for nothing in ["NOTIFICATION_ID", "ALERT_ID"] {
            variables.insert(nothing, "1".to_owned());
        }
        let mut examples = BTreeMap::new();
        for part in PARTS {
            let request = reqwest::Client::new().get(server.url(&format!("/docs/api/{part}")));
            let page = request
                .bearer_auth(token.secret())
                .send()
                .await
                .unwrap()
                .text()
                .await
                .unwrap();
            examples.extend(self::examples(&page));
        }
        Self {
            server,
            variables,
            examples,
        }
    }

    /// Runs the example of an operation; it must succeed. Its answer, where it is JSON.
    async fn run(&mut self, id: &str) -> Value {
        let script = self
            .examples
            .remove(id)
            .unwrap_or_else(|| panic!("no {id} in {:?}", self.examples.keys()));
        let (done, printed) = shell(&script, &self.variables).await;
        assert!(done, "{id}\n{script}\n{printed}");
        serde_json::from_str(&printed).unwrap_or_default()
    }

    /// Runs it; it must be refused with this code, because the object that it names does not exist.
    async fn run_refused(&mut self, id: &str, code: &str) {
        let script = self.examples.remove(id).unwrap_or_else(|| panic!("no {id}"));
        let (done, printed) = shell(&script, &self.variables).await;
        assert!(
            !done && printed.contains(&format!("\"code\":\"{code}\"")),
            "{id}\n{script}\n{printed}"
        );
    }

    fn keep(&mut self, variable: &'static str, value: &Value) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.variables.insert(variable, text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_reference_runs() {
    // Ordered so that each example finds the objects that it names; the remaining ones only read.
    let mut reference = ReferenceRun::start().await;
    let lease = reference.run("post-v1-locks-acquire").await;
    reference.keep("LEASE_ID", &lease["leaseId"]);
    reference.run("post-v1-locks-leaseid-renew").await;
    reference.run("post-v1-locks-batch").await;
    let user = reference.run("post-v1-users").await;
    reference.keep("USER_ID", &user["id"]);
    for id in [
        "put-v1-users-id-grants",
        "put-v1-users-id-password",
        "post-v1-users-id-link",
    ] {
        reference.run(id).await;
    }
    reference.run("post-v1-users-id-disable").await;
    reference.run("post-v1-users-id-enable").await;
    // By its name.
    let token = reference.run("post-v1-tokens").await;
    assert!(token["token"].is_string(), "{token}");
    reference.keep("TOKEN_ID", &"billing".into());
    reference.run("delete-v1-tokens-id").await;
    reference.run("put-v1-protected-prefixes").await;
    let protected_prefixes = reference.run("get-v1-protected-prefixes").await;
    reference.keep(
        "PROTECTED_PREFIX_ID",
        &protected_prefixes["protectedPrefixes"][0]["id"],
    );
    reference.run("delete-v1-protected-prefixes-id").await;
    reference.run("post-v1-receivers").await;
    reference.run("put-v1-receivers-name").await;
    reference.run("delete-v1-receivers-name").await;
    reference
        .run_refused("post-v1-receivers-name-test", "not_found")
        .await;
    reference.run("put-v1-rules").await;
    reference.run("post-v1-rules-preview").await;
    reference.run("delete-v1-rules-id").await;
    let silence = reference.run("post-v1-silences").await;
    reference.keep("SILENCE_ID", &silence["id"]);
    reference.run("delete-v1-silences-id").await;
    reference
        .run_refused("post-v1-notifications-id-retry", "not_found")
        .await;
    reference.run_refused("post-v1-alerts-id-ack", "not_found").await;
    reference
        .server
        .add_user("sam", on(Role::Viewer, None, None))
        .await;
    let _browser = reference.server.signed_in("sam").await;
    let sessions = reference.run("get-v1-sessions").await;
    reference.keep("SESSION_ID", &sessions["sessions"][0]["id"]);
    reference.run("delete-v1-sessions-id").await;
    unlocks(&mut reference).await;
    reference.run("delete-v1-locks-leaseid").await;
    let left: Vec<String> = reference.examples.keys().cloned().collect();
    for id in left {
        if id.ends_with("events") {
            // It never ends by itself.
            continue;
        }
        assert!(
            id.starts_with("get-") || id.starts_with("post-v1-fencing") || id == "put-v1-read-only",
            "{id}"
        );
        reference.run(&id).await;
    }
}

/// Review and confirm on the built-in lease, then the requests refused afterwards; the bulk unlock on locks that do
/// not exist.
async fn unlocks(reference: &mut ReferenceRun) {
    let path = "/v1/inventory/builtin/billing:close:2026-04";
    let token = reference.variables["LEASEHOLD_TOKEN"].clone();
    let url = reference.server.url(path);
    let found = std::cell::RefCell::new(Value::Null);
    testkit::eventually("the lease is in the inventory", || async {
        let answer = reqwest::Client::new()
            .get(&url)
            .bearer_auth(&token)
            .send()
            .await
            .unwrap();
        let seen: Value = answer.json().await.unwrap_or_default();
        let is_there = seen["generation"].is_string();
        found.replace(seen);
        is_there
    })
    .await;
    reference.keep("GENERATION", &found.take()["generation"]);
    reference.run("get-v1-inventory-backend-resource").await;
    let several = reference.run("post-v1-unlocks-bulk").await;
    reference.keep("UNLOCK_ID", &several["results"][0]["unlock"]["unlockId"]);
    reference.run("post-v1-unlocks-unlockid-cancel").await;
    reference.run("post-v1-unlocks-bulk-confirm").await;
    // No user approves or reviews their own request.
    let intent = reference.run("post-v1-unlocks").await;
    reference.keep("UNLOCK_ID", &intent["unlockId"]);
    reference
        .run_refused("post-v1-unlocks-unlockid-approve", "forbidden")
        .await;
    let done = reference.run("post-v1-unlocks-unlockid-confirm").await;
    assert_eq!(done["state"], "released", "{done}");
    reference
        .run_refused("post-v1-unlocks-unlockid-review", "forbidden")
        .await;
}

//! Names, owners and rule names try to add fields to notifications, and markup to Slack
//! messages.

use crate::support::{TestServer, bearer, token};
use domain::access::Role;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::support::webhook_sink::WebhookSink;

const HOSTILE: &str = "x\"},{\"status\":\"resolved\"}]\\<!channel><http://evil.test|ok>*_`{{ .Labels }}";
const HARMLESS: &str = "a plain name of the same kind, without any sign that has a meaning there";

const TOML: &str = "[notify]\nallowed_networks = [\"127.0.0.1/32\"]\n";

/// The first message of each kind of receiver, about a refused write whose every text is this one.
async fn messages(text: &str) -> Vec<Value> {
    let console = TestServer::builder().config(TOML).operator().start().await;
    let admin = token(&console.serving, Role::Admin).await;
    let operator = token(&console.serving, Role::Operator).await;
    let send = async |token: &str, method: Method, path: &str, body: Value| {
        let request = Client::new()
            .request(method, console.url(path))
            .headers(bearer(token));
        let answer = request.json(&body).send().await.unwrap();
        assert!(
            answer.status().is_success(),
            "{path}: {}",
            answer.text().await.unwrap()
        );
    };
    let mut sinks = Vec::new();
    for kind in ["webhook", "alertmanager", "slack"] {
        let sink = WebhookSink::open().await;
        let mut receiver = json!({"name": kind, "kind": kind, "urls": [sink.url]});
        if kind == "webhook" {
            receiver["secret"] = json!("a secret of thirty-two characters");
        }
        send(admin.expose(), Method::POST, "/v1/receivers", receiver).await;
        sinks.push(sink);
    }
    let rule = json!({
        "id": "fencing_rejections", "name": text, "condition": "fencing_rejections", "anyPrefix": true,
        "template": "write refused on {resource} of {owner}: {why}"
    });
    send(admin.expose(), Method::PUT, "/v1/rules", rule).await;
    let rejection = json!({
        "resource": text, "ownerId": text, "source": text, "fencingToken": 3, "highestToken": 5
    });
    send(
        operator.expose(),
        Method::POST,
        "/v1/fencing/rejections",
        rejection,
    )
    .await;
    let mut messages = Vec::new();
    for sink in &sinks {
        messages.push(sink.wait_for(1).await[0].json());
    }
    messages
}

/// Its fields and the types of their values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("bool"),
        Value::Null => Value::Null,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_texts_add_no_field_to_a_notification() {
    let (hostile, harmless) = futures::join!(messages(HOSTILE), messages(HARMLESS));
    for (hostile, harmless) in hostile.iter().zip(&harmless) {
        assert_eq!(shape(hostile), shape(harmless), "{hostile}\n{harmless}");
    }
    let [webhook, alertmanager, slack] = hostile.try_into().unwrap();
    assert_eq!(webhook["alerts"][0]["labels"]["resource"], HOSTILE, "{webhook}");
    assert_eq!(alertmanager[0]["labels"]["resource"], HOSTILE, "{alertmanager}");
    // What Slack reads as markup is the text of the message and the context; the rest is plain.
    let text = slack["text"].as_str().unwrap();
    assert!(
        text.contains("&lt;!channel&gt;") && !text.contains('<'),
        "{slack}"
    );
    for block in slack["blocks"].as_array().unwrap() {
        let elements = block["elements"].as_array().into_iter().flatten();
        for part in elements.chain([&block["text"]]) {
            let text = part["text"].as_str().unwrap_or_default();
            let is_link = text.starts_with("<http://127.0.0.1:") && text.ends_with("|Open in Leasehold>");
            let is_one_link = is_link && text.matches('<').count() == 1 && text.matches('|').count() == 1;
            assert!(part["type"] != "mrkdwn" || is_one_link, "{part}");
        }
    }
}

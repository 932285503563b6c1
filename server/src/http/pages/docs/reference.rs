//! The reference: every operation of the description that the server serves, grouped by tag.

use app::pages::docs::{ApiPart, Operation, ParameterRow, ResponseExample};
use axum::http::Method;
use domain::access::{Permission, Role};
use serde_json::Value;
use utoipa::openapi::OpenApi;

use super::curl::curl;
use super::schema;
use crate::http::auth::route_permissions::{Access, access};

pub(super) fn parts(description: &OpenApi) -> Vec<ApiPart> {
    // Does not fail: the description itself is served as JSON.
    let document = serde_json::to_value(description).unwrap_or_default();
    let mut operations = Vec::new();
    for (path, calls) in document["paths"].as_object().into_iter().flatten() {
        for (method, call) in calls.as_object().into_iter().flatten() {
            let tag = call["tags"][0].as_str().unwrap_or_default().to_owned();
            operations.push((tag, operation(&document, method, path, call)));
        }
    }
    let tags = document["tags"].as_array().into_iter().flatten();
    let part = |tag: &Value| {
        let name = tag["name"].as_str().unwrap_or_default();
        let of_tag = operations.iter().filter(|(tag, _)| tag == name);
        ApiPart {
            path: format!("/docs/api/{name}"),
            title: capitalize(name),
            lead: format!("{}.", tag["description"].as_str().unwrap_or_default()),
            operations: of_tag.map(|(_, operation)| operation.clone()).collect(),
        }
    };
    tags.map(part).collect()
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
    first.unwrap_or_default() + chars.as_str()
}

fn operation(document: &Value, method: &str, path: &str, call: &Value) -> Operation {
    let all = &document["components"]["schemas"];
    let method = method.to_uppercase();
    let body = &call["requestBody"]["content"]["application/json"]["schema"];
    let access = access(&method.parse().unwrap_or(Method::GET), Some(path));
    let is_open = access == Some(Access::Public);
    let text = |key: &str| call[key].as_str().unwrap_or_default().replace('\n', " ");
    let is_stream = call["responses"]["200"]["content"]["text/event-stream"].is_object();
    Operation {
        id: anchor(&method, path),
        summary: text("summary"),
        text: text("description"),
        needs: access_text(access),
        parameters: parameters(all, call),
        body: schema::rows(all, body),
        answers: responses(all, call),
        curl: curl(&method, path, example(all, body).as_ref(), is_open, is_stream),
        path: path.to_owned(),
        method,
    }
}

/// `post-v1-locks-acquire`
fn anchor(method: &str, path: &str) -> String {
    let segments = path.split(|c: char| !c.is_alphanumeric());
    let segments = segments.filter(|segment| !segment.is_empty());
    let parts = std::iter::once(method).chain(segments);
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

fn example(all: &Value, body: &Value) -> Option<Value> {
    let choices = body["oneOf"].as_array().into_iter().flatten();
    let mut schemas = choices.chain([body]).filter_map(|schema| {
        let name = schema["$ref"].as_str()?.rsplit('/').next()?;
        Some(&all[name]["example"])
    });
    schemas.find(|example| !example.is_null()).cloned()
}

fn access_text(access: Option<Access>) -> String {
    match access {
        Some(Access::Public) => "Public: needs no token.".to_owned(),
        Some(Access::May(permission)) => format!("For {}.", roles(permission)),
        Some(Access::SignedIn) | None => "For every signed-in user and every API token.".to_owned(),
    }
}

fn roles(permission: Permission) -> String {
    let permitted = Role::ALL
        .into_iter()
        .filter(|role| role.rights().contains(&permission));
    let names: Vec<&str> = permitted.map(Role::as_str).collect();
    match names.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("the roles {} and {last}", all.join(", ")),
        single => format!("the role {}", single.concat()),
    }
}

fn parameters(all: &Value, call: &Value) -> Vec<ParameterRow> {
    let listed = call["parameters"].as_array().into_iter().flatten();
    let row = |parameter: &Value| ParameterRow {
        name: parameter["name"].as_str().unwrap_or_default().to_owned(),
        location: parameter["in"].as_str().unwrap_or_default().to_owned(),
        kind: schema::kind(all, &parameter["schema"]),
        is_required: parameter["required"] == true,
        text: parameter["description"].as_str().unwrap_or_default().to_owned(),
    };
    listed.map(row).collect()
}

fn responses(all: &Value, call: &Value) -> Vec<ResponseExample> {
    let listed = call["responses"].as_object().into_iter().flatten();
    let response_example = |(status, response): (&String, &Value)| {
        let contents = response["content"].as_object().into_iter().flatten();
        let contents: Vec<(&String, &Value)> = contents.collect();
        let is_problem = contents.iter().any(|(kind, _)| kind.ends_with("problem+json"));
        let description = response["description"].as_str().unwrap_or_default();
        let kinds = contents
            .iter()
            .map(|(kind, _)| format!("`{kind}`"))
            .collect::<Vec<_>>();
        let text = match (description, kinds.is_empty()) {
            ("", true) => "No description.".to_owned(),
            ("", false) if is_problem => format!("a problem: {}", default_description(status)),
            ("", false) => kinds.join(", "),
            (description, _) if is_problem => format!("a problem: {description}"),
            (description, true) => description.to_owned(),
            (description, false) => format!("{description} ({})", kinds.join(", ")),
        };
        let rows = contents.first().filter(|_| !is_problem);
        let rows = rows.map(|(_, content)| schema::rows(all, &content["schema"]));
        ResponseExample {
            status: status.clone(),
            text,
            rows: rows.unwrap_or_default(),
        }
    };
    listed.map(response_example).collect()
}

/// Default description of a problem with this status.
fn default_description(status: &str) -> &'static str {
    match status {
        "400" => "a parameter or a field is wrong; `field` names it",
        "401" => "`unauthenticated`",
        "403" => "`forbidden`",
        "404" => "`not_found`",
        "409" => "conflicts with the current state; `code` says how",
        "410" => "it is over",
        "413" => "`body_too_large`",
        "415" => "`unsupported_media_type`: the body must be JSON",
        "422" => "the request is valid, but rejected; `code` names the cause",
        "503" => "the store does not answer; retry after `Retry-After`",
        _ => "`code` says which",
    }
}

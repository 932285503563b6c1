//! Requests made from an OpenAPI document: valid ones, ones with a single mistake, and hostile ones.

use serde_json::{Map, Value, json};

use crate::support::rng::Dice;

/// One method on one path.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) method: String,
    pub(super) path: String,
    /// Names of parameters in the query.
    query: Vec<String>,
    /// Names and JSON types of the body's fields.
    body: Option<Vec<(String, String)>>,
}

#[derive(Debug, Clone)]
pub(super) struct GeneratedRequest {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, Vec<u8>)>,
    pub(super) body: Option<Vec<u8>>,
}

impl Operation {
    pub(super) fn all(document: &Value) -> Vec<Self> {
        let mut all = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                let query = parameters.iter().filter(|it| it["in"] == "query");
                all.push(Self {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    query: query.map(|it| it["name"].as_str().unwrap().to_owned()).collect(),
                    body: fields(document, operation),
                });
            }
        }
        all
    }
}

fn fields(document: &Value, operation: &Value) -> Option<Vec<(String, String)>> {
    let content = operation["requestBody"]["content"].as_object()?;
    let schema = &content.values().next()?["schema"];
    // Optional bodies are one of null and the type.
    let named = std::iter::once(schema)
        .chain(schema["oneOf"].as_array().into_iter().flatten())
        .find_map(|it| it["$ref"].as_str())?;
    let schema = document.pointer(named.strip_prefix('#')?)?;
    let kind = |of: &Value| match &of["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds[0].as_str().unwrap_or("string").to_owned(),
        _ => "object".to_owned(),
    };
    let properties = schema["properties"].as_object()?;
    Some(
        properties
            .iter()
            .map(|(name, of)| (name.clone(), kind(of)))
            .collect(),
    )
}

pub(super) struct Generator {
    dice: Dice,
    lease: String,
}

const TEXTS: [&str; 14] = [
    "kept",
    "a",
    "",
    " ",
    "trailing ",
    "nul\u{0}",
    "bidi\u{202e}evil",
    "caf\u{e9}",
    "cafe\u{301}",
    "\u{1f512}",
    "'; DROP TABLE leases; --",
    "%_%",
    "<script>alert(1)</script>",
    "..",
];
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "30",
    "1.5",
    "10.0",
    "1e3",
    "1e308",
    "1e999",
    "-0",
    "9223372036854775807",
    "9223372036854775808",
    "9007199254740992",
    "-9223372036854775809",
];
const KINDS: [&str; 8] = [
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "application/x-www-form-urlencoded",
    "",
    "multipart/form-data",
    "application/json\u{e9}",
    "APPLICATION/JSON",
];

impl Generator {
    pub(super) fn new(dice: Dice, lease: String) -> Self {
        Self { dice, lease }
    }

    pub(super) fn request(&mut self, operation: &Operation) -> GeneratedRequest {
        let mut method = operation.method.clone();
        if self.dice.percent(2) {
            method = (*self
                .dice
                .pick(&["PUT", "PATCH", "DELETE", "POST", "OPTIONS", "BREW"]))
            .to_owned();
        }
        let mut target: Vec<String> = Vec::new();
        for segment in operation.path.split('/') {
            target.push(if segment.starts_with('{') {
                self.segment(segment)
            } else {
                segment.to_owned()
            });
        }
        let mut target = target.join("/");
        target.push_str(&self.query(&operation.query));
        let mut headers: Vec<(&'static str, Vec<u8>)> = Vec::new();
        let body = operation.body.as_ref().map(|fields| self.body(fields));
        if body.is_some() {
            let kind = if self.dice.percent(85) {
                KINDS[0]
            } else {
                self.dice.pick(&KINDS)
            };
            headers.push(("content-type", kind.as_bytes().to_vec()));
        }
        if self.dice.percent(5) {
            let key = self
                .dice
                .pick(&["key-1", "", "with space", "k\u{e9}y", &"k".repeat(129)])
                .as_bytes()
                .to_vec();
            headers.push(("idempotency-key", key));
        }
        if self.dice.percent(5) {
            headers.push((
                "last-event-id",
                self.text().replace(['\0', '\n'], "").into_bytes(),
            ));
        }
        GeneratedRequest {
            method,
            target,
            headers,
            body,
        }
    }

    fn segment(&mut self, name: &str) -> String {
        match self.dice.below(4) {
            0 if name.contains("lease") => self.lease.clone(),
            0 => "kept".to_owned(),
            1 => "00000000-0000-7000-8000-000000000000".to_owned(),
            _ => {
                let bytes = if self.dice.percent(20) {
                    self.bytes()
                } else {
                    self.text().into_bytes()
                };
                // An empty one would be another path.
                if bytes.is_empty() {
                    "%20".to_owned()
                } else {
                    encoded(&bytes)
                }
            }
        }
    }

    fn query(&mut self, names: &[String]) -> String {
        let mut parts = Vec::new();
        for name in names {
            if self.dice.percent(40) {
                let value = if self.dice.percent(50) {
                    self.number()
                } else {
                    self.text()
                };
                let value = if self.dice.percent(10) {
                    encoded(&self.bytes())
                } else {
                    encoded(value.as_bytes())
                };
                parts.push(format!("{name}={value}"));
                if self.dice.percent(5) {
                    parts.push(format!("{name}={value}"));
                }
            }
        }
        if self.dice.percent(10) {
            parts.push(
                (*self
                    .dice
                    .pick(&["unknown=1", "=", "&&", "limit", "cursor=%FF", "a[]=1"]))
                .to_owned(),
            );
        }
        if parts.is_empty() {
            String::new()
        } else {
            format!("?{}", parts.join("&"))
        }
    }

    /// A valid body, then perhaps with one mistake in a field, then perhaps with one in its text.
    fn body(&mut self, fields: &[(String, String)]) -> Vec<u8> {
        let mut members = Vec::new();
        for (name, kind) in fields {
            let value = match (name.as_str(), kind.as_str()) {
                ("waitSeconds", _) => "0".to_owned(),
                ("resource", _) => json!(format!("fuzz:{}", self.dice.below(9))).to_string(),
                ("at", _) => "\"2026-04-30T23:59:01Z\"".to_owned(),
                (_, "integer") => self.dice.below(40).to_string(),
                (_, "object") => "{\"host\":\"a\"}".to_owned(),
                _ => "\"worker-7\"".to_owned(),
            };
            members.push((name.clone(), value));
        }
        if self.dice.percent(70) && !members.is_empty() {
            let place = self.dice.below(members.len());
            self.spoil(&mut members, place);
        }
        let texts: Vec<String> = members
            .iter()
            .map(|(name, value)| format!("{}:{value}", json!(name)))
            .collect();
        let text = format!("{{{}}}", texts.join(","));
        match self.dice.below(20) {
            0 => text.as_bytes()[..self.dice.below(text.len())].to_vec(),
            1 => self.bytes(),
            2 => (*self.dice.pick(&[
                "",
                "null",
                "[]",
                "1",
                "\"x\"",
                "{}",
                "{\"a\":",
                "\u{feff}{}",
                "NaN",
            ]))
            .into(),
            3 if self.dice.percent(20) => vec![b'['; 60_000],
            4 if self.dice.percent(20) => json!({"resource": "x".repeat(70_000)}).to_string().into_bytes(),
            _ => text.into_bytes(),
        }
    }

    fn spoil(&mut self, members: &mut Vec<(String, String)>, place: usize) {
        match self.dice.below(8) {
            0 => drop(members.remove(place)),
            1 => members.push(("unknown".to_owned(), "1".to_owned())),
            2 => members.push(members[place].clone()),
            3 => members[place].1 = nested(self.dice.below(200)),
            // A wait that is granted would only be slow.
            _ if members[place].0 == "waitSeconds" => members[place].1 = "-1".to_owned(),
            4 | 5 => members[place].1 = self.number(),
            _ => members[place].1 = json!(self.text()).to_string(),
        }
    }

    fn number(&mut self) -> String {
        (*self.dice.pick(&NUMBERS)).to_owned()
    }

    fn text(&mut self) -> String {
        match self.dice.below(12) {
            0 => "x".repeat(513),
            1 => "\u{1f512}".repeat(2_000),
            2 => self.lease.clone(),
            _ => (*self.dice.pick(&TEXTS)).to_owned(),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.dice.below(40);
        (0..length).map(|_| self.dice.number() as u8).collect()
    }
}

fn nested(depth: usize) -> String {
    let mut value = Value::Object(Map::new());
    for _ in 0..depth {
        value = json!([value]);
    }
    value.to_string()
}

/// Every byte but the plainest as percent and two digits.
fn encoded(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b':' => char::from(*byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

//! What a token may do. Consul leaves out what a token may not read, without an error, so an empty list proves nothing: this
//! reads the permissions.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::error::{ConsulError, ConsulErrorKind};
use super::http::Http;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Question<'a> {
    resource: &'static str,
    segment: &'a str,
    access: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    allow: bool,
}

/// Permissions of one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permissions {
    /// By configured prefix: read, write.
    Known {
        prefixes: Vec<PrefixPermissions>,
        sessions: bool,
    },
    /// The ACL system is off: anyone may do anything.
    Off,
    /// This version of Consul does not tell.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrefixPermissions {
    pub(super) prefix: String,
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Permissions {
    /// Whether sessions are listed; a rule may hide those of some nodes.
    pub(super) fn sees_sessions(&self) -> bool {
        match self {
            Self::Known { sessions, .. } => *sessions,
            Self::Off => true,
            Self::Unknown => false,
        }
    }

    /// Prefixes that the token may not read as a whole.
    pub(super) fn unreadable(&self) -> Vec<&str> {
        match self {
            Self::Known { prefixes, .. } => {
                let unreadable = prefixes.iter().filter(|permission| !permission.read);
                unreadable.map(|permission| permission.prefix.as_str()).collect()
            }
            Self::Off | Self::Unknown => Vec::new(),
        }
    }
}

pub(super) async fn permissions(http: &Http) -> Result<Permissions, ConsulError> {
    let question = |segment, access| Question {
        resource: "key",
        segment,
        access,
    };
    let prefixes = &http.settings.prefixes;
    let mut questions: Vec<Question<'_>> = Vec::with_capacity(2 * prefixes.len() + 1);
    for prefix in prefixes {
        questions.extend([question(prefix, "read"), question(prefix, "write")]);
    }
    questions.push(Question {
        resource: "session",
        segment: "",
        access: "read",
    });
    let url = http.url(&["v1", "internal", "acl", "authorize"], &[]);
    let request = http.request(Method::POST, url).json(&questions);
    let answers: Vec<Answer> = match http.json(request).await {
        Ok(answers) => answers,
        Err(fault) if fault.kind == ConsulErrorKind::AclsOff => return Ok(Permissions::Off),
        Err(fault) if fault.kind == ConsulErrorKind::NotFound => return Ok(Permissions::Unknown),
        Err(fault) => return Err(fault),
    };
    if answers.len() != questions.len() {
        return Ok(Permissions::Unknown);
    }
    let allowed = |at: usize| answers.get(at).is_some_and(|answer| answer.allow);
    let prefixes = prefixes.iter().enumerate().map(|(at, prefix)| PrefixPermissions {
        prefix: prefix.clone(),
        read: allowed(2 * at),
        write: allowed(2 * at + 1),
    });
    Ok(Permissions::Known {
        prefixes: prefixes.collect(),
        sessions: allowed(questions.len() - 1),
    })
}

/// The rule that lets a token read the keys below a prefix.
pub(super) fn read_rule(prefix: &str) -> String {
    format!("Add to the token's policy: key_prefix \"{prefix}\" {{ policy = \"read\" }}")
}

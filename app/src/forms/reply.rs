//! Replies of the server to a form: the next page, or the same page with errors or a result.
//! Never carries a secret that was typed.

use serde::{Deserialize, Serialize};

use crate::api::codec::{self, PayloadError};

/// Response to a form that a script sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FormOutcome {
    /// Done; the path of the next page, with a key for its message.
    Moved {
        to: String,
    },
    Reply(FormReply),
}

/// What a page shows in answer to a form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormReply {
    /// Path that the form was sent to.
    pub action: String,
    /// HTTP status of the response.
    pub status: u16,
    /// Error of the whole form.
    pub alert: Option<String>,
    /// Success message that contains a name, or of a form that only previewed. Fixed messages are in `done_messages`.
    pub done: Option<String>,
    /// Name of the field, and its error.
    pub faults: Vec<(String, String)>,
    pub fields: TypedFields,
    /// Named results, such as a secret that is shown once.
    pub values: Vec<(String, String)>,
}

impl FormReply {
    pub fn fault(&self, name: &str) -> Option<&str> {
        let found = self.faults.iter().find(|(field, _)| field == name);
        found.map(|(_, fault)| fault.as_str())
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl FormOutcome {
    /// # Errors
    /// The encoder fails, which no value causes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PayloadError> {
        codec::write(self)
    }

    /// # Errors
    /// Another build wrote it, or it is malformed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PayloadError> {
        codec::read(bytes)
    }
}

/// Fields of a form as they were typed, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedFields {
    pub fields: Vec<(String, String)>,
    /// A possible secret was left out: it must be typed again.
    pub has_secret: bool,
}

/// Fields that may be repeated. Any other field may be a secret and is left out.
const REPEATED: [&str; 53] = [
    "act",
    "any_prefix",
    "backend",
    "backends",
    "breakGlassReason",
    "comment",
    "condition",
    "days",
    "enabled",
    "for",
    "generation",
    "group",
    "group_by",
    "id",
    "item",
    "keep_firing_for",
    "kind",
    "label1",
    "label2",
    "label3",
    "label4",
    "label5",
    "label6",
    "label7",
    "label8",
    "lasts",
    "length",
    "line",
    "name",
    "nine",
    "note",
    "owner",
    "prefix",
    "protection",
    "read_only",
    "reason",
    "receivers",
    "resource",
    "role",
    "runbook",
    "safety",
    "severity",
    "successor_of",
    "template",
    "value1",
    "value2",
    "value3",
    "value4",
    "value5",
    "value6",
    "value7",
    "value8",
    "version",
];
/// Fields of the rule editor, and the names typed for bulk unlocks.
const REPEATED_PREFIXES: [&str; 3] = ["with.", "line.", "resource-"];

impl TypedFields {
    /// Leaves out every field that may be a secret.
    pub fn without_secrets(mut fields: Vec<(String, String)>) -> Self {
        let all = fields.len();
        fields.retain(|(name, _)| {
            REPEATED.contains(&name.as_str()) || REPEATED_PREFIXES.iter().any(|start| name.starts_with(start))
        });
        Self {
            has_secret: fields.len() < all,
            fields,
        }
    }

    pub fn find(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Every value of that name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.fields.iter().filter(move |(field, _)| field == name);
        values.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed_fields(fields: &[(&str, &str)]) -> TypedFields {
        let owned = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        TypedFields::without_secrets(owned.collect())
    }

    #[test]
    fn possible_secrets_are_left_out() {
        for secret in [
            "password",
            "old",
            "urls",
            "secret",
            "link",
            "apiKey",
            "anything else",
            "Name",
        ] {
            let fields = typed_fields(&[(secret, "hunter22"), ("name", "ada")]);
            assert!(fields.has_secret, "{secret}");
            assert_eq!(fields.fields, [("name".to_owned(), "ada".to_owned())], "{secret}");
        }
        assert!(!typed_fields(&[("with.share", "5 %"), ("resource-1", "a")]).has_secret);
    }

    #[test]
    fn an_outcome_survives_its_encoding() {
        let outcome = FormOutcome::Reply(FormReply {
            action: "/alerts/silences".to_owned(),
            status: 422,
            faults: vec![("lasts".to_owned(), "too long".to_owned())],
            fields: typed_fields(&[("lasts", "900d")]),
            ..FormReply::default()
        });
        let bytes = outcome.to_bytes().unwrap();
        assert_eq!(FormOutcome::from_bytes(&bytes), Ok(outcome));
    }
}

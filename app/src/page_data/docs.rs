//! Data of the documentation: guides for operators and the API reference.

use serde::{Deserialize, Serialize};

/// `/docs`, `/docs/{page}`, `/docs/api/{part}`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocsData {
    /// Path of this page.
    pub path: String,
    pub title: String,
    pub lead: Option<String>,
    /// A guide, rendered from the Markdown of this build; empty for the reference.
    pub html: String,
    /// The index lists every part, a page of the reference has one, a guide none.
    pub parts: Vec<ApiPart>,
    /// Navigation of every page.
    pub contents: Vec<ContentsGroup>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsGroup {
    pub title: String,
    /// URL path and label.
    pub links: Vec<(String, String)>,
}

/// A part of the API with its operations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiPart {
    pub path: String,
    pub title: String,
    pub lead: String,
    pub operations: Vec<Operation>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its anchor.
    pub id: String,
    pub method: String,
    pub path: String,
    pub summary: String,
    pub text: String,
    pub needs: String,
    pub parameters: Vec<ParameterRow>,
    pub body: Vec<ParameterRow>,
    pub answers: Vec<ResponseExample>,
    pub curl: String,
}

impl Operation {
    /// What the index shows of it.
    #[must_use]
    pub fn listed(&self) -> Self {
        Self {
            id: self.id.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            summary: self.summary.clone(),
            ..Self::default()
        }
    }
}

/// A parameter or a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterRow {
    pub name: String,
    /// `path`, `query`, `header`; empty for fields.
    pub location: String,
    pub kind: String,
    pub is_required: bool,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseExample {
    pub status: String,
    pub text: String,
    /// Empty for problems, which share one format.
    pub rows: Vec<ParameterRow>,
}

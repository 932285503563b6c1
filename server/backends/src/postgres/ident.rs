//! Table and column names: parsed from the configuration, compared with the catalog, quoted
//! into SQL. The text of a statement contains nothing else; values are always bound.

/// Quotes an identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name as configured: exact in double quotes, otherwise the catalog may have it in lower
/// case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    exact: bool,
}

impl Name {
    pub(super) fn new(text: &str) -> Self {
        match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) if !inner.is_empty() => Self {
                text: inner.replace("\"\"", "\""),
                exact: true,
            },
            _ => Self {
                text: text.to_owned(),
                exact: false,
            },
        }
    }

    /// Spellings to find in the catalog, best first.
    pub(super) fn spellings(&self) -> Vec<String> {
        let lowercase = self.text.to_lowercase();
        if self.exact || lowercase == self.text {
            vec![self.text.clone()]
        } else {
            vec![self.text.clone(), lowercase]
        }
    }

    /// The entry that this name refers to.
    pub(super) fn find<'a, T>(&self, entries: &'a [T], name_of: impl Fn(&T) -> &str) -> Option<&'a T> {
        self.spellings()
            .iter()
            .find_map(|spelling| entries.iter().find(|entry| name_of(entry) == spelling))
    }
}

/// `schema.table`; without a schema, `public`. Dots inside double quotes belong to the name.
pub(super) fn table(text: &str) -> Option<(Name, Name)> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut inside = false;
    for c in text.trim().chars() {
        if c == '"' {
            inside = !inside;
        }
        if c == '.' && !inside {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    if inside || parts.iter().any(|part| part.trim_matches('"').is_empty()) {
        return None;
    }
    match parts.as_slice() {
        [table] => Some((Name::new("public"), Name::new(table))),
        [schema, table] => Some((Name::new(schema), Name::new(table))),
        _ => None,
    }
}

/// The candidate most similar to `name`, if any is similar enough.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness > 0.65)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_parsed_like_sql_writes_them() {
        // Quoted parts are exact and may contain dots and quotes; invalid text is rejected.
        let (schema, name) = table("locks").unwrap();
        assert_eq!((schema.text.as_str(), name.text.as_str()), ("public", "locks"));
        let (schema, name) = table(r#"ops."My.""Table""#).unwrap();
        assert_eq!(
            (schema.text.as_str(), name.spellings()),
            ("ops", vec![r#"My."Table"#.to_owned()])
        );
        assert_eq!(table("DATABASECHANGELOGLOCK").unwrap().1.spellings().len(), 2);
        for nonsense in ["", ".", "a.", "a.b.c", r#""a"#, r#""""#] {
            assert_eq!(table(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_quoted_name_cannot_end_its_quotes() {
        // The only place where configured text becomes SQL.
        assert_eq!(quoted(r#"a"; DROP TABLE b; --"#), r#""a""; DROP TABLE b; --""#);
    }

    #[test]
    fn the_nearest_name_is_close_or_nothing() {
        // A typo gets a suggestion, an unrelated name does not.
        assert_eq!(
            nearest("fencing_token", ["fence_token", "owner"]),
            Some("fence_token")
        );
        assert_eq!(nearest("fencing_token", ["xyz"]), None);
    }
}

//! Secret keys: given directly or in a file, never shown, and their redacted form.

use std::io::Read;
use std::path::Path;

use secrecy::SecretString;
use url::Url;

use super::limits::SECRET_BYTES_MAX;
use super::provenance::Origin;
use super::reader::Section;
use super::value_parsers;
use super::value_tree::Node;

/// Validation of a secret; the message must not quote it.
pub(super) type Validate<'j> = &'j dyn Fn(&str) -> Result<(), String>;

/// Redacted form of a secret for `check-config`.
pub(super) type Show = fn(&str) -> String;

impl<'t> Section<'t> {
    /// `key` or `key_file`, not both.
    pub(super) fn secret(
        &mut self,
        key: &'static str,
        file_key: &'static str,
        expected: &str,
        validate: Validate<'_>,
        show: Show,
    ) -> Option<SecretString> {
        let (text, origin, shown) = self.secret_text(key, file_key, expected)?;
        if let Err(problem) = validate(&text) {
            self.error_at(
                shown,
                &origin,
                format!("the value {problem}"),
                format!("Write {expected}."),
            );
            return None;
        }
        self.secret_entry(key, shown, &show(&text), &origin);
        Some(SecretString::from(text))
    }

    /// The path of a secret file is not secret.
    fn secret_entry(&self, key: &str, source_key: &str, redacted: &str, origin: &Origin) {
        let value = match self.peek(source_key) {
            Some(path) if source_key != key => format!("{path:?} holding {redacted}"),
            _ => redacted.to_owned(),
        };
        self.entry(source_key, value, origin);
    }

    /// The value, its origin, and the key that had it.
    fn secret_text(
        &mut self,
        key: &'static str,
        file_key: &'static str,
        expected: &str,
    ) -> Option<(String, Origin, &'static str)> {
        let inline = self.node(key);
        let file = self.node(file_key);
        match (inline, file) {
            (Some(_), Some(other)) => {
                let remedy = format!("Remove one of {key} and {file_key}.");
                self.error_at(file_key, &other.origin, format!("{key} is given too"), remedy);
                None
            }
            (Some(node), None) => match node.text() {
                Some(text) => Some((text.to_owned(), node.origin.clone(), key)),
                None => {
                    let found = format!("found {}", node.describe(true));
                    self.error_at(key, &node.origin, found, format!("Write {expected}."));
                    None
                }
            },
            (None, Some(node)) => {
                let text = self.secret_file(file_key, node)?;
                Some((text, node.origin.clone(), file_key))
            }
            (None, None) => None,
        }
    }

    /// Content of a secret file, without the final line break that editors add.
    pub(super) fn secret_file(&mut self, file_key: &'static str, node: &Node) -> Option<String> {
        let Some(path) = node.text() else {
            let found = format!("found {}", node.describe(false));
            self.error_at(
                file_key,
                &node.origin,
                found,
                "Write the path of a file.".to_owned(),
            );
            return None;
        };
        match read_secret(Path::new(path)) {
            Ok(text) => Some(text),
            Err(why) => {
                let remedy =
                    "Check the path, and that this user may read the file; relative paths start in the \
                            folder that Leasehold is started in."
                        .to_owned();
                self.error_at(file_key, &node.origin, format!("{path:?} {why}"), remedy);
                None
            }
        }
    }

    /// `key`, a list of secrets, or `file_key`, a file with one per line.
    pub(super) fn secret_list(
        &mut self,
        key: &'static str,
        file_key: &'static str,
        expected: &str,
        validate: Validate<'_>,
        show: Show,
    ) -> Option<Vec<SecretString>> {
        let inline = self.node(key);
        let file = self.node(file_key);
        let (texts, origin, shown) = match (inline, file) {
            (Some(_), Some(other)) => {
                let remedy = format!("Remove one of {key} and {file_key}.");
                self.error_at(file_key, &other.origin, format!("{key} is given too"), remedy);
                return None;
            }
            (Some(node), None) => (self.texts(key, node, expected, true)?, node.origin.clone(), key),
            (None, Some(node)) => {
                let text = self.secret_file(file_key, node)?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let texts = lines.map(|line| (line.to_owned(), node.origin.clone())).collect();
                (texts, node.origin.clone(), file_key)
            }
            (None, None) => return None,
        };
        let mut are_valid = true;
        for (at, (text, place)) in texts.iter().enumerate() {
            if let Err(problem) = validate(text) {
                are_valid = false;
                self.error_at(
                    shown,
                    place,
                    format!("value {} {problem}", at + 1),
                    format!("Write {expected}."),
                );
            }
        }
        let seen: Vec<String> = texts.iter().map(|(text, _)| show(text)).collect();
        self.secret_entry(key, shown, &format!("[{}]", seen.join(", ")), &origin);
        are_valid.then(|| {
            texts
                .into_iter()
                .map(|(text, _)| SecretString::from(text))
                .collect()
        })
    }
}

fn read_secret(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    let read = file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > SECRET_BYTES_MAX {
        return Err(format!("is larger than {SECRET_BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("is empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Rule for passwords.
pub(super) fn not_empty(secret: &str) -> Result<(), String> {
    if secret.is_empty() {
        Err("is empty".to_owned())
    } else {
        Ok(())
    }
}

/// Redacts everything.
pub(super) fn hidden(_secret: &str) -> String {
    "***".to_owned()
}

/// Redacts the credentials of a URL: the password; the user where a system accepts a user alone as a password; and the
/// whole text if it is not clearly a URL.
pub(super) fn without_credentials(secret: &str) -> String {
    let Ok(mut url) = Url::parse(secret) else {
        return hidden(secret);
    };
    // A stray @ or # comes from a password without percent-encoding.
    if url.fragment().is_some() || url.path().contains('@') || url.query().is_some_and(|q| q.contains('@')) {
        return hidden(secret);
    }
    let postgres = matches!(url.scheme(), "postgres" | "postgresql");
    let credentials = !url.username().is_empty() || url.password().is_some();
    if credentials {
        let masked = if !postgres {
            url.set_username("***")
        } else {
            Ok(())
        };
        let password = url.password().map(|_| "***");
        if masked.is_err() || url.set_password(password).is_err() {
            return hidden(secret);
        }
    }
    if url.query().is_some() {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| {
                let shown = if matches!(name.as_ref(), "sslmode" | "application_name") {
                    value
                } else {
                    "***".into()
                };
                (name.into_owned(), shown.into_owned())
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    value_parsers::quoted(url.as_str())
}

/// A URL with one of these schemes.
pub(super) fn url_of<'s>(schemes: &'s [&'s str]) -> impl Fn(&str) -> Result<(), String> + 's {
    move |text| {
        let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
        if !schemes.contains(&url.scheme()) {
            return Err(format!("does not start with {}", schemes_of(schemes)));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("names no host".to_owned());
        }
        Ok(())
    }
}

fn schemes_of(schemes: &[&str]) -> String {
    schemes
        .iter()
        .map(|scheme| format!("{scheme}://"))
        .collect::<Vec<_>>()
        .join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_credentials() {
        // Passwords in every place where drivers accept them, and passwords that break the URL syntax.
        for (secret, shown) in [
            ("postgres://watch@db/orders", "\"postgres://watch@db/orders\""),
            (
                "postgres://watch:s3cret@db:5433/orders",
                "\"postgres://watch:***@db:5433/orders\"",
            ),
            (
                "postgres://watch@db/o?sslmode=require&password=s3cret",
                "\"postgres://watch@db/o?sslmode=require&password=***\"",
            ),
            ("redis://s3cret@cache:6379", "\"redis://***@cache:6379\""),
            ("redis://:s3cret@cache:6379/2", "\"redis://***:***@cache:6379/2\""),
            ("postgres://u:12#s3cret@db/o", "***"),
            ("postgres://u:12/s3cret@db/o", "***"),
            ("not a url s3cret", "***"),
        ] {
            assert_eq!(without_credentials(secret), shown);
        }
    }
}

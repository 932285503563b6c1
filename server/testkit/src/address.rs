//! URLs of throwaway servers, always on 127.0.0.1.

use std::fmt::Write;

/// `scheme://user:password@127.0.0.1:port/path`, with all parts escaped.
pub(super) fn url(scheme: &str, login: (&str, Option<&str>), port: u16, path: &str) -> String {
    let (user, password) = (escape(login.0), login.1.map(escape));
    let login = match password {
        Some(password) => format!("{user}:{password}@"),
        None if user.is_empty() => String::new(),
        None => format!("{user}@"),
    };
    format!("{scheme}://{login}127.0.0.1:{port}/{}", escape(path))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn names_cannot_change_the_structure_of_the_address() {
        // Characters with a meaning in URLs, in each part.
        let text = url("postgres", ("a@b", Some("p/:?")), 5, "d#é");
        assert_eq!(text, "postgres://a%40b:p%2F%3A%3F@127.0.0.1:5/d%23%C3%A9");
        assert_eq!(url("redis", ("", None), 5, ""), "redis://127.0.0.1:5/");
    }
}

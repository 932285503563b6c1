//! `postgres://` addresses of leases: the account and the database, without a password.

use std::fmt;

use url::Url;

/// The address of a Postgres database, without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresAddress(Url);

impl PostgresAddress {
    pub const SCHEMES: [&'static str; 2] = ["postgres://", "postgresql://"];

    /// # Errors
    /// What is wrong, as a clause that follows the value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err("is not a postgres:// address".to_owned());
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("names no host".to_owned());
        }
        let in_query = url.query_pairs().any(|(name, _)| name == "password");
        if url.password().is_some() || in_query {
            return Err("holds a password, which belongs in `password` or `password_file`".to_owned());
        }
        if url.path().len() < 2 {
            return Err("names no database".to_owned());
        }
        Ok(Self(url))
    }

    pub(super) fn with_password(&self, password: Option<&str>) -> String {
        let mut url = self.0.clone();
        // Only a URL without a host refuses one.
        let _ = url.set_password(password);
        url.into()
    }

    /// Host, port and database: the same for every account.
    pub(super) fn database(&self) -> (String, u16, String) {
        let host = self.0.host_str().unwrap_or_default().to_ascii_lowercase();
        (host, self.0.port().unwrap_or(5432), self.0.path().to_owned())
    }
}

/// Without the account and the options.
impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host_str().unwrap_or_default();
        let port = self.0.port().map_or(String::new(), |port| format!(":{port}"));
        write!(f, "{}://{host}{port}{}", self.0.scheme(), self.0.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_the_account() {
        let address = PostgresAddress::parse("postgres://leases@DB-1:6432/leases?sslmode=require").unwrap();
        assert_eq!(address.to_string(), "postgres://DB-1:6432/leases");
        assert_eq!(
            address.database(),
            ("db-1".to_owned(), 6432, "/leases".to_owned())
        );
        assert_eq!(
            address.with_password(Some("p@ss")),
            "postgres://leases:p%40ss@DB-1:6432/leases?sslmode=require"
        );
    }

    #[test]
    fn a_password_or_a_missing_part_is_refused() {
        for (address, why) in [
            ("postgres://u:p@a/b", "belongs in `password`"),
            ("postgres://a/b?password=p", "belongs in `password`"),
            ("postgres://a", "no database"),
            ("postgres:///b", "no host"),
            ("sqlite:leases.db", "not a postgres:// address"),
        ] {
            let error = PostgresAddress::parse(address).unwrap_err();
            assert!(error.contains(why), "{address}: {error}");
        }
    }
}

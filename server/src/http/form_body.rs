//! Forms as browsers post them: fields in order, some of them several times.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use domain::access::{Grant, Role};
use domain::limits::RESOURCE_BYTES_MAX;
use domain::names::BackendName;

use super::json_body::{BodyError, read_bytes};
use super::problem::Problem;
use crate::identity::IdentityError;

/// The longest name percent-encoded, three bytes for each of its bytes, and room for the other fields.
const BYTES_MAX: usize = 3 * RESOURCE_BYTES_MAX + 64 * 1024;
/// Limit for a sender without a session, who may have hundreds of bodies in flight on each connection.
const ANONYMOUS_BYTES_MAX: usize = 16 * 1024;

/// A posted form; empty when the body is not one. A body that cannot be read is an error: as an empty form it would remove all
/// roles of a user.
#[derive(Default)]
pub(super) struct Form(Vec<(String, String)>);

impl<S: Sync> FromRequest<S> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let form = Self::read(body).await;
        form.map_err(|error| Problem::from(error).with_request_id(&parts.headers))
    }
}

impl Form {
    /// # Errors
    /// It is longer than [`BYTES_MAX`], or does not arrive to its end.
    pub(super) async fn read(body: Body) -> Result<Self, BodyError> {
        Self::read_up_to(BYTES_MAX, body).await
    }

    /// # Errors
    /// It is longer than [`ANONYMOUS_BYTES_MAX`], or does not arrive to its end.
    pub(super) async fn read_anonymous(body: Body) -> Result<Self, BodyError> {
        Self::read_up_to(ANONYMOUS_BYTES_MAX, body).await
    }

    async fn read_up_to(bytes_max: usize, body: Body) -> Result<Self, BodyError> {
        let bytes = read_bytes(bytes_max, body).await?;
        Ok(Self(url::form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// Every field, in order.
    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.0
    }

    pub(super) fn fields_mut(&mut self) -> &mut Vec<(String, String)> {
        &mut self.0
    }

    /// Every field, in order.
    pub(super) fn into_fields(self) -> Vec<(String, String)> {
        self.0
    }

    /// The first field of that name, without white space around it.
    pub(super) fn text(&self, name: &str) -> String {
        self.all(name).next().unwrap_or_default().trim().to_owned()
    }

    /// The first field of that name, with its white space.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        self.all(name).next().map(str::to_owned)
    }

    /// As [`find`](Self::find); empty if the field is missing.
    pub(super) fn untrimmed(&self, name: &str) -> String {
        self.find(name).unwrap_or_default()
    }

    /// The first field of that name, with its white space.
    pub(super) fn secret(&self, name: &str) -> secrecy::SecretString {
        self.all(name).next().unwrap_or_default().into()
    }

    /// Every field of that name, in order.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let matching = self.0.iter().filter(move |(field, _)| field == name);
        matching.map(|(_, value)| value.as_str())
    }

    /// Rows of role, backend and prefix. Rows without a role are skipped. The forms have at least one row: one without any would
    /// remove all roles of a user.
    pub(super) fn grants(&self) -> Result<Vec<Grant>, IdentityError> {
        let [roles, backends, prefixes] = ["role", "backend", "prefix"].map(|name| self.all(name).count());
        if roles == 0 || roles != backends || roles != prefixes {
            let why = "must be there at least once, each time with `backend` and `prefix`; empty for no role";
            return Err(IdentityError::invalid("role", why));
        }
        let rows = self
            .all("role")
            .zip(self.all("backend"))
            .zip(self.all("prefix"))
            .filter(|((role, _), _)| !role.is_empty());
        rows.map(|((role, backend), prefix)| {
            let role = Role::parse(role).ok_or_else(|| IdentityError::invalid("role", "is not a role"))?;
            let backend = Some(backend).filter(|name| !name.is_empty());
            let backend = backend.map(BackendName::parse).transpose();
            let prefix = Some(prefix.trim()).filter(|prefix| !prefix.is_empty());
            Ok(Grant {
                role,
                backend: backend.map_err(|_| IdentityError::invalid("backend", "is not a backend"))?,
                prefix: prefix.map(str::to_owned),
            })
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unreadable_form_is_not_an_empty_one() {
        // One byte too many, a connection that breaks after a field, and the longest.
        let long = |bytes: usize| Body::from("x".repeat(bytes));
        assert!(Form::read(long(BYTES_MAX + 1)).await.is_err());
        let parts = [
            Ok("role=viewer&"),
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
        ];
        let broken = Body::from_stream(futures::stream::iter(parts));
        assert!(Form::read(broken).await.is_err());
        assert_eq!(Form::read(long(BYTES_MAX)).await.unwrap().fields().len(), 1);
    }

    #[test]
    fn rows_without_a_role_are_skipped_and_invalid_ones_named() {
        // Two roles with a spare row between them; then an unknown role and an invalid backend name.
        let pairs = |all: &[[&str; 3]]| {
            let fields = all.iter().flat_map(|row| {
                ["role", "backend", "prefix"]
                    .into_iter()
                    .zip(row)
                    .map(|(name, value)| (name.to_owned(), (*value).to_owned()))
            });
            Form(fields.collect())
        };
        let form = pairs(&[
            ["viewer", "", ""],
            ["", "", ""],
            ["operator", "cache", " tenant_1: "],
        ]);
        let grants = form.grants().unwrap();
        assert_eq!(grants.len(), 2);
        assert_eq!(grants[0], Grant::everywhere(Role::Viewer));
        assert_eq!(grants[1].prefix.as_deref(), Some("tenant_1:"));
        assert!(pairs(&[["king", "", ""]]).grants().is_err());
        assert!(pairs(&[["viewer", "No Name", ""]]).grants().is_err());
        assert_eq!(pairs(&[["", "", ""]]).grants().unwrap(), []);
    }

    #[test]
    fn a_form_without_complete_rows_of_roles_is_invalid() {
        // No row, and one whose prefix is missing.
        let forms: [&[&str]; 4] = [
            &[],
            &["name"],
            &["role", "backend"],
            &["role", "backend", "prefix", "role"],
        ];
        for names in forms {
            let fields = names.iter().map(|name| ((*name).to_owned(), String::new()));
            let error = Form(fields.collect()).grants().unwrap_err();
            assert!(
                matches!(error, IdentityError::Invalid { field: "role", .. }),
                "{names:?}: {error}"
            );
        }
    }
}

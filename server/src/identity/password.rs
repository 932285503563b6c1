//! Passwords: Argon2id with the parameters that OWASP recommends (19 MiB, two passes), one or two at a time, off the
//! threads that answer others.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use secrecy::{ExposeSecret as _, SecretString};

use super::Identity;
use super::error::IdentityError;
use super::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};

/// Verified when there is nobody to verify, so that an unknown name takes as long as a wrong password.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5LWhhcy10aGlz$Ce2qfVqEHvUJrDDGMwdK+CVmEGo0TShqbzVMR4rIFEk";

/// # Errors
/// Says which rule it breaks.
pub(super) fn check(password: &SecretString) -> Result<(), IdentityError> {
    let text = password.expose_secret();
    if text.chars().count() < PASSWORD_CHARS_MIN {
        let why = format!("has at least {PASSWORD_CHARS_MIN} characters; several words make a good one");
        return Err(IdentityError::invalid("password", why));
    }
    if text.len() > PASSWORD_BYTES_MAX {
        return Err(IdentityError::invalid(
            "password",
            format!("has at most {PASSWORD_BYTES_MAX} bytes"),
        ));
    }
    Ok(())
}

impl Identity {
    pub(super) async fn hash_password(&self, password: &SecretString) -> Result<String, IdentityError> {
        check(password)?;
        let _turn = self.hashing.acquire().await.map_err(|_| IdentityError::Busy)?;
        let password = password.clone();
        let hashed = tokio::task::spawn_blocking(move || {
            Argon2::default()
                .hash_password(password.expose_secret().as_bytes())
                .map(|hash| hash.to_string())
        });
        hashed
            .await
            .map_err(|_| IdentityError::Busy)?
            .map_err(|_| IdentityError::NoChance)
    }

    /// `stored` none: nobody has this name, or no password. Takes as long.
    pub(super) async fn password_fits(
        &self,
        password: &SecretString,
        stored: Option<String>,
    ) -> Result<bool, IdentityError> {
        if password.expose_secret().len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let _turn = self.hashing.acquire().await.map_err(|_| IdentityError::Busy)?;
        let password = password.clone();
        let is_somebody = stored.is_some();
        let stored = stored.unwrap_or_else(|| NOBODY.to_owned());
        let verified = tokio::task::spawn_blocking(move || {
            PasswordHash::new(&stored).is_ok_and(|hash| {
                Argon2::default()
                    .verify_password(password.expose_secret().as_bytes(), &hash)
                    .is_ok()
            })
        });
        Ok(verified.await.map_err(|_| IdentityError::Busy)? && is_somebody)
    }
}

/// A password that nobody knows, for tests of the constant above.
#[cfg(test)]
mod tests {
    use super::super::secret;
    use super::*;

    #[test]
    fn the_hash_of_nobody_is_a_real_hash_with_the_parameters_of_the_others() {
        // Otherwise an unknown name would be answered more quickly than a wrong password.
        let nobody = PasswordHash::new(NOBODY).unwrap();
        let real = Argon2::default().hash_password(b"a long password").unwrap();
        assert_eq!(nobody.algorithm, real.algorithm);
        assert_eq!(nobody.params.to_string(), real.params.to_string());
    }

    #[test]
    fn short_and_huge_passwords_are_refused_with_the_rule() {
        // One character too few, and a kilobyte too many.
        let check = |text: String| check(&SecretString::from(text)).map_err(|error| error.to_string());
        assert!(
            check("elevenchars".to_owned())
                .unwrap_err()
                .contains("12 characters")
        );
        assert!(check("x".repeat(1_025)).unwrap_err().contains("1024 bytes"));
        assert!(check("twelve chars".to_owned()).is_ok());
        assert_ne!(secret::hash("a"), secret::hash("b"));
    }
}

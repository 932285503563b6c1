//! Passwords: Argon2id with the parameters recommended by OWASP (19 MiB, two passes), on blocking threads, limited
//! by `hashing_queue`.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use secrecy::{ExposeSecret as _, SecretString};

use super::Identity;
use super::error::IdentityError;
use super::hashing_queue::{HashingPermit, Share, busy};
use super::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};

/// Verified for an unknown name, so that it takes as long as a wrong password.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5LWhhcy10aGlz$Ce2qfVqEHvUJrDDGMwdK+CVmEGo0TShqbzVMR4rIFEk";

/// # Errors
/// Names the violated rule.
pub(super) fn check(password: &SecretString) -> Result<(), IdentityError> {
    let text = password.expose_secret();
    if text.chars().count() < PASSWORD_CHARS_MIN {
        let why = format!("must have at least {PASSWORD_CHARS_MIN} characters; use several words");
        return Err(IdentityError::invalid("password", why));
    }
    check_size(password)
}

/// Size check before an attempt is counted or hashed.
///
/// # Errors
/// It is longer than any valid password.
pub(super) fn check_size(password: &SecretString) -> Result<(), IdentityError> {
    let bytes = password.expose_secret().len();
    if bytes > PASSWORD_BYTES_MAX {
        let why = format!("must have at most {PASSWORD_BYTES_MAX} bytes, but has {bytes}; use a shorter one");
        return Err(IdentityError::invalid("password", why));
    }
    Ok(())
}

impl Identity {
    /// Hash of a new password, for a signed-in user or a link.
    pub(super) async fn hash_password(&self, password: &SecretString) -> Result<String, IdentityError> {
        check(password)?;
        let permit = self
            .hashing
            .acquire_permit(self.hashing.reserve_slot(Share::Known)?)
            .await?;
        let password = password.clone();
        let hashed = tokio::task::spawn_blocking(move || {
            permit.count();
            let hashed = Argon2::default()
                .hash_password(password.expose_secret().as_bytes())
                .map(|hash| hash.to_string());
            drop(permit);
            hashed
        });
        hashed
            .await
            .map_err(|_| busy())?
            .map_err(|_| IdentityError::NoChance)
    }

    /// Passwords hashed or verified since the start.
    pub fn hashes_evaluated(&self) -> u64 {
        self.hashing.evaluated()
    }
}

/// Takes the same time for an unknown user or one without a password: `stored` is then `None`.
pub(super) async fn verify(
    permit: HashingPermit,
    password: &SecretString,
    stored: Option<String>,
) -> Result<bool, IdentityError> {
    let password = password.clone();
    let is_known = stored.is_some();
    let stored = stored.unwrap_or_else(|| DUMMY_HASH.to_owned());
    let verified = tokio::task::spawn_blocking(move || {
        permit.count();
        let is_match = PasswordHash::new(&stored).is_ok_and(|hash| {
            Argon2::default()
                .verify_password(password.expose_secret().as_bytes(), &hash)
                .is_ok()
        });
        drop(permit);
        is_match
    });
    Ok(verified.await.map_err(|_| busy())? && is_known)
}

#[cfg(test)]
mod tests {
    use super::super::secret;
    use super::*;

    #[test]
    fn the_dummy_hash_has_the_parameters_of_real_hashes() {
        // A cheaper hash would reveal unknown names by time.
        let dummy = PasswordHash::new(DUMMY_HASH).unwrap();
        let real = Argon2::default().hash_password(b"a long password").unwrap();
        assert_eq!(dummy.algorithm, real.algorithm);
        assert_eq!(dummy.params.to_string(), real.params.to_string());
    }

    #[test]
    fn short_and_huge_passwords_are_refused_with_the_rule() {
        // One character too few, and one kilobyte too many.
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

//! Sessions of users, because a page costs less than with a token: for a token the console also reads the ids of its leases.

use domain::access::Grant;
use leasehold::audit::Origin;
use leasehold::identity::{Identity, NewUser, Principal};

use super::error::BenchError;

/// Adds a user and signs it in; returns the value of the `Cookie` header over plain HTTP.
///
/// # Errors
/// The name is taken, or the store does not answer.
pub(super) async fn cookie(
    identity: &Identity,
    name: String,
    grants: Vec<Grant>,
) -> Result<String, BenchError> {
    let bench = Principal::system("bench");
    let new = NewUser {
        name,
        grants,
        password: None,
    };
    let user = identity.add_user(&bench, new).await?;
    let link = identity.user_link(&bench, &user).await?;
    let signed_in = identity.open_link(link.expose(), &Origin::default()).await?;
    Ok(format!("leasehold={}", signed_in.secret.expose()))
}

//! The last user who may administer stays.

use domain::access::{Permission, Role};

use super::User;
use super::error::IdentityError;
use runtime::db::{Tx, on_either};

pub(super) fn is_admin(user: &User) -> bool {
    user.grants.may_everywhere(Permission::Administer)
}

/// Of two transactions that each remove one of the last two admins, the second fails: call after
/// [`touch`](super::principal_cache::touch), which makes them wait for each other.
pub(super) async fn require_an_admin(tx: &mut Tx) -> Result<(), IdentityError> {
    let select = "SELECT DISTINCT g.role FROM role_grants g JOIN users u ON u.id = g.user_id
        WHERE u.disabled_at IS NULL AND g.backend IS NULL AND g.prefix IS NULL";
    let roles: Vec<String> = on_either!(tx, Tx, |tx| sqlx::query_scalar(select)
        .fetch_all(&mut **tx)
        .await?);
    let administers =
        |role: &String| Role::parse(role).is_some_and(|role| role.rights().contains(&Permission::Administer));
    match roles.iter().any(administers) {
        true => Ok(()),
        false => Err(IdentityError::LastAdmin),
    }
}

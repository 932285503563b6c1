//! Lineage: the user behind a principal, and which users are independent of each other.
//!
//! The parent of a token is the principal that created it, of a session opened by a link the principal that created the
//! link; the root is the user at the start of that chain. Owns the log of changes by which one principal can act as
//! another user. What depends on independence, the approval of a forced unlock, is decided in `unlock`.

use domain::duration::millis;
use sqlx::Row as _;

use super::Identity;
use super::error::IdentityError;
use super::limits::INDEPENDENT_AFTER;
use super::principal::{Principal, SYSTEM_ID, Subject};
use super::sessions::Session;
use runtime::db::{Tx, on_either};
use runtime::random;

/// Changes read per user; the latest count.
const CHANGES_MAX: i64 = 1_000;

/// A principal and the user behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    pub id: String,
    /// `None` if unknown, for example for a command run on the server.
    pub root: Option<String>,
}

impl Lineage {
    pub fn new(id: impl Into<String>, root: Option<String>) -> Self {
        Self { id: id.into(), root }
    }

    /// Both ids; the root may be unknown.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        [Some(self.id.as_str()), self.root.as_deref()]
            .into_iter()
            .flatten()
    }

    /// The same principal, one the root of the other, or both with the same root.
    pub fn is_related(&self, other: &Self) -> bool {
        self.ids().any(|id| other.ids().any(|theirs| theirs == id))
    }
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum PrincipalKind {
        User = "user",
        Token = "token",
        /// A command run on the server, or the setup link.
        System = "system",
    }
}

impl PrincipalKind {
    fn from_principal(who: &Principal) -> Self {
        match &who.subject {
            Subject::Token { .. } => Self::Token,
            Subject::User { id, .. } if **id == *SYSTEM_ID => Self::System,
            Subject::User { .. } | Subject::Anonymous => Self::User,
        }
    }
}

domain::wire_enum! {
    /// A change to a user's account by another principal.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ChangeKind {
        Created = "created",
        Link = "link",
        Password = "password",
        /// Granted an approving role, or enabled with one.
        Approver = "approver",
    }
}

impl ChangeKind {
    /// Lets its author sign in as the user.
    const fn opens_account(self) -> bool {
        matches!(self, Self::Created | Self::Link | Self::Password)
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Created => "created this account",
            Self::Link => "created a sign-in link for this account",
            Self::Password => "set the password of this account",
            Self::Approver => "enabled this account or granted it a role with the permission `approve`",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountChange {
    kind: ChangeKind,
    by: Lineage,
    is_by_token: bool,
    /// Milliseconds since 1970.
    at: i64,
}

/// Why a user is not independent of another principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// The other principal or its root did this within 24 h.
    Recent(ChangeKind),
    /// An API token did this within 24 h; its user is unknown.
    RecentByToken(ChangeKind),
    /// An API token granted the role, and no signed-in admin has confirmed it.
    RoleByToken,
}

impl std::fmt::Display for Tie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recent(kind) => write!(f, "the other user {} within 24 h", kind.sentence()),
            Self::RecentByToken(kind) => write!(f, "an API token {} within 24 h", kind.sentence()),
            Self::RoleByToken => f.write_str(
                "an API token enabled this account or granted it a role with the permission `approve`; a signed-in admin must \
                 grant it",
            ),
        }
    }
}

/// The first tie between a user and other principals, from the changes of their account, latest first. Pure.
pub fn find_tie(changes: &[AccountChange], others: &[Lineage], now: i64) -> Option<Tie> {
    let is_recent = |change: &&AccountChange| now - change.at < millis(INDEPENDENT_AFTER);
    let recent = changes.iter().filter(is_recent).find_map(|change| {
        let is_theirs = others.iter().any(|other| other.is_related(&change.by));
        match (is_theirs, change.is_by_token) {
            (true, _) => Some(Tie::Recent(change.kind)),
            (false, true) => Some(Tie::RecentByToken(change.kind)),
            (false, false) => None,
        }
    });
    let role = changes.iter().find(|change| change.kind == ChangeKind::Approver);
    recent.or_else(|| role.filter(|role| role.is_by_token).map(|_| Tie::RoleByToken))
}

/// Whether others recently gained access to the user's account. Pure.
pub fn is_opened_by(changes: &[AccountChange], others: &[Lineage], now: i64) -> bool {
    changes.iter().any(|change| {
        change.kind.opens_account()
            && now - change.at < millis(INDEPENDENT_AFTER)
            && others.iter().any(|other| other.is_related(&change.by))
    })
}

/// Authors of changes to this account within the last day; `opened`: only those who gained access to it. Pure.
pub fn recent_authors(changes: &[AccountChange], opened: bool, now: i64) -> impl Iterator<Item = &Lineage> {
    let counts = move |change: &&AccountChange| {
        now - change.at < millis(INDEPENDENT_AFTER) && (change.kind.opens_account() || !opened)
    };
    changes.iter().filter(counts).map(|change| &change.by)
}

impl Identity {
    /// A principal with the user behind its token or session.
    pub fn lineage(&self, who: &Principal) -> Lineage {
        let root = match (&who.subject, &who.session) {
            (Subject::Anonymous, _) => None,
            (Subject::Token { id, .. }, _) => {
                let directory = self.directory();
                let token = directory.tokens.values().find(|token| token.id == *id);
                token.and_then(|token| token.root_user_id.clone())
            }
            (Subject::User { .. }, Some(session)) if is_by_another(session) => session.root_user_id.clone(),
            (Subject::User { id, .. }, _) => {
                (PrincipalKind::from_principal(who) != PrincipalKind::System).then(|| id.to_string())
            }
        };
        Lineage::new(who.id(), root)
    }

    /// Changes by others to a user's account within 24 h, and every grant of an approving role; latest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn account_changes(&self, user: &str) -> Result<Vec<AccountChange>, sqlx::Error> {
        let select = "SELECT kind, by_id, by_root_user_id, by_kind, changed_at FROM account_changes
            WHERE user_id = $1 AND (changed_at > $2 OR kind = 'approver') ORDER BY changed_at DESC, id LIMIT $3";
        let since = self.now_ms() - millis(INDEPENDENT_AFTER);
        let mut changes = Vec::new();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(user).bind(since).bind(CHANGES_MAX);
            for row in query.fetch_all(pool).await? {
                let kind: String = row.try_get(0)?;
                let Some(kind) = ChangeKind::parse(&kind) else {
                    continue;
                };
                changes.push(AccountChange {
                    kind,
                    by: Lineage::new(row.try_get::<String, _>(1)?, row.try_get(2)?),
                    is_by_token: row.try_get::<String, _>(3)? == PrincipalKind::Token.as_str(),
                    at: row.try_get(4)?,
                });
            }
        });
        Ok(changes)
    }

    /// Records a change by another principal; a user's own changes create no tie.
    pub(super) async fn record_account_change(
        &self,
        tx: &mut Tx,
        who: &Principal,
        user: &str,
        kind: ChangeKind,
    ) -> Result<(), IdentityError> {
        let by = self.lineage(who);
        if by.id == user && by.root.as_deref().is_none_or(|root| root == user) {
            return Ok(());
        }
        let insert =
            "INSERT INTO account_changes (id, user_id, kind, by_id, by_root_user_id, by_kind, changed_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (id, now) = (random::prefixed_id("ac_"), self.now_ms());
        on_either!(tx, Tx, |tx| {
            let query = sqlx::query(insert).bind(&id).bind(user).bind(kind.as_str());
            let query = query.bind(&by.id).bind(by.root.as_deref());
            let query = query.bind(PrincipalKind::from_principal(who).as_str()).bind(now);
            query.execute(&mut **tx).await?.rows_affected()
        });
        Ok(())
    }
}

/// Opened by a link of another principal; for a command on the server, the user of the link.
pub(super) fn is_by_another(session: &Session) -> bool {
    session
        .link_created_by_id
        .as_deref()
        .is_some_and(|id| id != SYSTEM_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    fn change(kind: ChangeKind, by: &str, root: Option<&str>, is_by_token: bool, at: i64) -> AccountChange {
        AccountChange {
            kind,
            by: Lineage::new(by, root.map(str::to_owned)),
            is_by_token,
            at,
        }
    }

    #[test]
    fn a_change_by_the_other_user_ties_for_a_day() {
        let ada = [Lineage::new("ada", Some("ada".to_owned()))];
        let at = |at| [change(ChangeKind::Link, "ada", Some("ada"), false, at)];
        assert_eq!(
            find_tie(&at(DAY), &ada, 2 * DAY - 1),
            Some(Tie::Recent(ChangeKind::Link))
        );
        assert_eq!(find_tie(&at(DAY), &ada, 2 * DAY), None);
        let bob = [Lineage::new("bob", Some("bob".to_owned()))];
        assert_eq!(find_tie(&at(DAY), &bob, DAY), None);
        // By a token created by ada.
        let by_token = [change(ChangeKind::Created, "t_1", Some("ada"), true, DAY)];
        assert_eq!(
            find_tie(&by_token, &ada, DAY),
            Some(Tie::Recent(ChangeKind::Created))
        );
        assert!(is_opened_by(&by_token, &ada, DAY) && !is_opened_by(&by_token, &bob, DAY));
    }

    #[test]
    fn changes_by_a_token_relate_to_every_user() {
        let bob = [Lineage::new("bob", Some("bob".to_owned()))];
        let by_token = [change(ChangeKind::Password, "t_1", None, true, DAY)];
        assert_eq!(
            find_tie(&by_token, &bob, DAY),
            Some(Tie::RecentByToken(ChangeKind::Password))
        );
        assert_eq!(find_tie(&by_token, &bob, 3 * DAY), None);
        // The tie of a role ends only when a signed-in admin grants it again.
        let role = change(ChangeKind::Approver, "t_1", None, true, DAY);
        assert_eq!(
            find_tie(std::slice::from_ref(&role), &bob, 9 * DAY),
            Some(Tie::RoleByToken)
        );
        let again = change(ChangeKind::Approver, "eve", Some("eve"), false, 2 * DAY);
        assert_eq!(find_tie(&[again, role], &bob, 9 * DAY), None);
    }

    #[test]
    fn an_unknown_root_is_no_relation() {
        let by_command = Lineage::new("t_1", None);
        assert!(!by_command.is_related(&Lineage::new("t_2", None)));
        assert!(Lineage::new("t_1", Some("ada".to_owned())).is_related(&Lineage::new("ada", None)));
    }
}

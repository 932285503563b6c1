//! What a user or an API token created, directly or through others: tokens, sign-in links, and the sessions that those opened.
//!
//! The parent of a token or a link is the principal that created it, or that principal's session if the link of another one opened
//! it: such a session acts for the creator of that link. The parent of a session is that of its link. The columns `created_by_id`
//! and `link_created_by_id` have the id of the parent.

use sqlx::AssertSqlSafe;

use super::lineage::is_by_another;
use super::principal::Principal;
use runtime::db::{Tx, on_either};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Creator<'a> {
    User(&'a str),
    /// By id or name.
    Token(&'a str),
}

/// What ended with an API token or a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedAccess {
    /// Names of the revoked tokens, sorted; none with a user, whose tokens stay.
    pub tokens: Vec<String>,
    pub links: u64,
    pub sessions: u64,
}

impl EndedAccess {
    pub(super) const fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.links == 0 && self.sessions == 0
    }

    fn add(&mut self, other: Self) {
        self.tokens.extend(other.tokens);
        self.tokens.sort_unstable();
        self.links += other.links;
        self.sessions += other.sessions;
    }
}

impl<'a> Creator<'a> {
    pub(super) const fn id(self) -> &'a str {
        match self {
            Self::User(id) | Self::Token(id) => id,
        }
    }

    /// A statement that reads `created`: the ids of this creator and of the tokens and sessions that came from it. `$1` is the
    /// creator's id.
    pub(super) fn with_created(self, statement: &str) -> AssertSqlSafe<String> {
        let first = match self {
            Self::User(_) => {
                "SELECT id FROM users WHERE id = $1
                UNION SELECT id FROM sessions WHERE user_id = $1 AND link_created_by_id IS NOT NULL"
            }
            Self::Token(_) => "SELECT id FROM api_tokens WHERE id = $1 OR name = $1",
        };
        AssertSqlSafe(format!(
            "WITH RECURSIVE created(id) AS (
                {first}
                UNION SELECT child.id FROM (
                    SELECT id, created_by_id AS parent_id FROM api_tokens
                    UNION ALL SELECT id, link_created_by_id FROM sessions WHERE link_created_by_id IS NOT NULL
                ) AS child JOIN created ON child.parent_id = created.id)
            {statement}"
        ))
    }
}

/// The parent of what this principal creates.
pub(super) fn parent_id(who: &Principal) -> &str {
    match &who.session {
        Some(session) if is_by_another(session) => session.id.as_str(),
        _ => who.id(),
    }
}

/// Ends the open links and sessions that came from a user or a token, those of the user included, and revokes the token with the
/// tokens that came from it.
///
/// A principal may be creating something in another transaction, which locks its row and that of its session: what was created by
/// the time the lock was free is found by the next round.
///
/// # Errors
/// The store does not answer.
pub(super) async fn end_created(
    tx: &mut Tx,
    creator: Creator<'_>,
    now: i64,
) -> Result<EndedAccess, sqlx::Error> {
    let mut all = EndedAccess::default();
    loop {
        let ended = end_once(tx, creator, now).await?;
        if ended.is_empty() {
            return Ok(all);
        }
        all.add(ended);
    }
}

/// Locks tokens, then links, then sessions, as every change that locks several of them.
async fn end_once(tx: &mut Tx, creator: Creator<'_>, now: i64) -> Result<EndedAccess, sqlx::Error> {
    let lock = "SELECT id FROM api_tokens WHERE id IN (SELECT id FROM created) AND revoked_at IS NULL
        ORDER BY id COLLATE \"C\" FOR NO KEY UPDATE";
    let tokens =
        "UPDATE api_tokens SET revoked_at = $2 WHERE id IN (SELECT id FROM created) AND revoked_at IS NULL
        RETURNING name";
    let (is_token, own) = match creator {
        Creator::Token(_) => (true, ""),
        Creator::User(_) => (false, " OR user_id = $1"),
    };
    let links = format!(
        "UPDATE one_time_links SET used_at = $2
        WHERE (created_by_id IN (SELECT id FROM created){own}) AND used_at IS NULL"
    );
    let sessions = format!(
        "UPDATE sessions SET ended_at = $2 WHERE (id IN (SELECT id FROM created){own}) AND ended_at IS NULL"
    );
    let id = creator.id();
    // The order of `record_uses` and of a revocation of some of the same tokens: no deadlock. SQLite has one writer.
    if is_token && let Tx::Postgres(tx) = &mut *tx {
        let query = sqlx::query(creator.with_created(lock)).bind(id);
        query.execute(&mut **tx).await?;
    }
    on_either!(tx, Tx, |tx| {
        let mut ended = EndedAccess::default();
        if is_token {
            let query = sqlx::query_scalar(creator.with_created(tokens));
            ended.tokens = query.bind(id).bind(now).fetch_all(&mut **tx).await?;
        }
        let query = sqlx::query(creator.with_created(&links)).bind(id).bind(now);
        ended.links = query.execute(&mut **tx).await?.rows_affected();
        let query = sqlx::query(creator.with_created(&sessions)).bind(id).bind(now);
        ended.sessions = query.execute(&mut **tx).await?.rows_affected();
        Ok(ended)
    })
}

//! Credentials that a user or an API token created, directly or through others: tokens, sign-in links, and the sessions that
//! those links opened.
//!
//! The parent of a token or a link is the principal that created it, or that principal's session if the link of another one opened
//! it: such a session acts for the creator of that link. The parent of a session is that of its link. The columns `created_by_id`
//! and `link_created_by_id` have the id of the parent.

use domain::duration::millis;
use sqlx::AssertSqlSafe;

use super::limits::{SESSION_IDLE, SESSION_MAX};
use super::lineage::is_by_another;
use super::principal::Principal;
use runtime::db::{Tx, on_either};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Creator<'a> {
    User(&'a str),
    /// By id or name.
    Token(&'a str),
}

/// Columns of a table of what a principal can create.
struct Table {
    table: &'static str,
    key: &'static str,
    name: &'static str,
    /// An id of `created` here ends the row.
    parent: &'static str,
    ended_at: &'static str,
}

const TOKENS: Table = Table {
    table: "api_tokens",
    key: "id",
    name: "name",
    parent: "id",
    ended_at: "revoked_at",
};

const LINKS: Table = Table {
    table: "one_time_links",
    key: "secret_hash",
    name: "secret_hash",
    parent: "created_by_id",
    ended_at: "used_at",
};

const SESSIONS: Table = Table {
    table: "sessions",
    key: "id",
    name: "id",
    parent: "id",
    ended_at: "ended_at",
};

/// Credentials that ended together with an API token or a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedAccess {
    /// Names of the revoked tokens, sorted; none with a user, whose tokens stay.
    pub tokens: Vec<String>,
    /// Only links and sessions that could still be used.
    pub links: u64,
    pub sessions: u64,
    /// Number of rows of all three kinds, including those that had ended by time.
    rows: usize,
}

impl EndedAccess {
    pub(super) const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn add(&mut self, other: Self) {
        self.tokens.extend(other.tokens);
        self.tokens.sort_unstable();
        self.links += other.links;
        self.sessions += other.sessions;
        self.rows += other.rows;
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
    let tokens = match creator {
        Creator::Token(_) => end_rows(tx, creator, &TOKENS, "TRUE", now).await?,
        Creator::User(_) => Vec::new(),
    };
    let links = end_rows(tx, creator, &LINKS, "expires_at > $2", now).await?;
    let in_use = format!(
        "created_at + {} > $2 AND last_seen_at + {} > $2",
        millis(SESSION_MAX),
        millis(SESSION_IDLE)
    );
    let sessions = end_rows(tx, creator, &SESSIONS, &in_use, now).await?;
    Ok(EndedAccess {
        rows: tokens.len() + links.len() + sessions.len(),
        links: count_usable(&links),
        sessions: count_usable(&sessions),
        tokens: tokens.into_iter().map(|(name, _)| name).collect(),
    })
}

fn count_usable(rows: &[(String, bool)]) -> u64 {
    let usable = rows.iter().filter(|(_, is_usable)| *is_usable);
    usable.count().try_into().unwrap_or(u64::MAX)
}

/// Ends the open rows of one table; returns their names, and whether they were `usable` at `$2`.
///
/// Locks them in the order of their keys, as `record_uses` and a change that ends some of the same rows: no deadlock. SQLite has one
/// writer.
async fn end_rows(
    tx: &mut Tx,
    creator: Creator<'_>,
    table: &Table,
    usable: &str,
    now: i64,
) -> Result<Vec<(String, bool)>, sqlx::Error> {
    let own = match creator {
        Creator::Token(_) => "",
        Creator::User(_) => " OR user_id = $1",
    };
    let Table {
        table,
        key,
        name,
        parent,
        ended_at,
    } = table;
    let open = format!("({parent} IN (SELECT id FROM created){own}) AND {ended_at} IS NULL");
    let lock =
        format!("SELECT {key} FROM {table} WHERE {open} ORDER BY {key} COLLATE \"C\" FOR NO KEY UPDATE");
    let end = format!("UPDATE {table} SET {ended_at} = $2 WHERE {open} RETURNING {name}, {usable}");
    if let Tx::Postgres(tx) = tx {
        let query = sqlx::query(creator.with_created(&lock)).bind(creator.id());
        query.execute(&mut **tx).await?;
    }
    let ended: Vec<(String, bool)> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_as(creator.with_created(&end));
        query.bind(creator.id()).bind(now).fetch_all(&mut **tx).await?
    });
    Ok(ended)
}

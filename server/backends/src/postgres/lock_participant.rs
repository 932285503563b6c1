//! A holder or waiter: a session of `pg_stat_activity`, or a prepared transaction that outlived
//! its session.

use chrono::{DateTime, Utc};
use domain::generation::Generation;
use domain::names::OwnerId;
use domain::observation::{ObservedCondition, Session};
use domain::reported::Reported;
use domain::waits::{IdentityField, WaitParty};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::lossy_text::lossy_text;
use super::pooler::Pooler;
use super::query_text;
use config::postgres::{PoolerAddress, QueryText};

/// Of at most four bytes each, as in [`SESSIONS`].
const QUERY_CHARS_MAX: usize = 4_000;
pub(super) const HIDDEN: &str = "this account is not a member of pg_monitor or pg_read_all_stats";

/// `textsend` and `substr` of its bytes do not require that the query is valid in the encoding of our database.
pub(super) const SESSIONS: &str = "
SELECT pid, coalesce(application_name, '') AS application_name, usename::text AS account, host(client_addr) AS client,
       state, CASE WHEN $3 THEN substr(textsend(query), 1, 16000) END AS query, datname::text AS database, backend_start, xact_start, query_start, state_change,
       query IS NOT DISTINCT FROM '<insufficient privilege>' AS hidden,
       application_name = $2 AND usename = current_user AS ours
FROM pg_stat_activity WHERE pid = ANY($1)";

pub(super) const PREPARED: &str = "
SELECT transaction::text AS xid, gid, prepared, owner::text AS account, database::text AS database
FROM pg_prepared_xacts";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Party {
    Session(Box<SessionRow>),
    Prepared(PreparedRow),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SessionRow {
    pub(super) pid: i32,
    pub(super) application_name: String,
    pub(super) account: Option<String>,
    pub(super) client: Option<String>,
    pub(super) state: Option<String>,
    /// Limited by `query_text`: without literals unless configured.
    pub(super) query: Option<String>,
    pub(super) database: Option<String>,
    pub(super) backend_start: Option<DateTime<Utc>>,
    pub(super) xact_start: Option<DateTime<Utc>>,
    pub(super) query_start: Option<DateTime<Utc>>,
    pub(super) state_change: Option<DateTime<Utc>>,
    /// The server hides its activity from this account.
    pub(super) hidden: bool,
    /// One of Leasehold's own.
    pub(super) ours: bool,
    pub(super) pooler: Option<Pooler>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PreparedRow {
    pub(super) xid: String,
    pub(super) gid: String,
    pub(super) prepared: DateTime<Utc>,
    pub(super) account: String,
    pub(super) database: String,
}

/// Level of an advisory lock, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Held by a session outside any transaction.
    Session,
    /// A prepared transaction keeps only transaction-level locks.
    Transaction,
    /// In a transaction: taken in it, or before it.
    Either,
    Hidden,
}

impl Level {
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Session => "session level: it is held outside any transaction",
            Self::Transaction => "transaction level: it survived PREPARE TRANSACTION",
            Self::Either => {
                "unknown: its session is in a transaction, and Postgres does not record which of the two holds it"
            }
            Self::Hidden => "unknown: this account is not a member of pg_monitor or pg_read_all_stats",
        }
    }
}

impl SessionRow {
    pub(super) fn read(
        row: &PgRow,
        query_text: QueryText,
        poolers: &[PoolerAddress],
    ) -> Result<Self, sqlx::Error> {
        let query: Option<String> =
            lossy_text(row, "query")?.map(|query| query.chars().take(QUERY_CHARS_MAX).collect());
        let mut session = Self {
            pid: row.try_get("pid")?,
            application_name: lossy_text(row, "application_name")?.unwrap_or_default(),
            account: lossy_text(row, "account")?,
            client: row.try_get("client")?,
            state: row.try_get("state")?,
            query: query_text::apply_mode(query, query_text),
            database: lossy_text(row, "database")?,
            backend_start: row.try_get("backend_start")?,
            xact_start: row.try_get("xact_start")?,
            query_start: row.try_get("query_start")?,
            state_change: row.try_get("state_change")?,
            hidden: row.try_get("hidden")?,
            ours: row.try_get::<Option<bool>, _>("ours")?.unwrap_or(false),
            pooler: None,
        };
        session.pooler = Pooler::find(&session, poolers);
        Ok(session)
    }

    pub(super) fn owner_id(&self) -> OwnerId {
        owner_of(&self.application_name, self.pid)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state.as_deref() == Some("idle")
    }

    /// For the detail page. Hidden fields are named as hidden.
    pub(super) fn to_session(&self, now: DateTime<Utc>) -> Session {
        let unknown = || format!("unknown: {HIDDEN}");
        Session {
            pid: self.pid,
            application_name: self.application_name.clone(),
            client_address: self.client.clone(),
            state: if self.hidden {
                unknown()
            } else {
                self.state.clone().unwrap_or_else(|| "unknown".to_owned())
            },
            query: if self.hidden {
                unknown()
            } else {
                self.query.clone().unwrap_or_default()
            },
            transaction_age_ms: self
                .xact_start
                .map(|since| (now - since).num_milliseconds().max(0)),
        }
    }

    pub(super) fn state_label(&self) -> &str {
        self.state.as_deref().unwrap_or("unknown")
    }

    /// State and query in one line, for the blocker tree.
    pub(super) fn activity(&self) -> String {
        if self.hidden {
            return format!("unknown: {HIDDEN}");
        }
        let state = self.state_label();
        match self.query.as_deref().filter(|query| !query.is_empty()) {
            Some(query) => format!("{state}: {query}"),
            None => state.to_owned(),
        }
    }
}

impl PreparedRow {
    pub(super) fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            xid: row.try_get("xid")?,
            gid: lossy_text(row, "gid")?.unwrap_or_default(),
            prepared: row.try_get("prepared")?,
            account: lossy_text(row, "account")?.unwrap_or_default(),
            database: lossy_text(row, "database")?.unwrap_or_default(),
        })
    }
}

pub(super) fn owner_of(application_name: &str, pid: i32) -> OwnerId {
    let name = if application_name.is_empty() {
        "session"
    } else {
        application_name
    };
    OwnerId::new(format!("{name}#{pid}"))
}

/// In whole seconds, for sentences that must not change between scans.
pub(super) fn whole_seconds(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

impl Party {
    pub(super) fn owner_id(&self) -> OwnerId {
        match self {
            Self::Session(session) => session.owner_id(),
            Self::Prepared(prepared) => OwnerId::new(format!("prepared#{}", prepared.gid)),
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Session(session) if session.ours)
    }

    pub(super) fn database(&self) -> Option<&str> {
        match self {
            Self::Session(session) => session.database.as_deref(),
            Self::Prepared(prepared) => Some(&prepared.database),
        }
    }

    pub(super) fn generation(&self) -> Reported<Generation> {
        match self {
            Self::Session(session) => match session.backend_start {
                Some(start) => Reported::Value(Generation::new(format!(
                    "pid:{}@{}",
                    session.pid,
                    exact_time(start)
                ))),
                None => Reported::unknown(HIDDEN),
            },
            Self::Prepared(prepared) => Reported::Value(Generation::new(format!(
                "prepared:{}@{}",
                prepared.gid,
                exact_time(prepared.prepared)
            ))),
        }
    }

    /// Process ids are used again: the start of the session tells two of them apart.
    pub(super) fn wait_party(&self) -> WaitParty {
        let id = match (self.generation(), self) {
            (Reported::Value(generation), _) => generation.as_str().to_owned(),
            (_, Self::Session(session)) => format!("pid:{}", session.pid),
            (_, Self::Prepared(prepared)) => format!("prepared:{}", prepared.gid),
        };
        let fields = match self {
            Self::Session(session) => [
                (
                    IdentityField::ApplicationName,
                    Some(session.application_name.as_str()),
                ),
                (IdentityField::ClientAddress, session.client.as_deref()),
                (IdentityField::User, session.account.as_deref()),
            ],
            Self::Prepared(prepared) => [
                (IdentityField::ApplicationName, None),
                (IdentityField::ClientAddress, None),
                (IdentityField::User, Some(prepared.account.as_str())),
            ],
        };
        WaitParty::new(id, self.owner_id(), fields)
    }

    /// Grant times are not recorded. The times that bound them are in the raw record: a reason with a time would be
    /// another one for each transaction.
    pub(super) fn acquired_at(&self) -> Reported<DateTime<Utc>> {
        Reported::unknown(match self {
            Self::Session(session) if session.xact_start.is_some() => {
                "Postgres does not record when a lock was granted; its transaction began at xact_start of the raw record"
            }
            Self::Session(session) if session.hidden => HIDDEN,
            Self::Session(_) => "Postgres does not record when a session-level lock was granted",
            Self::Prepared(_) => {
                "Postgres does not record when a lock was granted; it was before its transaction was prepared"
            }
        })
    }

    pub(super) fn level(&self) -> Level {
        match self {
            Self::Prepared(_) => Level::Transaction,
            Self::Session(session) if session.hidden => Level::Hidden,
            Self::Session(session) if session.is_idle() => Level::Session,
            Self::Session(_) => Level::Either,
        }
    }

    /// A prepared transaction without a session has no owner to end it.
    pub(super) fn orphaned(&self) -> Option<ObservedCondition> {
        let Self::Prepared(prepared) = self else {
            return None;
        };
        Some(ObservedCondition::Orphaned {
            why: format!(
                "held by the prepared transaction {:?} of {} since {}: no session is left to end it",
                prepared.gid,
                prepared.account,
                whole_seconds(prepared.prepared)
            )
            .into(),
        })
    }
}

pub(super) fn exact_time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_session_has_no_generation_but_a_reason() {
        // Without backend_start a reused pid cannot be detected.
        let hidden = Party::Session(Box::new(SessionRow {
            pid: 7,
            state: Some("idle".to_owned()),
            hidden: true,
            ..SessionRow::default()
        }));
        assert!(hidden.generation().why().unwrap().contains("pg_monitor"));
        assert_eq!(hidden.level(), Level::Hidden);
    }
}

//! Sessions of a connection pooler, and locks that were returned to it.
//!
//! A pooler in transaction mode takes a session back at the end of each transaction, so an idle
//! session has no client: a session-level lock that it holds has outlived its client. Of a
//! session that only looks like a pooler's this is not certain, because a pooler in session mode
//! leaves an idle session with its client.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use domain::escape::visible;
use domain::observation::ObservedCondition;

use super::lock_participant::{SessionRow, whole_seconds};
use config::postgres::PoolerAddress;

/// Idle for longer than this with a session-level lock looks like a leak, in seconds.
const IDLE_LEAK_S: i64 = 600;
/// Poolers by application name or role.
const NAMES: [&str; 6] = ["pgbouncer", "pgcat", "odyssey", "pgpool", "supavisor", "pgagroal"];

/// How a session is known to be a pooler's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pooler {
    /// It comes from a configured address.
    At(String),
    /// Its application name or role names one.
    Named(&'static str),
}

impl Pooler {
    /// The pooler of a session; `client` is its address, none for a Unix socket.
    pub(super) fn find(session: &SessionRow, poolers: &[PoolerAddress]) -> Option<Self> {
        by_address(session, poolers).or_else(|| {
            let application = session.application_name.to_lowercase();
            let account = session.account.as_deref().unwrap_or_default().to_lowercase();
            let name = NAMES
                .into_iter()
                .find(|name| application.contains(name) || account.contains(name));
            name.map(Self::Named)
        })
    }

    pub(super) fn description(&self) -> String {
        match self {
            Self::At(address) => format!("the pooler at {address}"),
            Self::Named(name) => format!("the pooler {name}"),
        }
    }
}

fn by_address(session: &SessionRow, poolers: &[PoolerAddress]) -> Option<Pooler> {
    let shown = match session.client.as_deref() {
        // The server hides the address of other accounts' sessions like that of a socket.
        None if session.hidden => return None,
        None => poolers
            .contains(&PoolerAddress::Socket)
            .then(|| "the Unix socket".to_owned()),
        Some(text) => {
            let address: IpAddr = text.parse().ok()?;
            let is_listed = poolers.iter().any(|pooler| match pooler {
                PoolerAddress::Network(network) => network.contains(address),
                PoolerAddress::Socket => false,
            });
            is_listed.then(|| text.to_owned())
        }
    };
    shown.map(Pooler::At)
}

/// Why this session, which holds a session-level lock, has been returned to a pool with it, or
/// looks like that.
pub(super) fn find_leak(session: &SessionRow, now: DateTime<Utc>) -> Option<ObservedCondition> {
    if !session.is_idle() {
        return None;
    }
    match &session.pooler {
        Some(pooler @ Pooler::At(_)) => {
            let last = session.account.as_deref().map(visible).unwrap_or_default();
            Some(ObservedCondition::Orphaned {
                why: format!(
                    "Leaked through {}: session {} of {last} is back in the pool and idle, so its client is gone, and it \
                     still holds the lock",
                    pooler.description(),
                    session.pid
                )
                .into(),
            })
        }
        Some(Pooler::Named(name)) => Some(report_possible_leak(format!(
            "the session belongs to {name} and is idle"
        ))),
        None => {
            let since = session
                .state_change
                .filter(|since| (now - since).num_seconds() > IDLE_LEAK_S)?;
            Some(report_possible_leak(format!(
                "the session holds it while idle since {}",
                whole_seconds(since)
            )))
        }
    }
}

fn report_possible_leak(why: String) -> ObservedCondition {
    ObservedCondition::Note {
        why: format!("May be leaked through the pooler: {why}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u32) -> DateTime<Utc> {
        let day = chrono::NaiveDate::from_ymd_opt(2026, 4, 1).unwrap();
        day.and_hms_opt(3, minute, 0).unwrap().and_utc()
    }

    fn idle(application_name: &str, client: Option<&str>) -> SessionRow {
        SessionRow {
            pid: 7,
            application_name: application_name.to_owned(),
            account: Some("app".to_owned()),
            client: client.map(str::to_owned),
            state: Some("idle".to_owned()),
            state_change: Some(at(0)),
            ..SessionRow::default()
        }
    }

    fn read(mut session: SessionRow) -> SessionRow {
        let poolers = ["10.0.0.0/24", "fd00::7", "socket"].map(|text| text.parse().unwrap());
        session.pooler = Pooler::find(&session, &poolers);
        session
    }

    fn note_of(session: &SessionRow, now: DateTime<Utc>) -> String {
        match find_leak(session, now) {
            Some(ObservedCondition::Note { why }) => why.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_poolers_idle_session_with_a_lock_is_leaked() {
        // By network, address and socket; not while it is in a transaction, and not from another address.
        for client in [Some("10.0.0.9"), Some("fd00::7"), None] {
            let session = read(idle("billing", client));
            let Some(ObservedCondition::Orphaned { why }) = find_leak(&session, at(0)) else {
                panic!("{client:?}")
            };
            assert!(
                why.contains("back in the pool") && why.contains("session 7 of app"),
                "{why}"
            );
            let busy = SessionRow {
                state: Some("idle in transaction".to_owned()),
                ..session
            };
            assert_eq!(find_leak(&busy, at(30)), None);
        }
        assert_eq!(find_leak(&read(idle("billing", Some("10.0.1.9"))), at(0)), None);
        let hidden = SessionRow {
            hidden: true,
            ..idle("billing", None)
        };
        assert_eq!(read(hidden).pooler, None);
    }

    #[test]
    fn a_session_that_only_looks_pooled_may_be_a_leak() {
        // By its name at once; any other holder after ten idle minutes by the server's clock.
        let direct = Some("192.168.1.1");
        assert!(note_of(&read(idle("PgBouncer 1.22", direct)), at(0)).contains("pgbouncer"));
        let plain = read(idle("billing", direct));
        assert_eq!(find_leak(&plain, at(10)), None);
        assert!(note_of(&plain, at(11)).contains("idle since 2026-04-01 03:00:00 UTC"));
    }
}

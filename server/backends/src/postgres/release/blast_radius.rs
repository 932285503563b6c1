//! Blast radius of a forced unlock: nothing for a row, everything held by a session.

use domain::force_release::{BlastRadius, CasualtyKind};
use domain::format;
use domain::observation::ObservedLock;
use domain::reported::Reported;

use crate::postgres::checked_table::CheckedTable;
use crate::postgres::lock_participant::{HIDDEN, Party, SessionRow};
use crate::postgres::record::RelatedLocks;
use crate::postgres::release_action::RowAct;
use crate::postgres::snapshot::Snapshot;

const NO_NOTICE: &str = "The table does not notify the holder: it finds out at its next renewal or read.";

const SAME_SESSION: &str =
    "A session that releases this lock and takes it again before the release looks the same, and is ended.";

pub(in crate::postgres) fn for_row(
    lock: Option<&ObservedLock>,
    act: &RowAct,
    checked: &CheckedTable,
) -> Reported<BlastRadius> {
    if lock.is_none() {
        return Reported::absent("the lock is free");
    }
    if let RowAct::Refused { why, remedy } = act {
        return Reported::Unknown(format!("it cannot be released here: {why}. {remedy}").into());
    }
    let mut radius = BlastRadius::default();
    radius.warn(NO_NOTICE);
    if let Some(warning) = act.warning(checked) {
        radius.warn(warning);
    }
    if let Some(warning) = checked.table.preset.warning {
        radius.warn(warning);
    }
    Reported::Value(radius)
}

/// Blast radius of the sessions that an unlock would end, with everything else that they hold.
pub(in crate::postgres) fn for_sessions(
    snapshot: &Snapshot,
    pids: &[i32],
    related: &RelatedLocks,
) -> Reported<BlastRadius> {
    let mut radius = BlastRadius::default();
    for pid in pids {
        match snapshot.parties.get(pid) {
            Some(Party::Session(session)) if session.hidden || session.backend_start.is_none() => {
                return Reported::unknown(HIDDEN);
            }
            Some(Party::Session(session)) => add_session(session, &mut radius),
            Some(Party::Prepared(_)) => {}
            None => return Reported::unknown("the session ended during the read"),
        }
    }
    for transaction in &related.transactions {
        radius.add(CasualtyKind::Transaction, transaction.clone());
    }
    for lock in &related.locks {
        radius.add_lock(lock.what.clone(), lock.resource.clone());
    }
    if related.unlisted > 0 {
        radius.has_unnamed = true;
        radius.unlisted = related.unlisted;
        let more = format::counted(related.unlisted, "more lock", "more locks");
        radius.warn(format!("It holds {more}: only the first thousand are listed."));
    }
    Reported::Value(radius)
}

/// An advisory lock is identified by its sessions.
pub(in crate::postgres) fn with_reacquired_lock(mut radius: BlastRadius) -> BlastRadius {
    radius.warn(SAME_SESSION);
    radius
}

/// Without its statement: casualties are copied into the audit log, which is append-only.
fn add_session(session: &SessionRow, radius: &mut BlastRadius) {
    let account = session.account.as_deref().unwrap_or("unknown");
    let client = session.client.as_deref().unwrap_or("this host");
    radius.add(
        CasualtyKind::Session,
        format!(
            "{} of {account} from {client}, {}",
            session.owner_id().as_str(),
            session.state_label()
        ),
    );
    if let Some(pooler) = &session.pooler {
        radius.warn(format!(
            "The session belongs to {}: ending it disconnects its current client, which may not be the one that \
             acquired the lock.",
            pooler.description()
        ));
    } else if session.is_idle() {
        radius.warn(
            "The session is idle: it may belong to a pool and serve another client next, which would be disconnected.",
        );
    }
}

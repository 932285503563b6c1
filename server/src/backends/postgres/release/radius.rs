//! What a forced unlock takes along: of a row nothing, of a session everything that it holds.

use domain::known::Known;
use domain::observation::ObservedLock;
use domain::release::{BlastRadius, CasualtyKind};

use crate::backends::postgres::party::{HIDDEN, Party, SessionRow};
use crate::backends::postgres::record::Fate;
use crate::backends::postgres::row_act::{MEND, RowAct};
use crate::backends::postgres::snapshot::Snapshot;
use crate::config::postgres::LeaseTablePreset;

const NOT_TOLD: &str = "The table does not tell the holder: it finds out when it next renews or looks.";

pub(in crate::backends::postgres) fn of_row(
    lock: Option<&ObservedLock>,
    act: RowAct,
    preset: LeaseTablePreset,
) -> Known<BlastRadius> {
    if lock.is_none() {
        return Known::absent("nobody holds it");
    }
    let mut radius = BlastRadius::default();
    radius.warn(NOT_TOLD);
    match (act, preset) {
        (RowAct::Expire, LeaseTablePreset::Common) => radius.warn(
            "The row stays, expired, because its token lives in it: a client that renews without comparing the expiry \
             could take it back.",
        ),
        (RowAct::None, _) => return Known::Unknown(format!("it cannot be released without its token. {MEND}").into()),
        (RowAct::Delete | RowAct::Expire | RowAct::Free, _) => {}
    }
    Known::Known(radius)
}

/// Of the sessions that an unlock would end, with everything that they hold beside the lock.
pub(in crate::backends::postgres) fn of_sessions(
    snapshot: &Snapshot,
    pids: &[i32],
    fate: &Fate,
) -> Known<BlastRadius> {
    let mut radius = BlastRadius::default();
    for pid in pids {
        match snapshot.parties.get(pid) {
            Some(Party::Session(session)) if session.hidden || session.backend_start.is_none() => {
                return Known::unknown(HIDDEN);
            }
            Some(Party::Session(session)) => of_session(session, &mut radius),
            Some(Party::Prepared(_)) => {}
            None => return Known::unknown("the session ended while we looked"),
        }
    }
    for transaction in &fate.transactions {
        radius.add(CasualtyKind::Transaction, transaction.clone());
    }
    for lock in &fate.locks {
        radius.add_lock(lock.what.clone(), lock.resource.clone());
    }
    if fate.is_cut {
        radius.has_unnamed = true;
        radius.warn("It holds even more locks: only the first thousand are listed.");
    }
    Known::Known(radius)
}

/// Without its statement: casualties are copied into the audit record, from which nothing is removed.
fn of_session(session: &SessionRow, radius: &mut BlastRadius) {
    let account = session.account.as_deref().unwrap_or("unknown");
    let client = session.client.as_deref().unwrap_or("this host");
    radius.add(
        CasualtyKind::Session,
        format!(
            "{} of {account} from {client}, {}",
            session.owner_id().as_str(),
            session.state_word()
        ),
    );
    if let Some(pooler) = session.pooler() {
        radius.warn(format!(
            "The session belongs to the pooler {pooler}: ending it cuts off whoever it serves now, who need not be the one \
             that took the lock."
        ));
    } else if session.is_idle() {
        radius.warn(
            "The session is idle: it may be one of a pool, and serve somebody else next, who would be cut off.",
        );
    }
}

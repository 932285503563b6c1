//! Converts a row of a lease table to a lock. The clock reading in the row determines the time
//! left.

use chrono::{DateTime, Utc};
use domain::escape;
use domain::generation::Generation;
use domain::limits;
use domain::names::{OwnerId, Resource};
use domain::observation::{Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::token::FencingToken;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::checked_table::CheckedTable;
use super::preset::PresetRelease;
use super::table::Role;

/// A moment as the listing sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    At(i64),
    /// Infinity, or after the year 9999.
    Far,
    /// Minus infinity, or before the year 1.
    Past,
}

/// A row of [`CheckedTable::list`], borrowed from the answer.
struct Fields<'r> {
    resource: Option<&'r str>,
    owner: Option<&'r str>,
    lease_id: Option<&'r str>,
    token: Option<&'r str>,
    expires: Option<Moment>,
    created: Option<Moment>,
    updated: Option<Moment>,
    now_us: i64,
    name_too_long: bool,
}

/// Why a row cannot be shown as a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skipped {
    NoName,
    NameTooLong,
    Unreadable,
}

pub(super) fn lock(checked: &CheckedTable, row: &PgRow) -> Result<ObservedLock, Skipped> {
    let fields = fields(row).ok_or(Skipped::Unreadable)?;
    let name = match fields.resource {
        Some(name) => name,
        None if fields.name_too_long => return Err(Skipped::NameTooLong),
        None => return Err(Skipped::NoName),
    };
    Ok(ObservedLock {
        source: checked.table.source.clone(),
        resource: Resource::from(name),
        owner: owner(checked, &fields),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: lease_id(checked, &fields),
        generation: generation(checked, &fields),
        fencing_token: token(checked, &fields),
        acquired_at: acquired_at(checked, &fields),
        renewed_at: renewed_at(checked, &fields),
        lifetime: lifetime(checked, &fields),
        waiter_count: Reported::unknown("a lease table does not record waiters"),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: None,
    })
}

fn fields(row: &PgRow) -> Option<Fields<'_>> {
    let text = |index: usize| row.try_get::<Option<&str>, _>(index).ok();
    let moment = |index: usize| Some(text(index)?.and_then(parse_moment));
    Some(Fields {
        resource: text(0)?,
        owner: text(1)?,
        lease_id: text(2)?,
        token: text(3)?,
        expires: moment(4)?,
        created: moment(5)?,
        updated: moment(6)?,
        now_us: text(7)??.parse().ok()?,
        name_too_long: row.try_get::<Option<bool>, _>(8).ok()?.unwrap_or(false),
    })
}

fn parse_moment(text: &str) -> Option<Moment> {
    match text {
        "far" => Some(Moment::Far),
        "past" => Some(Moment::Past),
        micros => micros.parse().ok().map(Moment::At),
    }
}

fn date(moment: Option<Moment>) -> Option<DateTime<Utc>> {
    match moment {
        Some(Moment::At(micros)) => DateTime::from_timestamp_micros(micros),
        Some(Moment::Far | Moment::Past) | None => None,
    }
}

/// Name of the column with a role, for reasons.
fn column(checked: &CheckedTable, role: Role) -> &str {
    checked
        .table
        .column(role)
        .map_or(role.as_str(), |name| name.text.as_str())
}

fn null<T>(checked: &CheckedTable, role: Role) -> Reported<T> {
    Reported::Unknown(format!("{} is NULL", column(checked, role)).into())
}

fn owner(checked: &CheckedTable, fields: &Fields<'_>) -> Reported<OwnerId> {
    match fields.owner {
        Some(owner) => Reported::Value(OwnerId::new(cut(owner, limits::OWNER_CHARS_MAX))),
        None if checked.table.column(Role::Owner).is_some() => null(checked, Role::Owner),
        None => Reported::unknown("this table does not record the owner"),
    }
}

fn cut(text: &str, chars_max: usize) -> &str {
    text.char_indices()
        .nth(chars_max)
        .map_or(text, |(end, _)| &text[..end])
}

fn is_cut(text: &str, chars_max: usize) -> bool {
    text.len() > chars_max && text.chars().count() > chars_max
}

fn lease_id(checked: &CheckedTable, fields: &Fields<'_>) -> Reported<Box<str>> {
    match fields.lease_id {
        Some(id) if is_cut(id, limits::OWNER_CHARS_MAX) => {
            Reported::unknown("the lease id is longer than 1024 characters")
        }
        Some(id) => Reported::Value(id.into()),
        None if checked.table.column(Role::LeaseId).is_some() => null(checked, Role::LeaseId),
        None => Reported::NotApplicable(format!("{} has no lease id", checked.table.preset.title).into()),
    }
}

/// The lease id; without one the owner with the acquisition time in microseconds; and the
/// token, if there is one. `CheckedTable::guard` builds the same text in SQL.
fn generation(checked: &CheckedTable, fields: &Fields<'_>) -> Reported<Generation> {
    let is_complete = |text: &&str| !is_cut(text, limits::OWNER_CHARS_MAX);
    let holder = match (
        fields.lease_id.filter(is_complete),
        fields.owner.filter(is_complete),
        fields.created,
    ) {
        (Some(id), _, _) => format!("lease:{id}"),
        (None, Some(owner), Some(Moment::At(micros))) => format!("owner:{owner}@{micros}"),
        (None, Some(owner), _) if fields.token.is_some() => format!("owner:{owner}"),
        (None, None, _) if fields.token.is_some() => String::new(),
        _ => return no_generation(checked),
    };
    Reported::Value(Generation::new(match fields.token {
        Some(token) => format!("{holder}#{token}"),
        None => holder,
    }))
}

fn no_generation(checked: &CheckedTable) -> Reported<Generation> {
    const NONE: &str = "no column of this row identifies the acquisition";
    match checked.table.preset.release {
        PresetRelease::Refused { remedy, .. } => Reported::Unknown(format!("{NONE}. {remedy}").into()),
        PresetRelease::ByTable | PresetRelease::By(_) => Reported::unknown(NONE),
    }
}

fn token(checked: &CheckedTable, fields: &Fields<'_>) -> Reported<FencingToken> {
    let Some(text) = fields.token else {
        return match checked.table.column(Role::FencingToken) {
            Some(_) => null(checked, Role::FencingToken),
            None => Reported::NotApplicable(checked.table.no_token().into()),
        };
    };
    // A numeric with decimals writes 7 as 7.00.
    let whole = text
        .split_once('.')
        .filter(|(_, rest)| rest.bytes().all(|digit| digit == b'0'));
    match whole.map_or(text, |(whole, _)| whole).parse() {
        Ok(number) => Reported::Value(FencingToken::new(number)),
        Err(_) => Reported::Unknown(
            format!(
                "{} is no token: {}",
                column(checked, Role::FencingToken),
                escape::visible(cut(text, 40))
            )
            .into(),
        ),
    }
}

fn acquired_at(checked: &CheckedTable, fields: &Fields<'_>) -> Reported<DateTime<Utc>> {
    if checked.local_times {
        return Reported::unknown(
            "Liquibase writes lockgranted in its client's own time zone, which it does not record",
        );
    }
    match (date(fields.created), checked.table.column(Role::CreatedAt)) {
        (Some(at), _) => Reported::Value(at),
        (None, Some(_)) if fields.created.is_none() => null(checked, Role::CreatedAt),
        (None, Some(_)) => {
            Reported::Unknown(format!("{} is infinite", column(checked, Role::CreatedAt)).into())
        }
        (None, None) => Reported::unknown("this table does not record when a lock was acquired"),
    }
}

fn renewed_at(checked: &CheckedTable, fields: &Fields<'_>) -> Reported<DateTime<Utc>> {
    match (
        date(fields.updated),
        date(fields.created),
        checked.table.column(checked.table.sign_of_life()),
    ) {
        (Some(updated), Some(created), _) if updated > created => Reported::Value(updated),
        (Some(_), Some(_), _) => Reported::unknown("not renewed since it was acquired"),
        (Some(updated), None, _) => Reported::Value(updated),
        (None, _, Some(_)) => null(checked, checked.table.sign_of_life()),
        (None, _, None) => Reported::unknown("this table does not record renewals"),
    }
}

fn lifetime(checked: &CheckedTable, fields: &Fields<'_>) -> Lifetime {
    let expires = column(checked, Role::ExpiresAt);
    if let Some(alive) = heartbeat(checked, fields).filter(|_| fields.expires.is_none()) {
        return alive;
    }
    match fields.expires {
        Some(Moment::At(micros)) => {
            // Rounded down: never overstated.
            let remaining_ms = micros.saturating_sub(fields.now_us).div_euclid(1000);
            Lifetime::Leased {
                remaining_ms,
                ttl_ms: ttl_ms(fields, micros),
            }
        }
        Some(Moment::Far) => Lifetime::NoTtl {
            why: format!("{expires} is infinitely far").into(),
        },
        Some(Moment::Past) => {
            let ttl_ms = Reported::Unknown(format!("{expires} is infinitely long ago").into());
            Lifetime::Leased {
                remaining_ms: i64::MIN / 1_000_000,
                ttl_ms,
            }
        }
        None if checked.table.column(Role::ExpiresAt).is_some() => Lifetime::NoTtl {
            why: format!("{expires} is NULL").into(),
        },
        None => Lifetime::NoTtl {
            why: format!(
                "{} records no expiry: it stays until it is released",
                checked.table.preset.title
            )
            .into(),
        },
    }
}

/// The heartbeat in place of an expiry; `None` if the table has none configured or the row has
/// no value.
fn heartbeat(checked: &CheckedTable, fields: &Fields<'_>) -> Option<Lifetime> {
    let stale_after_ms = checked.table.stale_after_ms?;
    let created = fields.created.filter(|_| !checked.local_times);
    let at = |moment: Option<Moment>| match moment {
        Some(Moment::At(micros)) => Some(micros),
        Some(Moment::Far | Moment::Past) | None => None,
    };
    let last_us = at(fields.updated).max(at(created))?;
    let why = match checked.table.column(checked.table.sign_of_life()) {
        Some(sign) => format!("it has no expiry: {} is its heartbeat", sign.text),
        None => format!(
            "it has no expiry: its age by {} counts",
            column(checked, Role::CreatedAt)
        ),
    };
    Some(Lifetime::Heartbeat {
        silent_ms: fields.now_us.saturating_sub(last_us).div_euclid(1000).max(0),
        stale_after_ms,
        why: why.into(),
    })
}

/// TTL of the last grant or renewal.
fn ttl_ms(fields: &Fields<'_>, expires_us: i64) -> Reported<i64> {
    let at = |moment| {
        if let Some(Moment::At(micros)) = moment {
            Some(micros)
        } else {
            None
        }
    };
    match at(fields.updated).max(at(fields.created)) {
        Some(granted_us) if expires_us > granted_us => Reported::Value((expires_us - granted_us) / 1000),
        Some(_) => Reported::unknown("it expired before its last update: that was no grant"),
        None => Reported::unknown("this row does not record when it was granted"),
    }
}

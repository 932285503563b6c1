//! How a row of a lease table is force-released: as its clients expect, without lowering a
//! token, and without deleting what is not part of the lock.

use sqlx::Row;

use super::checked_table::CheckedTable;
use super::column::Column;
use super::connection::Link;
use super::error::StatementError;
use super::ident::quoted;
use super::preset::PresetRelease;
use super::table::Role;
use config::postgres::LeaseTableRelease;

const OTHER_RELEASE: &str = "Set `release = \"expire\"` or `release = \"clear\"` for this table, and name in `columns` what it changes.";
/// Columns that are named in a reason.
const COLUMNS_NAMED: usize = 5;

const DRAWN: &str = "
SELECT a.attidentity <> '' OR EXISTS (
    SELECT FROM pg_attrdef d
    JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass
    JOIN pg_class s ON s.oid = p.refobjid AND s.relkind = 'S'
    WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowAct {
    Delete,
    /// The row stays, expired.
    Expire,
    /// The row stays; its owner and times become NULL, its flag false.
    Clear,
    Refused {
        why: String,
        remedy: String,
    },
}

fn refused(why: impl Into<String>, remedy: &str) -> RowAct {
    RowAct::Refused {
        why: why.into(),
        remedy: remedy.to_owned(),
    }
}

/// The action for a table: from its preset, its configuration, and the source of its tokens.
pub(super) async fn read(link: &mut Link<'_>, checked: &CheckedTable) -> Result<RowAct, StatementError> {
    let action = match checked.table.preset.release {
        PresetRelease::Refused { why, remedy } => return Ok(refused(why, remedy)),
        PresetRelease::By(release) => Some(release),
        PresetRelease::ByTable => checked.table.release,
    };
    Ok(match action {
        Some(LeaseTableRelease::Delete) => delete(checked),
        Some(LeaseTableRelease::Expire) => expire(checked),
        Some(LeaseTableRelease::Clear) => clear(checked),
        None if delete(checked) == RowAct::Delete && outlives_the_row(link, checked).await? => RowAct::Delete,
        None => expire(checked),
    })
}

/// A view, and a row with more columns than those of the lock, carry more than the lock.
fn delete(checked: &CheckedTable) -> RowAct {
    let shown = &checked.found.shown;
    if !checked.found.is_table {
        return refused(
            format!("{shown} is a view: deleting its row would delete rows of other tables"),
            OTHER_RELEASE,
        );
    }
    let unmapped = checked.unmapped();
    if unmapped.is_empty() {
        return RowAct::Delete;
    }
    let column_names = unmapped
        .iter()
        .take(COLUMNS_NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let ellipsis = if unmapped.len() > COLUMNS_NAMED {
        ", …"
    } else {
        ""
    };
    refused(
        format!(
            "a row of {shown} carries more than the lock ({column_names}{ellipsis}): deleting it would delete that too"
        ),
        OTHER_RELEASE,
    )
}

fn expire(checked: &CheckedTable) -> RowAct {
    match checked.column(Role::ExpiresAt) {
        Some(_) => RowAct::Expire,
        None => refused(
            "this table has no expiry to set, and deleting the row could lose its token or other data",
            "Set `release = \"clear\"` for this table, or `release = \"delete\"` if its tokens come from somewhere else.",
        ),
    }
}

/// What identifies a holder must be removable.
fn clear(checked: &CheckedTable) -> RowAct {
    let identity = [Role::Owner, Role::LeaseId]
        .into_iter()
        .filter_map(|role| checked.column(role));
    let fixed = identity.into_iter().find(|column| !column.may_be_null);
    match (fixed, cleared(checked).is_empty(), checked.column(Role::Locked)) {
        (_, true, _) => refused("no column of this table can be cleared", OTHER_RELEASE),
        (Some(column), _, None) => refused(
            format!(
                "column {} of {} may not be NULL, so it cannot be cleared",
                column.name, checked.found.shown
            ),
            "Set `release = \"expire\"` or `release = \"delete\"` for this table.",
        ),
        (None, ..) | (_, _, Some(_)) => RowAct::Clear,
    }
}

/// Columns that a clear sets, with their new values.
fn cleared(checked: &CheckedTable) -> Vec<(&Column, &'static str)> {
    let mut set: Vec<(&Column, &'static str)> = Vec::new();
    set.extend(
        checked
            .column(Role::Locked)
            .and_then(|flag| Some((flag, flag.unset_flag_value()?))),
    );
    let roles = [
        Role::Owner,
        Role::LeaseId,
        Role::ExpiresAt,
        Role::CreatedAt,
        Role::Heartbeat,
    ];
    for column in roles.into_iter().filter_map(|role| checked.column(role)) {
        if column.may_be_null && set.iter().all(|(other, _)| other.name != column.name) {
            set.push((column, "NULL"));
        }
    }
    set
}

/// Whether deleting the row loses no counter: there is no token, or a sequence issues it.
async fn outlives_the_row(link: &mut Link<'_>, checked: &CheckedTable) -> Result<bool, StatementError> {
    let Some(token) = checked.column(Role::FencingToken) else {
        return Ok(true);
    };
    let query = sqlx::query(DRAWN).bind(checked.found.oid).bind(&token.name);
    let rows = link.rows(query).await?;
    Ok(rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)))
}

impl RowAct {
    /// The statement for resource `$1` and generation `$2`; returns one row per changed row.
    /// `Err`: why the row cannot be changed, and the remedy.
    pub(super) fn statement(&self, checked: &CheckedTable) -> Result<String, (&str, &str)> {
        let (table, guard) = (checked.quoted_table(), checked.guard());
        match (self, checked.column(Role::ExpiresAt)) {
            (Self::Delete, _) => Ok(format!("DELETE FROM {table} WHERE {guard} RETURNING 1")),
            (Self::Expire, Some(expiry)) => {
                let (name, now) = (expiry.quoted(), expiry.now(checked.unit()));
                Ok(format!(
                    "UPDATE {table} SET {name} = {now} WHERE {guard} AND ({name} IS NULL OR {name} > {now}) RETURNING 1"
                ))
            }
            (Self::Clear, _) => {
                let set = cleared(checked).into_iter();
                let set = set.map(|(column, value)| format!("{} = {value}", column.quoted()));
                let set = set.collect::<Vec<_>>().join(", ");
                Ok(format!("UPDATE {table} SET {set} WHERE {guard} RETURNING 1"))
            }
            (Self::Refused { why, remedy }, _) => Err((why, remedy)),
            (Self::Expire, None) => Err(("this table has no expiry to set", OTHER_RELEASE)),
        }
    }

    /// The privilege that the statement needs, for GRANT.
    pub(super) fn required_privilege(&self, checked: &CheckedTable) -> String {
        let update = |columns: Vec<&Column>| {
            let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
            format!("SELECT, UPDATE ({})", names.join(", "))
        };
        match self {
            Self::Delete | Self::Refused { .. } => "SELECT, DELETE".to_owned(),
            Self::Expire => update(checked.column(Role::ExpiresAt).into_iter().collect()),
            Self::Clear => update(cleared(checked).into_iter().map(|(column, _)| column).collect()),
        }
    }

    /// What the review says of the row itself.
    pub(super) fn warning(&self, checked: &CheckedTable) -> Option<String> {
        match self {
            Self::Delete => {
                let columns: Vec<&str> = checked.found.columns.iter().map(|column| column.name.as_str()).collect();
                Some(format!(
                    "The row of {} is deleted, with all of its columns: {}.",
                    checked.found.shown,
                    columns.join(", ")
                ))
            }
            Self::Expire if checked.column(Role::FencingToken).is_some() => Some(
                "The row stays, expired, because it stores the token: a client that renews without comparing the expiry \
                 could reacquire it."
                    .to_owned(),
            ),
            Self::Expire if checked.table.preset.release == PresetRelease::ByTable => Some(
                "The row stays, expired: a client that renews without comparing the expiry could reacquire it.".to_owned(),
            ),
            Self::Clear => {
                let set = cleared(checked).into_iter();
                let set = set.map(|(column, value)| format!("{} to {value}", column.name));
                Some(format!(
                    "The row stays: {} is set. Its owner continues until it reads the row again.",
                    set.collect::<Vec<_>>().join(", ")
                ))
            }
            Self::Expire | Self::Refused { .. } => None,
        }
    }
}

//! How a row of a lease table is force-released: as its clients expect, and without lowering a
//! token.

use sqlx::Row;

use super::connection::Link;
use super::error::StatementError;
use super::ident::quoted;
use super::plan::Plan;
use super::table::Role;
use config::postgres::{LeaseTablePreset, LeaseTableRelease};

pub(super) const REMEDY: &str =
    "Set `release = \"delete\"` for this table if its tokens come from somewhere else.";

const DRAWN: &str = "
SELECT a.attidentity <> '' OR EXISTS (
    SELECT FROM pg_attrdef d
    JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass
    JOIN pg_class s ON s.oid = p.refobjid AND s.relkind = 'S'
    WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowAct {
    Delete,
    /// The row stays, expired.
    Expire,
    /// Liquibase: the row stays, its flag is cleared.
    Free,
    /// The token is stored only in this row, and there is no expiry to end.
    None,
}

/// The action for a table: from its preset, its configuration, and the source of its tokens.
pub(super) async fn read(link: &mut Link<'_>, plan: &Plan) -> Result<RowAct, StatementError> {
    let expires = plan.column(Role::ExpiresAt).is_some();
    Ok(match (plan.table.preset, plan.table.release) {
        (LeaseTablePreset::Liquibase, _) => RowAct::Free,
        (LeaseTablePreset::Shedlock, _) => RowAct::Expire,
        (LeaseTablePreset::Common, Some(LeaseTableRelease::Delete)) => RowAct::Delete,
        (LeaseTablePreset::Common, Some(LeaseTableRelease::Expire)) if expires => RowAct::Expire,
        (LeaseTablePreset::Common, Some(LeaseTableRelease::Expire)) => RowAct::None,
        (LeaseTablePreset::Common, None) if outlives_the_row(link, plan).await? => RowAct::Delete,
        (LeaseTablePreset::Common, None) if expires => RowAct::Expire,
        (LeaseTablePreset::Common, None) => RowAct::None,
    })
}

/// Whether deleting the row loses no counter: there is no token, or a sequence issues it.
async fn outlives_the_row(link: &mut Link<'_>, plan: &Plan) -> Result<bool, StatementError> {
    let Some(token) = plan.column(Role::FencingToken) else {
        return Ok(true);
    };
    let query = sqlx::query(DRAWN).bind(plan.found.oid).bind(&token.name);
    let rows = link.rows(query).await?;
    Ok(rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)))
}

impl RowAct {
    /// The statement for resource `$1` and generation `$2`; returns one row per changed row.
    pub(super) fn statement(self, plan: &Plan) -> Result<String, &'static str> {
        let (table, guard) = (plan.quoted_table(), plan.guard());
        let expiry = plan.column(Role::ExpiresAt);
        match (self, expiry) {
            (Self::Delete, _) => Ok(format!("DELETE FROM {table} WHERE {guard} RETURNING 1")),
            (Self::Expire, Some(expiry)) => {
                let name = quoted(&expiry.name);
                let now = if expiry.type_base == "timestamptz" {
                    "clock_timestamp()"
                } else {
                    "clock_timestamp() AT TIME ZONE 'UTC'"
                };
                Ok(format!(
                    "UPDATE {table} SET {name} = {now} WHERE {guard} AND ({name} IS NULL OR {name} > {now}) RETURNING 1"
                ))
            }
            (Self::Free, _) => {
                let down = plan.column(Role::Locked);
                let empty = [Role::Owner, Role::CreatedAt].map(|role| plan.column(role));
                let mut set: Vec<String> = down
                    .iter()
                    .map(|column| format!("{} = false", quoted(&column.name)))
                    .collect();
                let empty = empty.iter().flatten();
                set.extend(empty.map(|column| format!("{} = NULL", quoted(&column.name))));
                let set = set.join(", ");
                Ok(format!("UPDATE {table} SET {set} WHERE {guard} RETURNING 1"))
            }
            (Self::Expire, None) | (Self::None, _) => Err(
                "only this row stores the token: deleting it would restart the tokens, and it has no expiry to set",
            ),
        }
    }

    /// The privilege that the statement needs, for GRANT.
    pub(super) fn right(self, plan: &Plan) -> String {
        let columns = |roles: &[Role]| {
            let columns = roles.iter().filter_map(|role| plan.column(*role));
            let names: Vec<String> = columns.map(|column| quoted(&column.name)).collect();
            format!("SELECT, UPDATE ({})", names.join(", "))
        };
        match self {
            Self::Delete | Self::None => "SELECT, DELETE".to_owned(),
            Self::Expire => columns(&[Role::ExpiresAt]),
            Self::Free => columns(&[Role::Locked, Role::Owner, Role::CreatedAt]),
        }
    }
}

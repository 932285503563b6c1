//! Compares configured tables with the database: existence, read permission, column types.
//! Reads only the catalog, which user locks do not block.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::checked_table::CheckedTable;
use super::column::Column;
use super::connection::Link;
use super::error::StatementError;
use super::ident;
use super::table::LeaseTable;

const COLUMNS: &str = "
SELECT wanted.at::int4 AS at, n.nspname::text AS schema, c.relname::text AS name, c.oid AS oid,
       c.reltuples::float8 AS about,
       format('%I.%I', n.nspname, c.relname) AS shown, quote_ident(n.nspname) AS schema_shown,
       quote_ident(current_user) AS account,
       has_schema_privilege(n.oid, 'USAGE') AS may_enter,
       a.attname::text AS column, a.atttypid::regtype::text AS type,
       coalesce(base.typname, t.typname)::text AS base, t.typcategory::text AS category,
       has_column_privilege(c.oid, a.attnum, 'SELECT') AS may_read, c.relkind IN ('r', 'p') AS is_table,
       NOT a.attnotnull AND a.attgenerated = '' AND a.attidentity = '' AS may_be_null,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1
               AND i.indkey[0] = a.attnum AND i.indpred IS NULL) AS is_unique
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted(schema, name, at)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type base ON base.oid = t.typbasetype
ORDER BY wanted.at, a.attnum";

const NEIGHBOURS: &str = "
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname !~ '^pg_toast'
LIMIT 5000";

/// A table of the catalog.
#[derive(Debug, Clone)]
pub(super) struct CatalogTable {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) oid: sqlx::postgres::types::Oid,
    /// Row count by the server's own estimate, if it has one.
    pub(super) row_estimate: Option<u64>,
    /// Quoted if SQL requires it, for remedies.
    pub(super) shown: String,
    pub(super) schema_shown: String,
    pub(super) account: String,
    pub(super) may_enter: bool,
    /// Not a view.
    pub(super) is_table: bool,
    pub(super) columns: Vec<Column>,
}

/// Each table checked, or the error with its remedy.
pub(super) async fn check(
    link: &mut Link<'_>,
    tables: &[LeaseTable],
) -> Result<Vec<Result<CheckedTable, String>>, StatementError> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let found = find(link, tables).await?;
    let mut checked_tables = Vec::with_capacity(tables.len());
    for (table, found) in tables.iter().zip(found) {
        checked_tables.push(match found {
            Some(found) => CheckedTable::try_new(table, found),
            None => Err(missing_table(link, table).await?),
        });
    }
    Ok(checked_tables)
}

async fn find(
    link: &mut Link<'_>,
    tables: &[LeaseTable],
) -> Result<Vec<Option<CatalogTable>>, StatementError> {
    let mut schemas = Vec::new();
    let mut names = Vec::new();
    let mut owners = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        for schema in table.schema.spellings() {
            for name in table.name.spellings() {
                schemas.push(schema.clone());
                names.push(name);
                owners.push(index);
            }
        }
    }
    let rows = link.rows(sqlx::query(COLUMNS).bind(schemas).bind(names)).await?;
    let mut found: Vec<Option<CatalogTable>> = vec![None; tables.len()];
    // Spellings are sorted best first, so the first table found for an entry is the intended
    // one.
    for row in &rows {
        let Ok(at) = row.try_get::<i32, _>("at") else {
            continue;
        };
        let Some(&owner) = owners.get(usize::try_from(at - 1).unwrap_or(usize::MAX)) else {
            continue;
        };
        let Ok((table, column)) = entry(row) else { continue };
        let slot = found[owner].get_or_insert(table.clone());
        if slot.oid == table.oid {
            slot.columns.push(column);
        }
    }
    Ok(found)
}

fn entry(row: &PgRow) -> Result<(CatalogTable, Column), sqlx::Error> {
    let row_estimate: f64 = row.try_get("about")?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, and not negative"
    )]
    let row_estimate = (row_estimate >= 0.0).then_some(row_estimate as u64);
    let table = CatalogTable {
        schema: row.try_get("schema")?,
        name: row.try_get("name")?,
        oid: row.try_get("oid")?,
        row_estimate,
        shown: row.try_get("shown")?,
        schema_shown: row.try_get("schema_shown")?,
        account: row.try_get("account")?,
        may_enter: row.try_get("may_enter")?,
        is_table: row.try_get("is_table")?,
        columns: Vec::new(),
    };
    let column = Column {
        name: row.try_get("column")?,
        type_shown: row.try_get("type")?,
        type_base: row.try_get("base")?,
        category: row.try_get("category")?,
        may_read: row.try_get("may_read")?,
        is_unique: row.try_get("is_unique")?,
        may_be_null: row.try_get("may_be_null")?,
    };
    Ok((table, column))
}

/// Error for a missing table, with the most similar name.
async fn missing_table(link: &mut Link<'_>, table: &LeaseTable) -> Result<String, StatementError> {
    let rows = link.rows(sqlx::query(NEIGHBOURS)).await?;
    let tables: Vec<(String, String)> = rows
        .iter()
        .filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?)))
        .collect();
    let shown: Vec<String> = tables
        .iter()
        .map(|(schema, name)| format!("{schema}.{name}"))
        .collect();
    let other_schema = tables.iter().position(|(_, name)| *name == table.name.text);
    let nearest = match other_schema {
        Some(at) => Some(shown[at].as_str()),
        None => ident::nearest(&table.quoted_name(), shown.iter().map(String::as_str)),
    };
    let missing_table = format!("table {} does not exist in this database", table.quoted_name());
    Ok(match nearest {
        Some(near) => format!("{missing_table}; the nearest is {near}: correct `table` in the configuration"),
        None => format!("{missing_table}: correct `table` in the configuration, or the database in `url`"),
    })
}

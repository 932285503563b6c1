//! A configured lease table whose columns were checked against the catalog: the SELECT that lists it, and the error texts
//! if they do not fit.

use super::catalog::CatalogTable;
use super::column::Column;
use super::ident::{self, quoted};
use super::preset::HeldRows;
use super::table::{LeaseTable, Role};
use config::postgres::TimeUnit;
use domain::limits;

/// Resources with several rows that are folded into one lock, and the longest name of such a
/// resource, in bytes: their rows are read at once.
const REPEATED_MAX: usize = 1_000;
const REPEATED_NAME_BYTES_MAX: usize = 1_024;
/// Characters read of a token: more than any number has.
const TOKEN_CHARS_MAX: usize = 101;

/// A lease table that can be read.
#[derive(Debug, Clone)]
pub(super) struct CheckedTable {
    pub(super) table: LeaseTable,
    pub(super) found: CatalogTable,
    /// Selects the listing's columns, without WHERE.
    select: String,
    /// Condition for rows that are locks; always true if every row is one.
    held: String,
    /// Text of the resource, for comparing with a bound text.
    key: String,
    /// The columns by role.
    columns: Vec<(Role, Column)>,
    /// A time without zone that is not known to be UTC: Liquibase writes its client's local
    /// time.
    pub(super) local_times: bool,
}

impl CheckedTable {
    /// From a configured table and its catalog entry, if they fit.
    pub(super) fn try_new(table: &LeaseTable, found: CatalogTable) -> Result<Self, String> {
        if !found.may_enter {
            return Err(format!(
                "this account may not use schema {0}: GRANT USAGE ON SCHEMA {0} TO {1};",
                found.schema_shown, found.account
            ));
        }
        let mut columns = Vec::new();
        for (role, name) in &table.columns {
            let column = name
                .find(&found.columns, |column| column.name.as_str())
                .ok_or_else(|| no_column(*role, &name.text, &found))?;
            column
                .check_role(*role)
                .map_err(|required| wrong_type(*role, column, required, &found))?;
            if column.needs_unit(*role) && table.unit.is_none() {
                return Err(no_unit(*role, column, &found));
            }
            columns.push((*role, column.clone()));
        }
        if columns.iter().any(|(_, column)| !column.may_read) {
            return Err(format!(
                "this account may not read {0}: GRANT SELECT ON {0} TO {1};",
                found.shown, found.account
            ));
        }
        let held = held(table, &found, &columns)?;
        Ok(Self::build(table, found, columns, held))
    }

    fn build(table: &LeaseTable, found: CatalogTable, columns: Vec<(Role, Column)>, held: String) -> Self {
        let column_of = |role: Role| column_with_role(&columns, role);
        let unit = table.unit;
        let text = |role: Role, chars_max: usize| {
            column_of(role).map_or_else(
                || "NULL::text".to_owned(),
                |column| format!("left({}, {})", column.text(), chars_max + 1),
            )
        };
        let time = |role: Role| {
            column_of(role).map_or_else(|| "NULL::text".to_owned(), |column| micros(&column.instant(unit)))
        };
        let key = column_of(Role::Resource).map_or_else(String::new, |column| {
            let name = quoted(&column.name);
            // Only an unchanged expression can use an index on the column.
            if column.is_text() {
                name
            } else {
                format!("{name}::text")
            }
        });
        // A name is never truncated: it would be another's. The last column reports too long
        // names.
        let name = column_of(Role::Resource).map_or_else(String::new, |column| as_text(&column.name));
        let too_long = format!("octet_length({name}) > {}", limits::RESOURCE_BYTES_MAX);
        let select = format!(
            "SELECT CASE WHEN {too_long} THEN NULL ELSE {name} END, {}, {}, {}, {}, {}, {}, {}, {too_long} FROM {}.{}",
            text(Role::Owner, limits::OWNER_CHARS_MAX),
            text(Role::LeaseId, limits::OWNER_CHARS_MAX),
            text(Role::FencingToken, TOKEN_CHARS_MAX - 1),
            time(Role::ExpiresAt),
            time(Role::CreatedAt),
            time(table.sign_of_life()),
            // Of the transaction: a cursor reads the rows as they were when it was opened.
            micros("now()"),
            quoted(&found.schema),
            quoted(&found.name),
        );
        let local_times = table.preset.has_local_times
            && column_of(Role::CreatedAt).is_some_and(|column| column.type_base == "timestamp");
        Self {
            table: table.clone(),
            found,
            select,
            held,
            key,
            columns,
            local_times,
        }
    }

    pub(super) fn column(&self, role: Role) -> Option<&Column> {
        column_with_role(&self.columns, role)
    }

    pub(super) fn unit(&self) -> Option<TimeUnit> {
        self.table.unit
    }

    /// Columns that no role has: the row carries more than the lock.
    pub(super) fn unmapped(&self) -> Vec<&str> {
        let names = self.found.columns.iter().map(|column| column.name.as_str());
        names
            .filter(|name| self.columns.iter().all(|(_, column)| column.name != *name))
            .collect()
    }

    pub(super) fn quoted_table(&self) -> String {
        format!("{}.{}", quoted(&self.found.schema), quoted(&self.found.name))
    }

    /// Whether a row is the lock of the resource `$1`, held as generation `$2`: the same text
    /// as in `rows`.
    pub(super) fn guard(&self) -> String {
        let text = |role: Role| {
            self.column(role)
                .map_or_else(|| "NULL::text".to_owned(), Column::text)
        };
        let is_untruncated =
            |role: Role| format!("char_length({}) <= {}", text(role), limits::OWNER_CHARS_MAX);
        let created = self.column(Role::CreatedAt).map_or_else(
            || "NULL::text".to_owned(),
            |column| micros(&column.instant(self.table.unit)),
        );
        format!(
            "{} AND {} = $1 AND $2 = CASE WHEN {} THEN 'lease:' || {} \
             WHEN {} AND {created} NOT IN ('far', 'past') THEN 'owner:' || {} || '@' || {created} \
             WHEN {} THEN 'owner:' || {} ELSE '' END || coalesce('#' || left({}, {TOKEN_CHARS_MAX}), '')",
            self.held,
            self.key,
            is_untruncated(Role::LeaseId),
            text(Role::LeaseId),
            is_untruncated(Role::Owner),
            text(Role::Owner),
            is_untruncated(Role::Owner),
            text(Role::Owner),
            text(Role::FencingToken),
        )
    }

    /// Every lock of the table.
    pub(super) fn list(&self) -> String {
        format!("{} WHERE {}", self.select, self.held)
    }

    /// The locks named in `$1`, a text array.
    pub(super) fn select_named(&self) -> String {
        format!("{} WHERE {} AND {} = ANY($1)", self.select, self.held, self.key)
    }

    /// Resources with more than one row; `None` if a unique index forbids them.
    pub(super) fn repeated(&self) -> Option<String> {
        let is_unique = self.column(Role::Resource).is_some_and(|column| column.is_unique);
        (!is_unique).then(|| {
            format!(
                "SELECT {key} FROM {} WHERE {} AND octet_length({key}) <= {} GROUP BY {key} HAVING count(*) > 1 LIMIT {REPEATED_MAX}",
                self.quoted_table(),
                self.held,
                REPEATED_NAME_BYTES_MAX,
                key = self.key,
            )
        })
    }

    /// The record of `$1`, column by column in the table's order, each as text of at most
    /// `bytes_max`, or as its size.
    pub(super) fn record(&self, bytes_max: usize) -> String {
        let readable = self.readable().map(|name| {
            let text = as_text(name);
            format!(
                "CASE WHEN octet_length({text}) > {bytes_max} \
                 THEN 'not read: ' || octet_length({text}) || ' bytes' ELSE {text} END"
            )
        });
        let columns: Vec<String> = readable.collect();
        // Of several rows the newest, as in `repeated`.
        let newest = [Role::FencingToken, Role::CreatedAt]
            .into_iter()
            .filter_map(|role| self.column(role))
            .map(|column| format!("{} DESC NULLS LAST", quoted(&column.name)));
        let newest = newest.collect::<Vec<_>>().join(", ");
        let order = if newest.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {newest}")
        };
        format!(
            "SELECT {} FROM {}.{} WHERE {} AND {} = $1{order} LIMIT 1",
            columns.join(", "),
            quoted(&self.found.schema),
            quoted(&self.found.name),
            self.held,
            self.key,
        )
    }

    pub(super) fn readable(&self) -> impl Iterator<Item = &str> {
        self.found
            .columns
            .iter()
            .filter(|column| column.may_read)
            .map(|column| column.name.as_str())
    }
}

fn column_with_role(columns: &[(Role, Column)], role: Role) -> Option<&Column> {
    let mut columns = columns.iter();
    columns
        .find(|(column_role, _)| *column_role == role)
        .map(|(_, column)| column)
}

fn as_text(column: &str) -> String {
    format!("{}::text", quoted(column))
}

/// Condition of rows that are locks.
fn held(table: &LeaseTable, found: &CatalogTable, columns: &[(Role, Column)]) -> Result<String, String> {
    let column_of = |role: Role| column_with_role(columns, role);
    let mut conditions = Vec::new();
    match &table.held_when {
        Some(condition) => conditions.push(format!("({condition}) IS TRUE")),
        None => conditions.extend(held_by_preset(table, found, columns)?),
    }
    conditions.extend(column_of(Role::Locked).map(Column::is_raised));
    Ok(if conditions.is_empty() {
        "true".to_owned()
    } else {
        conditions.join(" AND ")
    })
}

fn held_by_preset(
    table: &LeaseTable,
    found: &CatalogTable,
    columns: &[(Role, Column)],
) -> Result<Option<String>, String> {
    let column_of = |role: Role| column_with_role(columns, role);
    Ok(match table.preset.held {
        HeldRows::WithHolder if column_of(Role::Locked).is_some() => None,
        HeldRows::WithHolder => column_of(Role::Owner).map(|owner| {
            let others = [Role::LeaseId, Role::ExpiresAt].into_iter().filter_map(column_of);
            let others = others.map(|column| format!(" OR {} IS NOT NULL", column.quoted()));
            format!("({} <> ''{})", owner.text(), others.collect::<String>())
        }),
        HeldRows::Unexpired => column_of(Role::ExpiresAt)
            .map(|until| format!("{} > clock_timestamp()", until.instant(table.unit))),
        HeldRows::NotNull(role) => column_of(role).map(|column| format!("{} IS NOT NULL", column.quoted())),
        HeldRows::InState { column, state } => {
            if found.columns.iter().all(|other| other.name != column) {
                return Err(format!(
                    "table {} has no column {column}, by which its rows are held: set `held_when` to the condition of \
                     rows that are locks",
                    found.shown
                ));
            }
            Some(format!("{}::text = '{state}'", quoted(column)))
        }
    })
}

/// Microseconds since 1970 as text (by `date_part`, which is twice as fast as `extract` and
/// exact enough); `far` and `past` outside the years 1 to 9999, including infinity.
fn micros(moment: &str) -> String {
    format!(
        "CASE WHEN {moment} >= timestamptz '9999-12-31 00:00:00+00' THEN 'far' \
              WHEN {moment} < timestamptz '0001-01-01 00:00:00+00' THEN 'past' \
              ELSE (date_part('epoch', {moment}) * 1000000)::int8::text END"
    )
}

fn no_column(role: Role, name: &str, found: &CatalogTable) -> String {
    let missing_column = format!(
        "table {} has no column {name} for `{}`",
        found.shown,
        role.as_str()
    );
    match ident::nearest(name, found.columns.iter().map(|column| column.name.as_str())) {
        Some(near) => format!(
            "{missing_column}; the nearest is {near}: set columns = {{ {} = {near:?} }}, or \"\" without one",
            role.as_str()
        ),
        None => format!(
            "{missing_column}: set columns = {{ {} = \"…\" }}, or \"\" without one",
            role.as_str()
        ),
    }
}

fn no_unit(role: Role, column: &Column, found: &CatalogTable) -> String {
    format!(
        "column {} of table {} is {}, a time as a number for `{}`: set `expires_unit` to \"seconds\" or \"milliseconds\"",
        column.name,
        found.shown,
        column.type_shown,
        role.as_str()
    )
}

fn wrong_type(role: Role, column: &Column, required: &str, found: &CatalogTable) -> String {
    format!(
        "column {} of table {} is {}, but `{}` needs {required}: map it to another column, or to \"\" without one",
        column.name,
        found.shown,
        column.type_shown,
        role.as_str()
    )
}

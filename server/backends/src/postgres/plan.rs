//! The SELECT that lists a lease table, once its columns are validated; and the error texts if
//! they are not.

use super::catalog::CatalogTable;
use super::ident::{self, quoted};
use super::table::{LeaseTable, Role};
use config::postgres::LeaseTablePreset;
use domain::limits;

/// Resources with several rows that are folded into one lock, and the longest name of such a
/// resource, in bytes: their rows are read at once.
const REPEATED_MAX: usize = 1_000;
const REPEATED_NAME_BYTES_MAX: usize = 1_024;
/// Characters read of a token: more than any number has.
const TOKEN_CHARS_MAX: usize = 101;

/// A column of a found table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) type_shown: String,
    /// The type's own name, or that of a domain's base type: `timestamptz`, `int8`, …
    pub(super) type_base: String,
    /// One letter, as in `pg_type.typcategory`.
    pub(super) category: String,
    pub(super) may_read: bool,
    /// A unique index covers this column alone.
    pub(super) is_unique: bool,
}

impl Column {
    fn is_text(&self) -> bool {
        matches!(self.type_base.as_str(), "text" | "varchar")
    }

    /// A type that can identify a lock or owner: a text, a number or an address.
    fn is_name(&self) -> bool {
        matches!(self.category.as_str(), "S" | "N" | "E" | "I") || self.type_base == "uuid"
    }

    fn is_bytes(&self) -> bool {
        self.type_base == "bytea"
    }

    /// As text; bytes in hexadecimal.
    fn text(&self) -> String {
        if self.is_bytes() {
            format!("('0x' || encode({}, 'hex'))", quoted(&self.name))
        } else {
            as_text(&self.name)
        }
    }

    fn fits(&self, role: Role) -> Result<(), &'static str> {
        let (fits, wanted) = match role {
            Role::Resource => (self.is_name(), "text, a number or a uuid"),
            Role::Owner | Role::LeaseId => (
                self.is_name() || self.is_bytes(),
                "text, a number, a uuid or bytes",
            ),
            Role::FencingToken => (
                matches!(self.category.as_str(), "S" | "N"),
                "an integer, numeric or text",
            ),
            Role::ExpiresAt | Role::CreatedAt | Role::UpdatedAt | Role::Heartbeat => (
                matches!(self.type_base.as_str(), "timestamptz" | "timestamp"),
                "a timestamp",
            ),
            Role::Locked => (self.type_base == "bool", "a boolean"),
        };
        if fits { Ok(()) } else { Err(wanted) }
    }
}

/// How to read one table.
#[derive(Debug, Clone)]
pub(super) struct Plan {
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

impl Plan {
    /// Plan for a configured table and its catalog entry, if they fit.
    pub(super) fn fit(table: &LeaseTable, found: CatalogTable) -> Result<Self, String> {
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
                .fits(*role)
                .map_err(|wanted| wrong_type(*role, column, wanted, &found))?;
            columns.push((*role, column.clone()));
        }
        if columns.iter().any(|(_, column)| !column.may_read) {
            return Err(format!(
                "this account may not read {0}: GRANT SELECT ON {0} TO {1};",
                found.shown, found.account
            ));
        }
        Ok(Self::build(table, found, columns))
    }

    fn build(table: &LeaseTable, found: CatalogTable, columns: Vec<(Role, Column)>) -> Self {
        let of = |role: Role| played(&columns, role);
        let text = |role: Role, chars_max: usize| {
            of(role).map_or_else(
                || "NULL::text".to_owned(),
                |column| format!("left({}, {})", column.text(), chars_max + 1),
            )
        };
        let time =
            |role: Role| of(role).map_or_else(|| "NULL::text".to_owned(), |column| micros(&instant(column)));
        let key = of(Role::Resource).map_or_else(String::new, |column| {
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
        let name = of(Role::Resource).map_or_else(String::new, |column| as_text(&column.name));
        let too_long = format!("octet_length({name}) > {}", limits::RESOURCE_BYTES_MAX);
        let select = format!(
            "SELECT CASE WHEN {too_long} THEN NULL ELSE {name} END, {}, {}, {}, {}, {}, {}, {}, {too_long} FROM {}.{}",
            text(Role::Owner, limits::OWNER_CHARS_MAX),
            text(Role::LeaseId, limits::OWNER_CHARS_MAX),
            text(Role::FencingToken, TOKEN_CHARS_MAX - 1),
            time(Role::ExpiresAt),
            time(Role::CreatedAt),
            time(table.sign_of_life()),
            micros("clock_timestamp()"),
            quoted(&found.schema),
            quoted(&found.name),
        );
        let held = match (table.preset, of(Role::ExpiresAt), of(Role::Locked)) {
            (LeaseTablePreset::Shedlock, Some(until), _) => format!("{} > clock_timestamp()", instant(until)),
            (_, _, Some(locked)) => quoted(&locked.name),
            _ => "true".to_owned(),
        };
        let local_times = table.preset == LeaseTablePreset::Liquibase
            && of(Role::CreatedAt).is_some_and(|column| column.type_base == "timestamp");
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
        played(&self.columns, role)
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
        let whole = |role: Role| format!("char_length({}) <= {}", text(role), limits::OWNER_CHARS_MAX);
        let created = self
            .column(Role::CreatedAt)
            .map_or_else(|| "NULL::text".to_owned(), |column| micros(&instant(column)));
        format!(
            "{} AND {} = $1 AND $2 = CASE WHEN {} THEN 'lease:' || {} \
             WHEN {} AND {created} NOT IN ('far', 'past') THEN 'owner:' || {} || '@' || {created} \
             WHEN {} THEN 'owner:' || {} ELSE '' END || coalesce('#' || left({}, {TOKEN_CHARS_MAX}), '')",
            self.held,
            self.key,
            whole(Role::LeaseId),
            text(Role::LeaseId),
            whole(Role::Owner),
            text(Role::Owner),
            whole(Role::Owner),
            text(Role::Owner),
            text(Role::FencingToken),
        )
    }

    /// Every lock of the table.
    pub(super) fn list(&self) -> String {
        format!("{} WHERE {}", self.select, self.held)
    }

    /// The locks named in `$1`, a text array.
    pub(super) fn named(&self) -> String {
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

fn played(columns: &[(Role, Column)], role: Role) -> Option<&Column> {
    let mut columns = columns.iter();
    columns
        .find(|(played, _)| *played == role)
        .map(|(_, column)| column)
}

fn as_text(column: &str) -> String {
    format!("{}::text", quoted(column))
}

/// A column as a moment. Without a zone it is UTC, as ShedLock writes it.
fn instant(column: &Column) -> String {
    let name = quoted(&column.name);
    if column.type_base == "timestamptz" {
        name
    } else {
        format!("({name} AT TIME ZONE 'UTC')")
    }
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

fn wrong_type(role: Role, column: &Column, wanted: &str, found: &CatalogTable) -> String {
    format!(
        "column {} of table {} is {}, but `{}` needs {wanted}: map it to another column, or to \"\" without one",
        column.name,
        found.shown,
        column.type_shown,
        role.as_str()
    )
}

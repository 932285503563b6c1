//! Reads event rows in id order for previews: borrowed values, only the columns that rules use, only rows in scope,
//! a range of ids at a time.
//!
//! Blocks its thread: SQLite is read on a connection of its own, without a message to the driver's thread for each
//! row; Postgres through the runtime.

use domain::alerts::{PastEvent, Rule};
use domain::history::Run;
use domain::lock_detail::EventKind;
use domain::names::BackendName;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};
use sqlx::{AssertSqlSafe, PgPool, Row as _};
use tokio::runtime::Handle;

use runtime::db::Db;

/// Ids per statement; a dropped reader stops after it.
pub const IDS_PER_READ: i64 = 16_384;
/// Bytes of the file that SQLite may map; without mapping each page is copied.
const MAPPED_BYTES: i64 = 1 << 30;

const COLUMNS: &str = "at, kind, backend, source, resource, owner_id, fencing_token, ttl_ms, waiters, run_count, run_until, ttl_seen_ms, stale_after_ms, not_before";

/// Backend, source, name and event.
pub type EachEvent<'f> = dyn FnMut((&str, &str), &[u8], &PastEvent<'_>) + 'f;

/// Which rows to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventScope {
    kinds: Vec<EventKind>,
    /// Empty: all.
    backends: Vec<BackendName>,
    /// Prefix of the names.
    prefix: Vec<u8>,
}

impl EventScope {
    /// The scope of all these rules together.
    pub fn from_rules(rules: &[Rule]) -> Self {
        let mut kinds: Vec<EventKind> = Vec::new();
        for kind in rules
            .iter()
            .flat_map(|rule| rule.condition.kind.previewed_events())
        {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        let first = rules.first().map(|rule| &rule.scope);
        let all_equal =
            |is_equal: fn(&Rule, &Rule) -> bool| rules.windows(2).all(|pair| is_equal(&pair[0], &pair[1]));
        let backends = first
            .filter(|_| all_equal(|left, right| left.scope.backends == right.scope.backends))
            .map(|scope| scope.backends.clone());
        let prefix = first
            .filter(|_| all_equal(|left, right| left.scope.prefix == right.scope.prefix))
            .map(|scope| scope.prefix.literal().as_bytes().to_vec());
        Self {
            kinds,
            backends: backends.unwrap_or_default(),
            prefix: prefix.unwrap_or_default(),
        }
    }

    /// The statement for a range of ids, with `?` or `$1` parameters: the range, then the scope.
    fn select(&self, is_numbered: bool) -> (String, Vec<Value>) {
        let mut values = Vec::new();
        let mut bind = |value: Value| {
            values.push(value);
            match is_numbered {
                true => format!("${}", values.len() + 2),
                false => format!("?{}", values.len() + 2),
            }
        };
        let kinds = self
            .kinds
            .iter()
            .map(|kind| bind(Value::Text(kind.as_str().to_owned())));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let mut scope = format!(" AND kind IN ({kinds})");
        if !self.backends.is_empty() {
            let backends = self
                .backends
                .iter()
                .map(|name| bind(Value::Text(name.to_string())));
            let backends = backends.collect::<Vec<_>>().join(", ");
            scope.push_str(&format!(" AND backend IN ({backends})"));
        }
        if !self.prefix.is_empty() {
            scope.push_str(&format!(
                " AND resource >= {}",
                bind(Value::Blob(self.prefix.clone()))
            ));
            if let Some(end) = prefix_end(&self.prefix) {
                scope.push_str(&format!(" AND resource < {}", bind(Value::Blob(end))));
            }
        }
        let (from, to) = if is_numbered { ("$1", "$2") } else { ("?1", "?2") };
        let select =
            format!("SELECT {COLUMNS} FROM lock_events WHERE id > {from} AND id <= {to}{scope} ORDER BY id");
        (select, values)
    }
}

/// The smallest byte string after all strings with this prefix; `None` if every byte is the highest.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

pub struct EventReader {
    store: Store,
    select: String,
    values: Vec<Value>,
}

enum Store {
    Sqlite(Connection),
    Postgres(PgPool, Handle),
}

impl EventReader {
    /// Must be opened and used on a blocking thread.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn open(db: &Db, runtime: &Handle, scope: &EventScope) -> Result<Self, sqlx::Error> {
        let store = match db {
            Db::Sqlite(pool) => {
                let options = pool.connect_options();
                Store::Sqlite(open_file(options.get_filename()).map_err(driver_error)?)
            }
            Db::Postgres(pool) => Store::Postgres(pool.clone(), runtime.clone()),
        };
        let (select, values) = scope.select(matches!(store, Store::Postgres(..)));
        Ok(Self {
            store,
            select,
            values,
        })
    }

    /// Rows with an id after `after` and up to `to`.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn read(&self, (after, to): (i64, i64), each: &mut EachEvent<'_>) -> Result<(), sqlx::Error> {
        match &self.store {
            Store::Sqlite(file) => self.read_file(file, (after, to), each).map_err(driver_error),
            Store::Postgres(pool, runtime) => {
                let rows = runtime.block_on(self.fetch(pool, (after, to)))?;
                for row in &rows {
                    read_row(row, each)?;
                }
                Ok(())
            }
        }
    }

    fn read_file(
        &self,
        file: &Connection,
        (after, to): (i64, i64),
        each: &mut EachEvent<'_>,
    ) -> rusqlite::Result<()> {
        let mut statement = file.prepare_cached(&self.select)?;
        let range = [Value::Integer(after), Value::Integer(to)];
        let mut rows = statement.query(params_from_iter(range.iter().chain(&self.values)))?;
        while let Some(row) = rows.next()? {
            // A newer version may know more kinds.
            let Some(kind) = EventKind::parse(row.get_ref(1)?.as_str()?) else {
                continue;
            };
            let number = |column| {
                row.get_ref(column)?
                    .as_i64_or_null()
                    .map_err(rusqlite::Error::from)
            };
            let text = |column| {
                row.get_ref(column)?
                    .as_str_or_null()
                    .map_err(rusqlite::Error::from)
            };
            let event = PastEvent {
                at: row.get_ref(0)?.as_i64()?,
                kind,
                owner: text(5)?,
                token: text(6)?,
                ttl_ms: number(7)?,
                ttl_seen_ms: number(11)?,
                stale_after_ms: number(12)?,
                not_before: number(13)?,
                waiters: number(8)?.map(clamp_u32),
                run: number(9)?
                    .zip(number(10)?)
                    .map(|(count, until)| run(count, until)),
            };
            let resource = match row.get_ref(4)? {
                ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes,
                _ => continue,
            };
            each(
                (row.get_ref(2)?.as_str()?, row.get_ref(3)?.as_str()?),
                resource,
                &event,
            );
        }
        Ok(())
    }

    async fn fetch(
        &self,
        pool: &PgPool,
        (after, to): (i64, i64),
    ) -> Result<Vec<sqlx::postgres::PgRow>, sqlx::Error> {
        let mut query = sqlx::query(AssertSqlSafe(self.select.as_str()))
            .bind(after)
            .bind(to);
        for value in &self.values {
            query = match value {
                Value::Text(text) => query.bind(text),
                Value::Blob(bytes) => query.bind(bytes),
                Value::Integer(number) => query.bind(number),
                Value::Null | Value::Real(_) => query,
            };
        }
        query.fetch_all(pool).await
    }
}

fn read_row(row: &sqlx::postgres::PgRow, each: &mut EachEvent<'_>) -> Result<(), sqlx::Error> {
    let Some(kind) = EventKind::parse(row.try_get(1)?) else {
        return Ok(());
    };
    let (count, until): (Option<i64>, Option<i64>) = (row.try_get(9)?, row.try_get(10)?);
    let event = PastEvent {
        at: row.try_get(0)?,
        kind,
        owner: row.try_get(5)?,
        token: row.try_get(6)?,
        ttl_ms: row.try_get(7)?,
        ttl_seen_ms: row.try_get(11)?,
        stale_after_ms: row.try_get(12)?,
        not_before: row.try_get(13)?,
        waiters: row.try_get::<Option<i64>, _>(8)?.map(clamp_u32),
        run: count.zip(until).map(|(count, until)| run(count, until)),
    };
    each((row.try_get(2)?, row.try_get(3)?), row.try_get(4)?, &event);
    Ok(())
}

fn open_file(path: &std::path::Path) -> rusqlite::Result<Connection> {
    let file = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    file.pragma_update(None, "mmap_size", MAPPED_BYTES)?;
    Ok(file)
}

fn driver_error(error: rusqlite::Error) -> sqlx::Error {
    sqlx::Error::AnyDriverError(Box::new(error))
}

fn clamp_u32(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

fn run(count: i64, until: i64) -> Run {
    Run {
        count: clamp_u32(count),
        until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_prefix_ends_behind_its_last_name() {
        assert_eq!(prefix_end(b"jobs/"), Some(b"jobs0".to_vec()));
        assert_eq!(prefix_end(&[7, 255, 255]), Some(vec![8]));
        assert_eq!(prefix_end(&[255, 255]), None);
    }
}

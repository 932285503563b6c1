//! Audit queries as SQL: one text for both stores, with bound values.

use domain::audit::{Action, AuditQuery, EntrySubject, Readable};
use domain::lease::NameRange;
use domain::names::BackendName;

use runtime::db::Db;

const COLUMNS: &str = "SELECT seq, created_at, action, phase, outcome, actor_id, actor_name, role, backend, source, resource,
    unlock_id, reason, approver_id, before, after, ip, user_agent, request_id, trace_id, prev_hash, hash FROM audit_entries";

/// A time range with fewer entries than this is read by its time index and then filtered: another index would have
/// to pass all later entries first.
const FEW: i64 = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Int(i64),
}

/// Database-specific expressions: Postgres compares text by locale by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterKind {
    Sqlite,
    Postgres,
}

impl FilterKind {
    pub(super) const fn from_db(db: &Db) -> Self {
        match db {
            Db::Sqlite(_) => Self::Sqlite,
            Db::Postgres(_) => Self::Postgres,
        }
    }

    /// The resource column, compared byte by byte.
    const fn resource(self) -> &'static str {
        match self {
            Self::Sqlite => "resource",
            Self::Postgres => "resource COLLATE \"C\"",
        }
    }
}

/// A statement under construction.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
    kind: FilterKind,
}

impl Statement {
    fn new(kind: FilterKind) -> Self {
        Self {
            sql: COLUMNS.to_owned(),
            values: Vec::new(),
            kind,
        }
    }

    /// A query that returns a row if the time range has few entries; `None` without a time range.
    pub(super) fn few_entries(kind: FilterKind, query: &AuditQuery) -> Option<Self> {
        if query.from.is_none() && query.to.is_none() {
            return None;
        }
        let mut it = Self {
            sql: "SELECT count(*) FROM (SELECT seq FROM audit_entries WHERE 1 = 1".to_owned(),
            values: Vec::new(),
            kind,
        };
        it.push_time(query);
        it.push(" LIMIT ").int(FEW);
        it.push(") AS counted HAVING count(*) < ").int(FEW);
        Some(it)
    }

    /// One page, newest first, plus one entry. Numbers come from an index first, so that only the entries of the
    /// page are read. `is_few`: result of [`few_entries`](Self::few_entries).
    pub(super) fn page(kind: FilterKind, query: &AuditQuery, is_few: bool) -> Self {
        let mut it = Self::new(kind);
        it.push(" WHERE seq IN (");
        match &query.actor {
            None => it.numbers(query, None, is_few),
            // By id and by name separately: each has its index, a combined condition would use none.
            Some(actor) => {
                it.push("SELECT seq FROM (")
                    .numbers(query, Some(("actor_id", actor)), is_few);
                it.push(") AS by_id UNION SELECT seq FROM (");
                it.numbers(query, Some(("actor_name", actor)), is_few);
                it.push(") AS by_name");
            }
        }
        it.push(") ORDER BY seq DESC LIMIT ");
        it.int(one_more(query.limit));
        it
    }

    /// Entries after `seq`, oldest first.
    pub(super) fn after(kind: FilterKind, seq: i64, limit: i64) -> Self {
        let mut it = Self::new(kind);
        it.push(" WHERE seq > ").int(seq);
        it.push(" ORDER BY seq LIMIT ").int(limit);
        it
    }

    /// This entry, or the next readable one after it.
    pub(super) fn from(kind: FilterKind, seq: i64, readable: &Readable) -> Self {
        let mut it = Self::new(kind);
        it.push(" WHERE seq >= ").int(seq);
        it.readable(readable);
        it.push(" ORDER BY seq LIMIT ").int(1);
        it
    }

    fn numbers(&mut self, query: &AuditQuery, actor: Option<(&'static str, &String)>, is_few: bool) {
        if is_few {
            // No effect on the result, but it prevents the planner from choosing another index.
            self.push(
                "SELECT seq FROM (SELECT seq, actor_id, actor_name, backend, action, outcome, unlock_id, resource
                 FROM audit_entries WHERE 1 = 1",
            );
            self.push_time(query);
            self.push(" LIMIT ").int(i64::MAX);
            self.push(") AS of_time WHERE 1 = 1");
        } else {
            self.push("SELECT seq FROM audit_entries WHERE 1 = 1");
            self.push_time(query);
        }
        if let Some((column, actor)) = actor {
            self.push_equal(column, Some(actor.clone()));
        }
        self.push_equal("backend", query.backend.as_ref().map(ToString::to_string));
        self.push_equal(
            "action",
            query.action.map(|action: Action| action.as_str().to_owned()),
        );
        self.push_equal("outcome", query.outcome.clone());
        self.push_equal("unlock_id", query.unlock_id.clone());
        if let Some(prefix) = &query.prefix {
            self.push(" AND ");
            self.within(&NameRange::starting_with(prefix));
        }
        self.readable(&query.readable);
        if let Some(before) = query.before_seq {
            self.push(" AND seq < ").int(before);
        }
        self.push(" ORDER BY seq DESC LIMIT ").int(one_more(query.limit));
    }

    fn push_time(&mut self, query: &AuditQuery) {
        if let Some(from) = query.from {
            self.push(" AND created_at >= ").int(from.timestamp_millis());
        }
        if let Some(to) = query.to {
            self.push(" AND created_at < ").int(to.timestamp_millis());
        }
    }

    fn readable(&mut self, readable: &Readable) {
        let Some(places) = readable.places() else { return };
        self.push(" AND (1 = 0");
        for place in places {
            self.push(" OR (");
            self.in_place(place);
            self.push(")");
        }
        self.push(")");
    }

    fn in_place(&mut self, place: &EntrySubject) {
        self.push("1 = 1");
        self.push_equal("backend", place.backend.as_ref().map(BackendName::to_string));
        if place.is_whole_backend() {
            return;
        }
        self.push(" AND (1 = 0");
        for range in place.names.ranges("") {
            self.push(" OR (");
            self.within(&range);
            self.push(")");
        }
        self.push(")");
    }

    fn within(&mut self, range: &NameRange) {
        self.push_bound((" >= ", " >= "), &range.from);
        if let Some(to) = &range.to {
            self.push(" AND ");
            self.push_bound((" < ", " <= "), to);
        }
    }

    /// `compare`, `compare_start`: how to compare whole names, and their beginnings. The index on Postgres has beginnings
    /// alone: an entry of it has at most 2,704 bytes, and a name may have more.
    fn push_bound(&mut self, (compare, compare_start): (&'static str, &'static str), bound: &str) {
        let resource = self.kind.resource();
        self.push(resource).push(compare).text(bound.to_owned());
        if self.kind == FilterKind::Postgres {
            self.push(" AND left(resource, 256) COLLATE \"C\"")
                .push(compare_start)
                .push("left(")
                .text(bound.to_owned());
            self.push(", 256)");
        }
    }

    fn push_equal(&mut self, column: &'static str, value: Option<String>) {
        if let Some(value) = value {
            self.push(" AND ").push(column).push(" = ").text(value);
        }
    }

    fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    fn text(&mut self, text: String) {
        self.value(Value::Text(text));
    }

    fn int(&mut self, number: i64) {
        self.value(Value::Int(number));
    }

    fn value(&mut self, value: Value) {
        self.values.push(value);
        let place = format!("${}", self.values.len());
        self.sql.push_str(&place);
    }
}

/// One more than the page, to know whether there is another page.
fn one_more(limit: u32) -> i64 {
    i64::from(limit) + 1
}

//! `[[backend.lease_table]]`: a table whose rows are locks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::held_when;
use crate::limits::{CHANNEL_BYTES_MAX, STALE_AFTER};
use crate::reader::Section;
use crate::value_parsers::{self, Rule};

#[derive(Debug, Clone)]
pub struct LeaseTableConfig {
    /// `table`: `schema.table`; without a schema, `public`.
    pub table: String,
    /// `preset`: the shape of a library's table. Default `common`.
    pub preset: LeaseTablePreset,
    /// `columns`: overrides of the preset. An empty string: the table has no such column.
    pub columns: BTreeMap<String, String>,
    /// `held_when`: SQL condition of rows that are locks, in place of the preset's.
    pub held_when: Option<String>,
    /// `expires_unit`: of times that are numbers since 1970.
    pub expires_unit: Option<TimeUnit>,
    /// `notify`: channel of the optional trigger (docs/backends/postgres.md); a notification causes an immediate
    /// scan.
    pub notify: Option<String>,
    /// `release`: how a forced unlock changes a row. Default: the preset's.
    pub release: Option<LeaseTableRelease>,
    /// `stale_after`: a row without expiry counts as not renewing after this time without an update of its
    /// `heartbeat` or else `updated_at` column.
    pub stale_after: Option<Duration>,
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LeaseTableRelease {
        Delete = "delete",
        Expire = "expire",
        /// The owner and the times become NULL, a flag false.
        Clear = "clear",
    }
}

domain::wire_enum! {
    /// Unit of a time that is a number.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TimeUnit {
        Seconds = "seconds",
        Milliseconds = "milliseconds",
    }
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum LeaseTablePreset {
        #[default]
        Common = "common",
        Shedlock = "shedlock",
        Liquibase = "liquibase",
        Laravel = "laravel",
        Symfony = "symfony",
        GraphileWorker = "graphile-worker",
        PgBoss = "pg-boss",
        Procrastinate = "procrastinate",
        Pgqueuer = "pgqueuer",
        Dbos = "dbos",
        Apscheduler = "apscheduler",
        Knex = "knex",
    }
}

impl LeaseTablePreset {
    /// A column that a holder updates while it works, or the library's own time limit.
    const fn has_heartbeat(self) -> bool {
        matches!(self, Self::Common | Self::Pgqueuer | Self::GraphileWorker)
    }
}

/// Keys of `columns`.
pub const COLUMNS: [&str; 9] = [
    "resource",
    "owner",
    "lease_id",
    "fencing_token",
    "expires_at",
    "created_at",
    "updated_at",
    "heartbeat",
    "locked",
];

impl LeaseTableConfig {
    pub(super) fn read(mut section: Section<'_>) -> Option<Self> {
        let table = section.required("table", &table_name());
        let preset = section.or("preset", LeaseTablePreset::default(), &value_parsers::choice());
        let mut columns = section.section("columns", "backend.lease_table.columns");
        let columns_read = columns.strings(&COLUMNS);
        if let Some((_, origin)) = columns_read
            .get("resource")
            .filter(|(column, _)| column.is_empty())
        {
            let remedy = "Name the column that holds the resource.".to_owned();
            columns.error_at(
                "resource",
                origin,
                "is required for a lease table".to_owned(),
                remedy,
            );
        }
        columns.finish();
        let held_when = section.optional("held_when", &held_when::rule());
        let expires_unit = section.optional("expires_unit", &value_parsers::choice());
        let notify = section.optional("notify", &channel());
        let release = section.optional("release", &value_parsers::choice());
        if section.has("release") && preset != LeaseTablePreset::Common {
            let origin = section.place_of("release");
            let message = format!("is fixed for the preset {:?}", preset.as_str());
            let remedy = "Remove it: a forced unlock does what the library itself does.".to_owned();
            section.error_at("release", &origin, message, remedy);
        }
        let stale_after = section.optional("stale_after", &value_parsers::duration(&STALE_AFTER));
        let names_column = |key| columns_read.get(key).map(|(column, _)| !column.is_empty());
        check_heartbeat(
            &section,
            names_column("heartbeat").unwrap_or(false),
            names_column("updated_at").unwrap_or(false)
                || preset.has_heartbeat() && names_column("updated_at").is_none(),
        );
        section.finish();
        let columns = columns_read
            .into_iter()
            .map(|(key, (column, _))| (key, column))
            .collect();
        Some(Self {
            table: table?,
            preset,
            columns,
            held_when,
            expires_unit,
            notify,
            release,
            stale_after,
        })
    }
}

/// `stale_after` and a heartbeat need each other.
fn check_heartbeat(section: &Section<'_>, has_heartbeat: bool, has_updates: bool) {
    if section.has("stale_after") && !has_heartbeat && !has_updates {
        let origin = section.place_of("stale_after");
        let remedy = "Set `columns = { heartbeat = \"…\" }`: the column that a holder sets while it works.";
        let message = "needs a heartbeat column".to_owned();
        section.error_at("stale_after", &origin, message, remedy.to_owned());
    }
    if has_heartbeat && !section.has("stale_after") {
        let remedy = "With `heartbeat`, set stale_after = \"5m\": a row counts as not renewing after that time \
            without a heartbeat.";
        section.report_missing("stale_after", remedy);
    }
}

fn table_name() -> Rule<'static, String> {
    value_parsers::checked("\"schema.table\", or \"table\" for the schema public", |text| {
        let parts = text.split('.').count();
        // A quoted name may contain dots; Postgres validates it.
        if text.contains('"') || (parts <= 2 && text.split('.').all(|part| !part.is_empty())) {
            Ok(())
        } else {
            Err("is not the name of a table".to_owned())
        }
    })
}

fn channel() -> Rule<'static, String> {
    value_parsers::checked(
        "the name of a channel, at most 63 bytes, such as \"leasehold\"",
        |text| match text.len() {
            0 => Err("is empty".to_owned()),
            1..=CHANNEL_BYTES_MAX => Ok(()),
            _ => Err("is too long for Postgres".to_owned()),
        },
    )
}

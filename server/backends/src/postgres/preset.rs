//! What each preset knows of a library's table: its columns, which rows are held, the unit of its
//! times, and how a forced unlock ends a row as the library does.

use std::time::Duration;

use super::table::Role;
use config::postgres::{LeaseTablePreset, LeaseTableRelease, TimeUnit};

/// Rows that are locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldRows {
    /// With an owner or an expiry, or in a table without both.
    WithHolder,
    /// Whose expiry is in the future: an expired row is free.
    Unexpired,
    /// With a value in the column of this role.
    NotNull(Role),
    /// Whose `column` has this text.
    InState {
        column: &'static str,
        state: &'static str,
    },
}

/// How a forced unlock ends a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PresetRelease {
    /// By the columns of the table.
    ByTable,
    By(LeaseTableRelease),
    /// The library keeps more about a row than this adapter may change.
    Refused {
        why: &'static str,
        remedy: &'static str,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Preset {
    /// In reasons: "ShedLock issues no fencing tokens".
    pub(super) title: &'static str,
    pub(super) columns: &'static [(Role, &'static str)],
    pub(super) held: HeldRows,
    pub(super) unit: Option<TimeUnit>,
    pub(super) release: PresetRelease,
    /// What the evicted holder does to its successor, if it is not stopped first.
    pub(super) warning: Option<&'static str>,
    pub(super) stale_after: Option<Duration>,
    /// Times without zone are of the client's own zone, which is not recorded.
    pub(super) has_local_times: bool,
}

const TABLE: Preset = Preset {
    title: "this table",
    columns: &[],
    held: HeldRows::WithHolder,
    unit: None,
    release: PresetRelease::ByTable,
    warning: None,
    stale_after: None,
    has_local_times: false,
};

const COMMON: Preset = Preset {
    columns: &[
        (Role::Resource, "resource"),
        (Role::Owner, "owner_id"),
        (Role::LeaseId, "lease_id"),
        (Role::FencingToken, "fencing_token"),
        (Role::ExpiresAt, "expires_at"),
        (Role::CreatedAt, "created_at"),
        (Role::UpdatedAt, "updated_at"),
    ],
    ..TABLE
};

const SHEDLOCK: Preset = Preset {
    title: "ShedLock",
    columns: &[
        (Role::Resource, "name"),
        (Role::Owner, "locked_by"),
        (Role::ExpiresAt, "lock_until"),
        (Role::CreatedAt, "locked_at"),
    ],
    held: HeldRows::Unexpired,
    release: PresetRelease::By(LeaseTableRelease::Expire),
    ..TABLE
};

const LIQUIBASE: Preset = Preset {
    title: "Liquibase",
    columns: &[
        (Role::Resource, "id"),
        (Role::Owner, "lockedby"),
        (Role::CreatedAt, "lockgranted"),
        (Role::Locked, "locked"),
    ],
    release: PresetRelease::By(LeaseTableRelease::Clear),
    warning: Some(
        "A Liquibase run that is still alive continues, and at its end it releases the lock of the next run. Stop it first.",
    ),
    has_local_times: true,
    ..TABLE
};

/// `cache_locks` of its database cache: the owner is random for each lock object.
const LARAVEL: Preset = Preset {
    title: "Laravel",
    columns: &[
        (Role::Resource, "key"),
        (Role::Owner, "owner"),
        (Role::LeaseId, "owner"),
        (Role::ExpiresAt, "expiration"),
    ],
    unit: Some(TimeUnit::Seconds),
    release: PresetRelease::By(LeaseTableRelease::Delete),
    ..TABLE
};

/// `lock_keys` of its PDO and DBAL stores: the token is random for each key object.
const SYMFONY: Preset = Preset {
    title: "Symfony",
    columns: &[
        (Role::Resource, "key_id"),
        (Role::Owner, "key_token"),
        (Role::LeaseId, "key_token"),
        (Role::ExpiresAt, "key_expiration"),
    ],
    unit: Some(TimeUnit::Seconds),
    release: PresetRelease::By(LeaseTableRelease::Delete),
    ..TABLE
};

/// Jobs that a worker has locked; another one takes over after four hours.
const GRAPHILE_WORKER: Preset = Preset {
    title: "Graphile Worker",
    columns: &[
        (Role::Resource, "id"),
        (Role::Owner, "locked_by"),
        (Role::CreatedAt, "locked_at"),
    ],
    held: HeldRows::NotNull(Role::CreatedAt),
    release: PresetRelease::By(LeaseTableRelease::Clear),
    stale_after: Some(Duration::from_secs(4 * 3_600)),
    ..TABLE
};

const PG_BOSS: Preset = Preset {
    title: "pg-boss",
    columns: &[(Role::Resource, "id"), (Role::CreatedAt, "started_on")],
    held: HeldRows::InState {
        column: "state",
        state: "active",
    },
    release: PresetRelease::Refused {
        why: "the end of a pg-boss job decides its retries and the jobs that depend on it",
        remedy: "Use `boss.cancel(name, id)`, or let the job expire.",
    },
    ..TABLE
};

const PROCRASTINATE: Preset = Preset {
    title: "Procrastinate",
    columns: &[(Role::Resource, "id"), (Role::Owner, "worker_id")],
    held: HeldRows::InState {
        column: "status",
        state: "doing",
    },
    release: PresetRelease::Refused {
        why: "the end of a Procrastinate job decides its retries and the lock that it holds",
        remedy: "Use `retry_job` or `finish_job` of its job manager, as for its stalled jobs.",
    },
    ..TABLE
};

const PGQUEUER: Preset = Preset {
    title: "PgQueuer",
    columns: &[
        (Role::Resource, "id"),
        (Role::Owner, "queue_manager_id"),
        (Role::Heartbeat, "heartbeat"),
    ],
    held: HeldRows::InState {
        column: "status",
        state: "picked",
    },
    release: PresetRelease::Refused {
        why: "a picked job of PgQueuer is picked again by itself when its heartbeat stops",
        remedy: "Stop its worker; or use `mark_job_as_cancelled` of PgQueuer.",
    },
    stale_after: Some(Duration::from_secs(30)),
    ..TABLE
};

const DBOS: Preset = Preset {
    title: "DBOS",
    columns: &[
        (Role::Resource, "workflow_uuid"),
        (Role::Owner, "executor_id"),
        (Role::LeaseId, "owner_xid"),
        (Role::CreatedAt, "started_at_epoch_ms"),
    ],
    held: HeldRows::InState {
        column: "status",
        state: "PENDING",
    },
    unit: Some(TimeUnit::Milliseconds),
    release: PresetRelease::Refused {
        why: "the end of a DBOS workflow is recorded with its steps, by DBOS",
        remedy: "Use `dbos workflow cancel`.",
    },
    ..TABLE
};

/// `jobs` and `schedules` of version 4; version 3 has no locks.
const APSCHEDULER: Preset = Preset {
    title: "APScheduler",
    columns: &[
        (Role::Resource, "id"),
        (Role::Owner, "acquired_by"),
        (Role::ExpiresAt, "acquired_until"),
    ],
    held: HeldRows::NotNull(Role::Owner),
    release: PresetRelease::Refused {
        why: "the row of an APScheduler job does not identify the acquisition",
        remedy: "Stop its scheduler: after `acquired_until` another one runs the job again when it next acquires jobs, or \
                 its clean-up ends the job as abandoned.",
    },
    ..TABLE
};

const KNEX: Preset = Preset {
    title: "Knex",
    columns: &[(Role::Resource, "index"), (Role::Locked, "is_locked")],
    release: PresetRelease::Refused {
        why: "the row of Knex does not identify the acquisition",
        remedy: "Stop the migration, then run `knex migrate:unlock`.",
    },
    ..TABLE
};

pub(super) const fn find(preset: LeaseTablePreset) -> &'static Preset {
    match preset {
        LeaseTablePreset::Common => &COMMON,
        LeaseTablePreset::Shedlock => &SHEDLOCK,
        LeaseTablePreset::Liquibase => &LIQUIBASE,
        LeaseTablePreset::Laravel => &LARAVEL,
        LeaseTablePreset::Symfony => &SYMFONY,
        LeaseTablePreset::GraphileWorker => &GRAPHILE_WORKER,
        LeaseTablePreset::PgBoss => &PG_BOSS,
        LeaseTablePreset::Procrastinate => &PROCRASTINATE,
        LeaseTablePreset::Pgqueuer => &PGQUEUER,
        LeaseTablePreset::Dbos => &DBOS,
        LeaseTablePreset::Apscheduler => &APSCHEDULER,
        LeaseTablePreset::Knex => &KNEX,
    }
}

impl Preset {
    pub(super) fn column(&self, role: Role) -> &'static str {
        let found = self.columns.iter().find(|(column_role, _)| *column_role == role);
        found.map_or("", |(_, name)| name)
    }
}

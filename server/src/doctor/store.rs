//! Checks of the store of leases, users and the audit log: tables, durability, rollback, clock.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;

use super::check_result::{self, Finding};
use super::{disk, ingress};
use config::Config;
use lease::store_inspection::{self, AuditRights, StoreInspection};
use runtime::clock::Clock;
use runtime::db;
use runtime::db::schema::MigrationStatus;

const CHECK: &str = "store";
const MIGRATE: &str = "leasehold migrate # or start the server, which does the same";

pub(super) async fn examine(config: &Config, clock: &Clock) -> Vec<Finding> {
    let now = clock.now().wall;
    let mut findings: Vec<Finding> = ingress::time_of_day(now).into_iter().collect();
    let store = config.store.expose_secret();
    if let Some(path) = store.strip_prefix("sqlite:") {
        let path = Path::new(path.strip_prefix("//").unwrap_or(path));
        findings.extend(check_file(path, config, clock).await);
        return findings;
    }
    findings.extend(examine_postgres(CHECK, CHECK, store, config, clock).await);
    findings
}

/// Leases that were moved out of `store`.
fn check_move(config: &Config, inspected: &StoreInspection) -> Option<Finding> {
    let to = inspected.moved_to.as_ref()?;
    let reason = format!("its leases were moved to {to}, or a move there has begun");
    let serves = config.lease.store.as_ref().map(|stores| stores.addresses());
    Some(match serves {
        Some(serves) if serves.contains(to) => Finding::ok(CHECK, format!("its leases were moved to {to}")),
        Some(serves) => Finding::warning(
            CHECK,
            format!("{reason}; lease.store names {}", serves.join(", ")),
            format!("set lease.store to {to}, where the newest fencing tokens are"),
        ),
        None => Finding::fault(
            CHECK,
            reason,
            format!("set lease.store to {to}; if the move was interrupted: leasehold migrate --to etcd"),
        ),
    })
}

/// `check` names the key, `location` the database.
pub(super) async fn examine_postgres(
    check: &'static str,
    location: &str,
    url: &str,
    config: &Config,
    clock: &Clock,
) -> Vec<Finding> {
    let inspected = match store_inspection::postgres(url).await {
        Ok(inspected) => inspected,
        Err(error) => {
            return vec![Finding::fault(
                check,
                error_chain(&error),
                format!("check that Postgres runs, and the account, password and database in `{check}`"),
            )];
        }
    };
    // Only `store` has the audit log, wherever the leases are, and only out of `store` can leases be moved.
    let inspected = StoreInspection {
        audit_rights: inspected.audit_rights.filter(|_| check == CHECK),
        moved_to: inspected.moved_to.filter(|_| check == CHECK),
        ..inspected
    };
    let version = inspected.version.as_deref().unwrap_or("Postgres");
    let mut findings = vec![Finding::ok(check, format!("reached: {version}"))];
    findings.extend(check_inspection(check, location, &inspected));
    findings.extend(inspected.now.map(|store_time| {
        let offset = (store_time - clock.now().wall).num_milliseconds();
        check_result::clock(check, offset, 0)
    }));
    findings.extend(check_roles(check, &inspected));
    findings.extend(check_move(config, &inspected));
    findings
}

/// One role that owns the tables and serves, or separate roles.
fn check_roles(check: &str, inspected: &StoreInspection) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_behind = matches!(
        inspected.migrations,
        MigrationStatus::Fresh | MigrationStatus::Behind { .. }
    );
    if is_behind && !inspected.may_migrate {
        findings.push(Finding::fault(
            check,
            "the tables are not up to date, and this role may not change them",
            "leasehold migrate # as the owner of the tables, with the owner's address in LEASEHOLD_STORE",
        ));
    }
    findings.extend(inspected.audit_rights.map(|rights| match rights {
        AuditRights::Appender => Finding::ok(
            check,
            "two roles: this one may only read and add entries of the audit log, and does not own the tables",
        ),
        AuditRights::Owner => Finding::ok(
            check,
            "one role owns the tables and serves: it could drop the triggers that protect the audit log; \
             docs/deploy/postgres-roles.sql sets up two roles",
        ),
        AuditRights::Writer => Finding::warning(
            check,
            "this role does not own the audit log, but may change or delete its entries",
            "psql -f docs/deploy/postgres-roles.sql # as a superuser, in the database of the store",
        ),
    }));
    findings
}

/// The lease file and the other files of the store.
async fn check_file(path: &Path, config: &Config, clock: &Clock) -> Vec<Finding> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut findings = disk::examine(folder.unwrap_or(Path::new(".")));
    // In full: a relative path is another store in each folder.
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let location = full.display();
    if !path.exists() {
        findings.push(Finding::ok(
            CHECK,
            format!("{location} does not exist yet; the first start creates it"),
        ));
        return findings;
    }
    match store_inspection::sqlite(path).await {
        Ok(inspected) => {
            findings.extend(check_inspection(CHECK, &location.to_string(), &inspected));
            findings.extend(check_clock_ahead(&inspected, clock));
            findings.extend(check_move(config, &inspected));
        }
        Err(error) => findings.push(unreadable_finding(path, &error_chain(&error))),
    }
    for database in [db::console_file(path), db::history_file(path)] {
        findings.extend(check_other_database(database).await);
    }
    findings
}

async fn check_other_database(path: PathBuf) -> Option<Finding> {
    if !path.exists() {
        return None;
    }
    Some(match store_inspection::migrations(&path).await {
        Ok(migrations) => check_tables(CHECK, &path.display().to_string(), &migrations),
        Err(error) => unreadable_finding(&path, &error.to_string()),
    })
}

fn unreadable_finding(path: &Path, why: &str) -> Finding {
    let location = path.display();
    let remedy =
        format!("ls -l {location} # the user that serves must own it; if it is damaged, restore a backup");
    Finding::fault(CHECK, format!("{location} cannot be read: {why}"), remedy)
}

fn check_inspection(check: &str, location: &str, inspected: &StoreInspection) -> Vec<Finding> {
    let mut findings = vec![check_tables(check, location, &inspected.migrations)];
    findings.push(match &inspected.not_durable {
        Some(why) => Finding::fault(
            check,
            format!("its commits are not durable: {why}"),
            "ALTER ROLE leasehold SET synchronous_commit = on; -- and fsync = on in postgresql.conf, on the primary",
        ),
        None => Finding::ok(check, "commits are durable"),
    });
    if let Some(why) = &inspected.rewound {
        findings.push(Finding::fault(
            check,
            format!("it was rewound, perhaps restored from a backup: {why}"),
            "leasehold migrate --raise-epoch # raises every token above any that was lost",
        ));
    }
    findings
}

fn check_tables(check: &str, location: &str, migrations: &MigrationStatus) -> Finding {
    match migrations {
        MigrationStatus::Fresh => Finding::ok(
            check,
            format!("{location} has no tables yet; the first start creates them"),
        ),
        MigrationStatus::Current { version } => {
            Finding::ok(check, format!("{location} is at migration {version}, the newest"))
        }
        MigrationStatus::Behind { version, missing } => {
            let missing_count = domain::format::counted(missing.len() as u64, "migration", "migrations");
            Finding::warning(
                check,
                format!("{location} is at migration {version}, {missing_count} behind"),
                MIGRATE,
            )
        }
        MigrationStatus::Ahead { version } => Finding::warning(
            check,
            format!(
                "{location} is at migration {version}, which is newer than this binary and compatible with it"
            ),
            "install the newer version to complete the upgrade; this version works until then",
        ),
        MigrationStatus::TooNew { version, description } => Finding::fault(
            check,
            format!(
                "{location} is at migration {version} ({description}), which removes what this binary needs"
            ),
            "install the newer version again, or restore a backup from before the upgrade",
        ),
        MigrationStatus::Dirty { version } => Finding::fault(
            check,
            format!("{location}: migration {version} started but did not complete"),
            "restore the backup from before the upgrade, then: leasehold migrate",
        ),
    }
}

/// The store's time never goes back: if it is ahead, this machine's clock was set back or corrected.
fn check_clock_ahead(inspected: &StoreInspection, clock: &Clock) -> Option<Finding> {
    let ahead_ms = (inspected.now? - clock.now().wall).num_milliseconds();
    (ahead_ms > 5_000).then(|| {
        Finding::fault(
            CHECK,
            format!(
                "its stored time is {} s ahead of this machine's clock: leases would live longer by that amount",
                ahead_ms / 1_000
            ),
            "timedatectl set-ntp true # if this clock is right, wait until it has caught up",
        )
    })
}

/// An error with its causes, without an address that could contain a password.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        out.push_str(": ");
        out.push_str(&cause.to_string());
        source = cause.source();
    }
    out
}

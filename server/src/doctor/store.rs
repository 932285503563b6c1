//! The store of leases, people and the record: its tables, its durability, whether tokens would come again, its clock.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;

use super::finding::{self, Finding};
use super::{disk, door};
use crate::clock::Clock;
use crate::config::Config;
use crate::db;
use crate::db::schema::Standing;
use crate::lease::examine::{self, AuditRights, Examined};

const CHECK: &str = "store";
const MIGRATE: &str = "leasehold migrate # or start the server, which does the same";

pub(super) async fn examine(config: &Config, clock: &Clock) -> Vec<Finding> {
    let now = clock.now().wall;
    let mut findings: Vec<Finding> = door::time_of_day(now).into_iter().collect();
    let store = config.store.expose_secret();
    if let Some(path) = store.strip_prefix("sqlite:") {
        let path = Path::new(path.strip_prefix("//").unwrap_or(path));
        findings.extend(of_file(path, clock).await);
        return findings;
    }
    match examine::postgres(store).await {
        Ok(examined) => {
            let version = examined.version.as_deref().unwrap_or("Postgres");
            findings.push(Finding::ok(CHECK, format!("reached: {version}")));
            findings.extend(of_all("store", &examined));
            findings.extend(examined.now.map(|theirs| {
                let offset = (theirs - clock.now().wall).num_milliseconds();
                finding::clock(CHECK, offset, 0)
            }));
            findings.extend(of_roles(&examined));
        }
        Err(error) => findings.push(Finding::fault(
            CHECK,
            chain(&error),
            "check that Postgres runs, and the account, password and database in `store`",
        )),
    }
    findings
}

/// One role that owns the tables and serves, or two.
fn of_roles(examined: &Examined) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_behind = matches!(examined.standing, Standing::Fresh | Standing::Behind { .. });
    if is_behind && !examined.may_migrate {
        findings.push(Finding::fault(
            CHECK,
            "the tables are not up to date, and this role may not change them",
            "leasehold migrate # as the owner of the tables, with the owner's address in LEASEHOLD_STORE",
        ));
    }
    findings.extend(examined.audit_rights.map(|rights| match rights {
        AuditRights::Appender => Finding::ok(
            CHECK,
            "two roles: this one may only read and add rows of the audit log, and does not own the tables",
        ),
        AuditRights::Owner => Finding::ok(
            CHECK,
            "one role owns the tables and serves: it could drop the triggers that protect the audit log; \
             docs/deploy/postgres-roles.sql sets up two roles",
        ),
        AuditRights::Writer => Finding::warning(
            CHECK,
            "this role does not own the audit log, and may change or delete its rows",
            "psql -f docs/deploy/postgres-roles.sql # as a superuser, in the database of the store",
        ),
    }));
    findings
}

/// The file of leases and those beside it.
async fn of_file(path: &Path, clock: &Clock) -> Vec<Finding> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut findings = disk::examine(folder.unwrap_or(Path::new(".")));
    let shown = path.display();
    if !path.exists() {
        findings.push(Finding::ok(
            CHECK,
            format!("{shown} is not there yet; the first start makes it"),
        ));
        return findings;
    }
    match examine::sqlite(path).await {
        Ok(examined) => {
            findings.extend(of_all(&shown.to_string(), &examined));
            findings.extend(ahead(&examined, clock));
        }
        Err(error) => findings.push(unreadable(path, &chain(&error))),
    }
    for beside in [db::console_file(path), db::history_file(path)] {
        findings.extend(of_one_beside(beside).await);
    }
    findings
}

async fn of_one_beside(path: PathBuf) -> Option<Finding> {
    if !path.exists() {
        return None;
    }
    Some(match examine::standing(&path).await {
        Ok(standing) => of_tables(&path.display().to_string(), &standing),
        Err(error) => unreadable(&path, &error.to_string()),
    })
}

fn unreadable(path: &Path, why: &str) -> Finding {
    let shown = path.display();
    let mend =
        format!("ls -l {shown} # the user that serves must own it; if it is damaged, put back a backup");
    Finding::fault(CHECK, format!("{shown} cannot be read: {why}"), mend)
}

fn of_all(shown: &str, examined: &Examined) -> Vec<Finding> {
    let mut findings = vec![of_tables(shown, &examined.standing)];
    findings.push(match &examined.not_durable {
        Some(why) => Finding::fault(
            CHECK,
            format!("it would not keep what it confirms: {why}"),
            "ALTER ROLE leasehold SET synchronous_commit = on; -- and fsync = on in postgresql.conf, on the primary",
        ),
        None => Finding::ok(CHECK, "what it confirms is on disk"),
    });
    if let Some(why) = &examined.rewound {
        findings.push(Finding::fault(
            CHECK,
            format!("it was rewound, by a restored backup perhaps: {why}"),
            "leasehold migrate --raise-epoch # lifts every token above any that was lost",
        ));
    }
    findings
}

fn of_tables(shown: &str, standing: &Standing) -> Finding {
    match standing {
        Standing::Fresh => Finding::ok(
            CHECK,
            format!("{shown} has no tables yet; the first start makes them"),
        ),
        Standing::Current { version } => {
            Finding::ok(CHECK, format!("{shown} is at migration {version}, the newest"))
        }
        Standing::Behind { version, missing } => {
            let many = domain::human::counted(missing.len() as u64, "migration", "migrations");
            Finding::warning(
                CHECK,
                format!("{shown} is at migration {version}, {many} behind"),
                MIGRATE,
            )
        }
        Standing::Ahead { version } => Finding::warning(
            CHECK,
            format!("{shown} is at migration {version}, which is newer than this binary and only adds to it"),
            "install the newer version when the upgrade is done; this one works meanwhile",
        ),
        Standing::TooNew { version, description } => Finding::fault(
            CHECK,
            format!(
                "{shown} is at migration {version} ({description}), which takes away what this binary needs"
            ),
            "install the newer version again, or put back a backup from before it",
        ),
        Standing::Dirty { version } => Finding::fault(
            CHECK,
            format!("{shown}: migration {version} began and did not end"),
            "put back the backup from before the upgrade, then: leasehold migrate",
        ),
    }
}

/// The store's time never goes back: where it is ahead of ours, our clock went back or was put right.
fn ahead(examined: &Examined, clock: &Clock) -> Option<Finding> {
    let ahead_ms = (examined.now? - clock.now().wall).num_milliseconds();
    (ahead_ms > 5_000).then(|| {
        Finding::fault(
            CHECK,
            format!(
                "it has seen a time that is {} s ahead of ours: leases would live longer by that",
                ahead_ms / 1_000
            ),
            "timedatectl set-ntp true # if this clock is right, wait until it has caught up",
        )
    })
}

/// An error with all that it came from, and no address that could hold a password.
fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        out.push_str(": ");
        out.push_str(&cause.to_string());
        source = cause.source();
    }
    out
}

//! The store: tables behind and ahead, half migrated, changed by a newer version, rewound, on a disk that cannot be written.

use ::testkit::{Postgres, PostgresOptions, Throwaway};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use super::command::{ConfigFolder, DoctorReport, output, report};

async fn migrated() -> ConfigFolder {
    let config = ConfigFolder::new("");
    let mut migrate = config.leasehold();
    migrate.args(["migrate", "--json"]);
    let (code, out, err) = output(migrate).await;
    assert_eq!((code, out.as_str()), (0, "{\"migrated\":true}\n"), "{err}");
    config
}

/// Runs a statement on the lease store's file and leaves no other file.
async fn sql(config: &ConfigFolder, statement: &str) {
    sql_in(config, "leasehold.db", statement).await;
}

async fn sql_in(config: &ConfigFolder, file: &str, statement: &str) {
    let url = format!("sqlite:{}", config.path().join(file).display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

const NEWER: &str =
    "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time)
    VALUES (9001, 'DESCRIPTION', CURRENT_TIMESTAMP, true, x'00', 0)";

fn is_warned(report: &DoctorReport, words: &[&str]) {
    assert_eq!(report.code, 0, "{report:#?}");
    let warnings = report.level("warning").join("\n");
    for word in words {
        assert!(warnings.contains(word), "{word}: {report:#?}");
    }
}

#[tokio::test]
async fn old_new_and_partial_schemas_are_distinguished() {
    // The last migration missing, a newer one that only adds, an unfinished one, a newer one that removes a column.
    let config = migrated().await;
    sql(
        &config,
        "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    )
    .await;
    is_warned(
        &config.doctor().await,
        &["1 migration behind", "→ leasehold migrate"],
    );
    let config = migrated().await;
    sql(&config, &NEWER.replace("DESCRIPTION", "add a column")).await;
    is_warned(
        &config.doctor().await,
        &["migration 9001, which is newer than this binary and compatible with it"],
    );
    let config = migrated().await;
    sql(
        &config,
        "UPDATE _sqlx_migrations SET success = false WHERE version = 2",
    )
    .await;
    config
        .doctor()
        .await
        .has_one_fault(&["migration 2 started but did not complete", "→ restore the backup"]);
    let config = migrated().await;
    sql(&config, &NEWER.replace("DESCRIPTION", "contract drop a column")).await;
    config.doctor().await.has_one_fault(&[
        "migration 9001 (contract drop a column)",
        "→ install the newer version",
    ]);
}

#[tokio::test]
async fn missing_or_readable_secret_key_is_reported_with_its_remedy() {
    // A lost key is reported before the first alert fails to be sent.
    let config = migrated().await;
    let sealed = "INSERT INTO receivers (id, name, kind, urls, secret, created_at, created_by) VALUES
        ('a_1', 'ops', 'webhook', 'leasehold-sealed:1:0badcafe:AAAA', 'leasehold-sealed:1:0badcafe:AAAA', 0, 'ann')";
    sql_in(&config, "leasehold.console.db", sealed).await;
    let files = config.files();
    config.doctor().await.has_one_fault(&[
        "the key that encrypted them is missing",
        "leasehold.secret_key from the backup",
    ]);
    assert_eq!(config.files(), files, "it made something");
    let file = config.path().join("leasehold.secret_key");
    std::fs::write(
        &file,
        "99e2b6a0c4d8f3957a6b1c2d3e4f5061728394a5b6c7d8e9f00112233445566b\n",
    )
    .unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let report = config.doctor().await;
    let warnings = report.level("warning").join("\n");
    assert!(warnings.contains("→ chmod 600"), "{report:#?}");
    report.has_one_fault(&["ops cannot be notified", "0badcafe", "→ set previous_secret_key"]);
}

#[tokio::test]
async fn restored_backup_is_refused_until_the_named_command_runs() {
    // A copy from before two grants replaces the store; the witness file has a higher token.
    let config = migrated().await;
    let witness = |grants: u32| {
        let file = config.path().join("leasehold.db.witness");
        let text = std::fs::read_to_string(&file).unwrap();
        let mut seen: serde_json::Value = serde_json::from_str(&text).unwrap();
        seen["grants"] = grants.into();
        std::fs::write(&file, seen.to_string()).unwrap();
    };
    let serve = || {
        let mut command = config.command("timeout");
        command.args([
            "--preserve-status",
            "-k",
            "5",
            "-s",
            "TERM",
            "30",
            env!("CARGO_BIN_EXE_leasehold"),
            "serve",
        ]);
        output(command)
    };
    // A store that was served once has a witness.
    once_served(&config).await;
    witness(3);
    config.doctor().await.has_one_fault(&[
        "it was rewound",
        "the witness file records 3 in epoch 1",
        "→ leasehold migrate --raise-epoch",
    ]);
    let (code, _, err) = serve().await;
    assert!(
        code == 1 && err.contains("`leasehold migrate --raise-epoch`"),
        "{code} {err}"
    );
    let mut raise = config.leasehold();
    raise.args(["migrate", "--raise-epoch", "--json"]);
    let (code, out, err) = output(raise).await;
    assert_eq!(
        (code, out.as_str()),
        (0, "{\"epoch\":2,\"migrated\":true}\n"),
        "{err}"
    );
    let report = config.doctor().await;
    assert_eq!(
        (report.code, report.level("fault")),
        (0, Vec::new()),
        "{report:#?}"
    );
}

/// Opened and closed by the service itself.
async fn once_served(config: &ConfigFolder) {
    let url = format!("sqlite:{}", config.path().join("leasehold.db").display());
    let stop = tokio_util::sync::CancellationToken::new();
    let clock = runtime::clock::Clock::start();
    let service = lease::LeaseService::open(&url, lease::LeaseConfig::default(), clock, stop.clone());
    let service = service.await.unwrap();
    stop.cancel();
    service.close().await;
}

#[tokio::test]
async fn an_unwritable_folder_is_reported() {
    // A file system mounted read-only for this process alone.
    let config = ConfigFolder::new("store = \"sqlite:disk/leasehold.db\"\n");
    std::fs::create_dir(config.path().join("disk")).unwrap();
    let mut command = config.command("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let script = "mount -t tmpfs -o ro none disk && exec \"$0\" doctor --json";
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_leasehold")]);
    report(command)
        .await
        .has_one_fault(&["disk: ", "is mounted read-only", "→ mount -o remount,rw"]);
}

async fn postgres() -> Postgres {
    let options = PostgresOptions {
        fast: false,
        ..PostgresOptions::default()
    };
    Throwaway::postgres(options).await.unwrap()
}

#[tokio::test]
async fn a_postgres_store_without_durable_commits_is_reported() {
    // Sound first; then its role commits without waiting for the disk.
    let postgres = postgres().await;
    let config = ConfigFolder::new(&format!("store = \"{}\"\n", postgres.superuser_url()));
    let report = config.doctor().await;
    assert_eq!(report.level("fault"), Vec::<String>::new(), "{report:#?}");
    assert!(
        report
            .level("ok")
            .iter()
            .any(|line| line.contains("has no tables yet")),
        "{report:#?}"
    );
    let mut admin = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    sqlx::raw_sql("ALTER ROLE postgres SET synchronous_commit = off")
        .execute(&mut admin)
        .await
        .unwrap();
    config.doctor().await.has_one_fault(&[
        "synchronous_commit is off",
        "→ ALTER ROLE leasehold SET synchronous_commit = on;",
    ]);
    drop(postgres);
    config
        .doctor()
        .await
        .has_one_fault(&["store: ", "→ check that Postgres runs"]);
}

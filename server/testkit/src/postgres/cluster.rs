//! The files of a new cluster: by `initdb`, or as a copy of a cluster that it made before.

use std::{io, os::unix::process::CommandExt, path::Path, process::Stdio};

use super::super::{StartError, binaries, process, temp_dir::Folder};
use super::{INSTALL, SUPERUSER, WHAT, control_file, template};

const PASSWORD_FILE: &str = "password";

/// Creates the cluster in `data`. With a password, every connection needs it.
pub(super) async fn create(folder: &Folder, password: Option<&str>) -> Result<(), StartError> {
    let initdb = binaries::find("initdb", INSTALL)?;
    if let Some(password) = password {
        let written = folder.write_private(PASSWORD_FILE, password.as_bytes());
        written.map_err(failed("write the password"))?;
        let password_file = format!("--pwfile={PASSWORD_FILE}");
        return init(&initdb, folder, &["--auth=scram-sha-256", &password_file]).await;
    }
    let Some(template) = template::template_path(&initdb).map_err(failed("find a template"))? else {
        return init(&initdb, folder, &["--auth=trust"]).await;
    };
    if !template.exists() {
        init(&initdb, folder, &["--auth=trust"]).await?;
        return template::save(&folder.path().join("data"), &template).map_err(failed("save a template"));
    }
    let data = folder.path().join("data");
    template::copy(&template, &data, folder.account()).map_err(failed("copy a template"))?;
    control_file::replace_system_identifier(&data, rand::random()).map_err(failed("identify a cluster"))?;
    // Its log carries the identifier of the template.
    let reset = binaries::find("pg_resetwal", INSTALL)?;
    run(&reset, folder, &["--force", "--pgdata=data"]).await
}

/// Files are not synced: they do not outlive this process.
async fn init(initdb: &Path, folder: &Folder, authentication: &[&str]) -> Result<(), StartError> {
    let user = format!("--username={SUPERUSER}");
    let mut args = vec![
        "--pgdata=data",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "--no-instructions",
        // The first WAL segment is written in full: 1 MB instead of 16 MB.
        "--wal-segsize=1",
        &user,
    ];
    args.extend(authentication);
    run(initdb, folder, &args).await
}

/// Guarded like the server, so that it does not write into a folder that is being removed.
async fn run(program: &Path, folder: &Folder, args: &[&str]) -> Result<(), StartError> {
    let mut command = process::command(program, folder);
    command
        .args(args)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed("create a cluster"))?;
    folder.guard_pid(child.id().unwrap_or_default());
    let output = child.wait_with_output().await;
    folder.guard_pid(0);
    let output = output.map_err(failed("create a cluster"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(StartError::Cluster {
        program: program.display().to_string(),
        output: String::from_utf8_lossy(&text).trim().to_owned(),
    })
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> StartError {
    move |source| StartError::Io {
        what: WHAT,
        doing,
        source,
    }
}

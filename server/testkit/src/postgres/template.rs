//! A new cluster that `initdb` made once, copied for each server: a tenth of the processor time of making one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::super::run_as::Account;

/// Folder in which templates are kept; without it there are none.
const FOLDER_VARIABLE: &str = "POSTGRES_TEMPLATES";

/// Path of the template of this `initdb`, whether or not it exists.
pub(super) fn template_path(initdb: &Path) -> io::Result<Option<PathBuf>> {
    let Some(folder) = env::var_os(FOLDER_VARIABLE) else {
        return Ok(None);
    };
    let program = fs::canonicalize(initdb)?;
    let mut version = DefaultHasher::new();
    (fs::metadata(&program)?.modified()?, &program).hash(&mut version);
    Ok(Some(
        PathBuf::from(folder).join(format!("postgres-{:016x}", version.finish())),
    ))
}

/// Keeps a copy of `data`, which no server has used yet. Atomic; the first of several processes wins.
pub(super) fn save(data: &Path, template: &Path) -> io::Result<()> {
    let unfinished = template.with_extension(format!("{:032x}", rand::random::<u128>()));
    fs::create_dir_all(template.parent().unwrap_or(template))?;
    let saved =
        copy(data, &unfinished, Account::ourselves()).and_then(|()| fs::rename(&unfinished, template));
    if saved.is_err() {
        fs::remove_dir_all(&unfinished)?;
    }
    match saved {
        Err(_) if template.exists() => Ok(()),
        saved => saved,
    }
}

/// Permissions stay as they are.
pub(super) fn copy(from: &Path, to: &Path, account: Account) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, account)?;
        } else {
            fs::copy(entry.path(), &target)?;
            account.chown(&target)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    account.chown(to)
}

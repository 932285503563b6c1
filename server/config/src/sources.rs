//! The layers of a configuration, read from the process once.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment;
use super::error::{ConfigError, ConfigErrors};
use super::limits::FILE_BYTES_MAX;
use super::provenance::Origin;

/// Used when no file is named and this one exists.
pub const FILE_DEFAULT: &str = "leasehold.toml";

/// Later layers take precedence: file, environment, flags.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    pub file: Option<FileSource>,
    /// Variables with the prefix `LEASEHOLD_`.
    pub environment: BTreeMap<String, String>,
    pub flags: Vec<FlagSource>,
}

#[derive(Debug, Clone)]
pub struct FileSource {
    pub path: PathBuf,
    pub text: String,
}

/// A command line flag for a top-level key.
#[derive(Debug, Clone)]
pub struct FlagSource {
    pub key: &'static str,
    /// `--listen`
    pub name: &'static str,
    pub value: String,
}

impl ConfigSources {
    /// Reads the file (the named one, or `leasehold.toml` where it exists) and the process's environment.
    ///
    /// # Errors
    /// The named file cannot be read, is not UTF-8 or too large; a variable is not UTF-8.
    pub fn gather(file: Option<&Path>, flags: Vec<FlagSource>) -> Result<Self, ConfigErrors> {
        let default = default_file();
        let file = file.or(default.as_deref());
        Ok(Self {
            file: file.map(read).transpose()?,
            environment: environment::read_process()?,
            flags,
        })
    }
}

/// `leasehold.toml` of the current folder, if it exists. A symbolic link without its target counts as existing, so that reading
/// it fails: with the defaults alone a server would watch no backend.
pub fn default_file() -> Option<PathBuf> {
    let found = Path::new(FILE_DEFAULT).symlink_metadata();
    let is_absent = found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (!is_absent).then(|| PathBuf::from(FILE_DEFAULT))
}

fn read(path: &Path) -> Result<FileSource, ConfigError> {
    let error = |message: String, remedy: &str| ConfigError {
        key: String::new(),
        origin: Origin::File {
            path: Arc::from(path.display().to_string()),
            line: 0,
        },
        message,
        remedy: remedy.to_owned(),
    };
    let unreadable = |why: io::Error| error(format!("cannot be read: {why}"), remedy_for(why.kind()));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("is larger than {FILE_BYTES_MAX} bytes");
        return Err(error(message, "Check that it is the configuration."));
    }
    let text = String::from_utf8(bytes).map_err(|_| error("is not UTF-8".to_owned(), "Save it as UTF-8."))?;
    Ok(FileSource {
        path: path.to_owned(),
        text,
    })
}

fn remedy_for(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => {
            "Let the user that runs leasehold read the file and enter its folders."
        }
        io::ErrorKind::IsADirectory => "It is a folder: name a file in it with --config.",
        _ => "Name the file with --config, or start in the folder that holds leasehold.toml.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_fits_why_the_file_is_not_read() {
        // Missing, a folder, in another encoding, too large; without permission, which root has for every file.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leasehold.toml");
        assert!(
            read(&file)
                .unwrap_err()
                .remedy
                .starts_with("Name the file with --config")
        );
        assert!(read(folder.path()).unwrap_err().remedy.contains("is a folder"));
        std::fs::write(&file, b"log = \"\xfc\"").unwrap();
        assert_eq!(read(&file).unwrap_err().remedy, "Save it as UTF-8.");
        std::fs::write(&file, vec![b' '; 5_000_000]).unwrap();
        assert!(read(&file).unwrap_err().remedy.contains("Check that it is"));
        assert!(remedy_for(io::ErrorKind::PermissionDenied).contains("read the file"));
    }
}

//! `leasehold check-config`: the effective configuration, the source of each value, and all errors.

use std::path::PathBuf;
use std::process::ExitCode;

use super::exit_code::Exit;
use super::output::{print, report};
use super::table::align;
use crate::serve::listener::tls::Certificate;
use config::{self, ConfigError, ConfigErrors, ConfigSources, Loaded, Origin};

/// Show the configuration: each key, its value, its source, and every error.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Opens no connections. Secrets are never shown. A running server reloads its configuration on SIGHUP\n",
    "(systemctl reload leasehold): backends, identity rules, log and oidc.client_secret then change at once,\n",
    "all other settings at the next start.\n\n",
    "Example:\n  leasehold check-config --config leasehold.toml\n\n",
    "Exit codes: 0 no error, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file [default: leasehold.toml in the current folder, if it exists]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print JSON: {ok, access, file, settings: [{key, value, origin}], errors: [{key, origin, message, remedy}]}
    #[arg(long)]
    pub json: bool,
}

/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (file, loaded) = match ConfigSources::gather(args.config.as_deref(), Vec::new()) {
        Ok(sources) => {
            let file = sources.file.as_ref().map(|file| file.path.display().to_string());
            (file, load(&sources))
        }
        Err(errors) => (None, unread(errors)),
    };
    print(&if args.json {
        json(file.as_deref(), &loaded)
    } else {
        text(file.as_deref(), &loaded)
    })?;
    match &loaded.config {
        Ok(_) => Ok(Exit::Ok.into()),
        Err(errors) => {
            report(&errors.to_string());
            Ok(Exit::Usage.into())
        }
    }
}

fn unread(errors: ConfigErrors) -> Loaded {
    Loaded {
        config: Err(errors),
        entries: Vec::new(),
        known: std::collections::BTreeSet::new(),
    }
}

/// Every error that can be found without a connection, including an unusable certificate.
pub(super) fn load(sources: &ConfigSources) -> Loaded {
    let mut loaded = config::read(sources);
    let tls = loaded
        .config
        .as_ref()
        .ok()
        .and_then(|config| config.access.tls.as_ref());
    let wrong = tls.and_then(|files| Certificate::load(files).err());
    if let Some(wrong) = wrong {
        let entry = loaded.entries.iter().find(|entry| entry.key == wrong.key);
        let error = ConfigError {
            key: wrong.key.to_owned(),
            origin: entry.map_or(Origin::Default, |entry| entry.origin.clone()),
            message: format!("{} {}", wrong.path.display(), wrong.why),
            remedy: wrong.remedy.to_owned(),
        };
        loaded.config = Err(error.into());
    }
    loaded
}

fn json(file: Option<&str>, loaded: &Loaded) -> String {
    let errors = loaded.config.as_ref().err();
    let answer = serde_json::json!({
        "ok": errors.is_none(),
        "access": loaded.config.as_ref().ok().map(|config| config.access.explain(config.listen)),
        "file": file,
        "settings": loaded.entries,
        "errors": errors.map_or(&[][..], |errors| errors.0.as_slice()),
    });
    format!("{answer:#}\n")
}

fn text(file: Option<&str>, loaded: &Loaded) -> String {
    let mut out = match file {
        Some(file) => format!("Read {file}, then the environment.\n"),
        // Nothing was read, because the file or a variable cannot be read.
        None if loaded.entries.is_empty() => String::new(),
        None => "Read no file, only the environment.\n".to_owned(),
    };
    let rows: Vec<Vec<String>> = loaded
        .entries
        .iter()
        .map(|entry| vec![entry.key.clone(), entry.value.clone(), entry.origin.to_string()])
        .collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&align(&["KEY", "VALUE", "FROM"], &rows));
    }
    if let Ok(config) = &loaded.config {
        out.push('\n');
        out.push_str(&config.access.explain(config.listen));
        out.push('\n');
        out.push_str(&match config.backends.len() {
            0 => "No errors, but no [[backend]] is configured: the console will show only its own leases.\n"
                .to_owned(),
            count => format!(
                "No errors. {}.\n",
                domain::format::counted(count as u64, "backend", "backends")
            ),
        });
    }
    out
}

//! `leasehold serve`: the console.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::check_config;
use super::exit_code::Exit;
use super::output::{report, write};
use crate::serve::reload::{ReloadReport, Reloaded, Reloader};
use crate::serve::{self, Setup};
use config::{self, ConfigErrors, ConfigSources, FlagSource, Loaded};
use runtime::clock::Clock;
use runtime::shutdown;
use runtime::tasks;

/// Serve the console.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = concat!(
    "SIGHUP reloads the configuration: backends, identity rules, log and oidc.client_secret change at once, all other\n",
    "settings at the next start. Connections and leases continue.\n\n",
    "Example:\n  leasehold serve --config leasehold.toml\n\n",
    "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file [default: leasehold.toml in the current folder, if it exists]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Address and port, instead of the configured ones
    // Text: validated by the configuration reader, with its messages.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

impl Args {
    fn load(&self, judge: fn(&ConfigSources) -> Loaded) -> Result<ReloadReport, ConfigErrors> {
        let flags = self.listen.iter().map(|listen| FlagSource {
            key: "listen",
            name: "--listen",
            value: listen.clone(),
        });
        let loaded = judge(&ConfigSources::gather(self.config.as_deref(), flags.collect())?);
        Ok(ReloadReport {
            config: loaded.config?,
            entries: loaded.entries,
        })
    }
}

/// # Errors
/// The reason why the server ended.
pub async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    // A reload without the file that was read at start is an error, not the removal of every backend.
    args.config = args.config.or_else(config::sources::default_file);
    let loaded = match args.load(config::read) {
        Ok(loaded) => loaded,
        Err(errors) => {
            report(&errors.to_string());
            return Ok(Exit::Usage.into());
        }
    };
    runtime::telemetry::start_pushing(&loaded.config.log, &loaded.config.telemetry)?;
    serve::listener::limits::raise_open_files();
    let stop_signal = shutdown::on_signal()?;
    // Installed early: a SIGHUP during the start waits instead of ending the process.
    let hangups = signal(SignalKind::hangup())?;
    Box::pin(serve(args, loaded, stop_signal, hangups)).await
}

async fn serve(
    args: Args,
    loaded: ReloadReport,
    stop_signal: CancellationToken,
    hangups: Signal,
) -> anyhow::Result<ExitCode> {
    let (config, stop) = (loaded.config.clone(), CancellationToken::new());
    let setup = Setup {
        listen: config.listen,
        store: config.store,
        lease: config.lease,
        backends: config.backends,
        identity_rules: config.identity_rules,
        access: config.access,
        history: config.history,
        notify: config.notify,
        demo: None,
        clock: Clock::start(),
        stop: stop.clone(),
    };
    let serving = tokio::select! {
        started = Box::pin(serve::start(setup)) => started?,
        () = stop_signal.cancelled() => return Ok(Exit::Ok.into()),
    };
    shutdown::watch_for_shutdown(serving.readiness.clone(), stop_signal, stop.clone());
    serving.reloader.began_with(loaded);
    reload_on(hangups, args, serving.reloader.clone(), stop);
    let home = &serving.home;
    announce(&format!("Leasehold: {home}\n"));
    if let Some(link) = serving.identity().setup_link().await? {
        announce(&format!(
            "No admin exists yet. This link creates the first admin; it works once, within an hour:\n{home}/setup#{}\n",
            link.expose()
        ));
    }
    let ended = serving.ended().await;
    runtime::telemetry::flush().await;
    match ended {
        None => Ok(Exit::Ok.into()),
        Some(why) => Err(anyhow::anyhow!(why)),
    }
}

/// A full disk or a closed pipe does not end the server.
fn announce(text: &str) {
    if let Err(error) = write(text) {
        tracing::warn!(
            "standard output cannot be written: {error}. The next start prints address and link again"
        );
    }
}

/// Reloads on each SIGHUP, one after the other.
fn reload_on(hangups: Signal, args: Args, reloader: Arc<Reloader>, stop: CancellationToken) {
    let hangups = Arc::new(tokio::sync::Mutex::new(hangups));
    tasks::spawn_supervised("reload", stop, move || {
        let (hangups, args, reloader) = (hangups.clone(), args.clone(), reloader.clone());
        async move {
            while hangups.lock().await.recv().await.is_some() {
                reload(&args, &reloader).await;
            }
        }
    });
}

async fn reload(args: &Args, reloader: &Reloader) {
    tracing::info!("SIGHUP: reloading the configuration");
    let loaded = match args.load(check_config::load) {
        Ok(loaded) => loaded,
        Err(errors) => {
            // One log event per line, because the log escapes line breaks.
            for line in format!("the previous configuration remains in effect: {errors}").lines() {
                tracing::error!("{line}");
            }
            return reloader.refused(&errors).await;
        }
    };
    match reloader.apply(&loaded).await {
        Ok(reloaded) => log_reload(&reloaded),
        Err(error) => tracing::error!("the previous configuration remains in effect: {error}"),
    }
}

fn log_reload(reloaded: &Reloaded) {
    let backends = &reloaded.backends;
    let mut parts = Vec::new();
    for (change, names) in [
        ("added", &backends.added),
        ("replaced", &backends.changed),
        ("removed", &backends.removed),
    ] {
        if !names.is_empty() {
            parts.push(format!("{change} {}", names.join(", ")));
        }
    }
    parts.extend(reloaded.log.iter().map(|filter| format!("log is {filter}")));
    if reloaded.client_secret {
        parts.push("oidc.client_secret has changed".to_owned());
    }
    let done = if parts.is_empty() {
        "no setting that applies without a restart has changed".to_owned()
    } else {
        parts.join("; ")
    };
    tracing::info!("the configuration was reloaded: {done}");
    for key in &reloaded.needs_restart {
        tracing::warn!(config.key = key, "{key} has changed and needs a restart");
    }
}

//! `leasehold serve`: the console.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::check_config;
use super::exit::Exit;
use super::output::{print, report};
use crate::clock::Clock;
use crate::config::{self, ConfigErrors, FlagSource, Loaded, Sources};
use crate::serve::reload::{Reloaded, Reloader, Told};
use crate::serve::{self, Setup};
use crate::{shutdown, tasks};

/// Serve the console.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = concat!(
    "SIGHUP reads the configuration again: backends and log change at once, nothing else ends.\n\n",
    "Example:\n  leasehold serve --config leasehold.toml\n\n",
    "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file; without it, leasehold.toml in this folder, where there is one
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Address and port, instead of the configured ones
    // A text: the configuration judges it, with its reasons.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

impl Args {
    fn load(&self, judge: fn(&Sources) -> Loaded) -> Result<Told, ConfigErrors> {
        let flags = self.listen.iter().map(|listen| FlagSource {
            key: "listen",
            name: "--listen",
            value: listen.clone(),
        });
        let loaded = judge(&Sources::gather(self.config.as_deref(), flags.collect())?);
        Ok(Told {
            config: loaded.config?,
            entries: loaded.entries,
        })
    }
}

/// # Errors
/// Whatever ends the server.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let told = match args.load(config::read) {
        Ok(told) => told,
        Err(errors) => {
            report(&errors.to_string());
            return Ok(Exit::Usage.into());
        }
    };
    crate::telemetry::start_pushing(&told.config.log, &told.config.telemetry)?;
    serve::doors::limits::raise_open_files();
    let asked = shutdown::on_signal()?;
    // From now on: a SIGHUP during the start waits, it does not end the process.
    let hangups = signal(SignalKind::hangup())?;
    Box::pin(serve(args, told, asked, hangups)).await
}

async fn serve(
    args: Args,
    told: Told,
    asked: CancellationToken,
    hangups: Signal,
) -> anyhow::Result<ExitCode> {
    let (config, stop) = (told.config.clone(), CancellationToken::new());
    let setup = Setup {
        listen: config.listen,
        store: config.store,
        lease: config.lease,
        backends: config.backends,
        access: config.access,
        history: config.history,
        notify: config.notify,
        clock: Clock::start(),
        stop: stop.clone(),
    };
    let serving = tokio::select! {
        started = Box::pin(serve::start(setup)) => started?,
        () = asked.cancelled() => return Ok(Exit::Ok.into()),
    };
    shutdown::take_leave(serving.readiness.clone(), asked, stop.clone());
    serving.reloader.began_with(told);
    reload_on(hangups, args, serving.reloader.clone(), stop);
    let home = &serving.home;
    print(&format!("Leasehold: {home}\n"))?;
    if let Some(link) = serving.identity.setup_link().await? {
        print(&format!(
            "Nobody can sign in yet. This link makes the first admin; it works once, within an hour:\n{home}/setup#{}\n",
            link.expose()
        ))?;
    }
    let ended = serving.ended().await;
    crate::telemetry::flush().await;
    match ended {
        None => Ok(Exit::Ok.into()),
        Some(why) => Err(anyhow::anyhow!(why)),
    }
}

/// With each SIGHUP, one after the other.
fn reload_on(hangups: Signal, args: Args, reloader: Arc<Reloader>, stop: CancellationToken) {
    let hangups = Arc::new(tokio::sync::Mutex::new(hangups));
    tasks::keep("reload", stop, move || {
        let (hangups, args, reloader) = (hangups.clone(), args.clone(), reloader.clone());
        async move {
            while hangups.lock().await.recv().await.is_some() {
                reload(&args, &reloader).await;
            }
        }
    });
}

async fn reload(args: &Args, reloader: &Reloader) {
    tracing::info!("SIGHUP: reading the configuration again");
    let told = match args.load(check_config::judge) {
        Ok(told) => told,
        Err(errors) => {
            // One event per line: the log escapes line breaks.
            for line in format!("the old configuration stays: {errors}").lines() {
                tracing::error!("{line}");
            }
            return reloader.refused(&errors).await;
        }
    };
    match reloader.apply(&told).await {
        Ok(reloaded) => tell(&reloaded),
        Err(error) => tracing::error!("the old configuration stays: {error}"),
    }
}

fn tell(reloaded: &Reloaded) {
    let backends = &reloaded.backends;
    let mut parts = Vec::new();
    for (word, names) in [
        ("added", &backends.added),
        ("replaced", &backends.changed),
        ("removed", &backends.removed),
    ] {
        if !names.is_empty() {
            parts.push(format!("{word} {}", names.join(", ")));
        }
    }
    parts.extend(reloaded.log.iter().map(|filter| format!("log is {filter}")));
    if reloaded.client_secret {
        parts.push("oidc.client_secret is another".to_owned());
    }
    let done = if parts.is_empty() {
        "nothing that can change without a restart has changed".to_owned()
    } else {
        parts.join("; ")
    };
    tracing::info!("the configuration was read again: {done}");
    for key in &reloaded.needs_restart {
        tracing::warn!(config.key = key, "{key} has changed and needs a restart");
    }
}

//! `leasehold run`: runs a command while holding a lock.
//!
//! Three processes: this one acquires and renews; the command in its own process group; and a watcher ([`watchdog`])
//! that receives each new deadline and ends the command if this process is killed, stopped or hangs.
//!
//! **Invariant:** the command does not start before the watcher knows its process group, and no process of the group
//! runs longer than the lease's deadline plus the grace period, unless this process and the watcher are killed at once:
//! even then its first process gets SIGTERM from the kernel.

mod command;
pub mod exec_gate;
mod messages;
mod process_group;
mod signals;
mod stderr;
mod supervisor;
pub mod watchdog;
mod watchdog_client;

use std::process::ExitCode;
use std::time::Duration;

use leasehold_client::{AcquireError, Client, Lease, Request};
use rustix::process::Signal;
use secrecy::ExposeSecret;

use self::messages::ServerMessages;
use self::signals::Signals;
use self::supervisor::{CommandEnd, SupervisedLease};
use super::client;
use super::connection::Connection;
use super::exit_code::Exit;
use super::output::report;
use domain::escape::visible;

/// Run a command while holding a lock.
///
/// The command gets LEASEHOLD_RESOURCE, LEASEHOLD_LEASE_ID and LEASEHOLD_FENCING_TOKEN. It runs in a process group of
/// its own, to which signals are forwarded. As under `timeout`, it cannot read from the terminal. When the command ends,
/// the rest of its process group is ended too, and only then the lock is released.
///
/// When the lease is lost or may be lost, the command gets SIGTERM, and SIGKILL after the grace period. No lock can stop
/// writes that the command has already sent: let the resource compare LEASEHOLD_FENCING_TOKEN.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold run --resource billing:close --ttl 30s -- ./close-month.sh\n",
    "  leasehold run --resource backup --ttl 60s --wait 10m --grace 20s -- pg_dump -f /backup/orders\n\n",
    "Exit codes: 0 to 255 as the command's, 128 plus the signal's number if a signal ended it;\n",
    "75 the lock was not obtained, 76 the lease was lost, 2 wrong usage,\n",
    "126 the command cannot be run, 127 the command does not exist.",
))]
pub struct Args {
    /// Name of the resource to lock
    #[arg(long, value_name = "NAME")]
    pub resource: String,
    /// TTL of the lease: how long the lock stays held if this machine fails; whole seconds
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub ttl: Duration,
    /// How long to wait for the lock
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pub wait: Duration,
    /// Time between SIGTERM and SIGKILL for the command
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    pub grace: Duration,
    /// Owner, for display [default: HOST:PID]
    #[arg(long, value_name = "ID")]
    pub owner: Option<String>,
    #[command(flatten)]
    pub connection: Connection,
    /// Trace context for the requests, if any
    #[arg(long, value_name = "TRACEPARENT", env = "TRACEPARENT", hide = true)]
    // An invalid value must not prevent the command.
    pub traceparent: Option<std::ffi::OsString>,
    /// Command and arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if ttl.is_zero() || ttl.subsec_nanos() > 0 {
        return Err("must be whole seconds, at least 1s".to_owned());
    }
    Ok(ttl)
}

impl Args {
    fn request(&self) -> Request {
        let owner = self.owner.clone().unwrap_or_else(|| {
            let host = rustix::system::uname();
            format!("{}:{}", host.nodename().to_string_lossy(), std::process::id())
        });
        Request::new(self.resource.clone(), self.ttl)
            .owner(owner)
            .wait(self.wait)
    }
}

/// # Errors
/// Signals cannot be watched, or a process cannot be started.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let connection = &args.connection;
    let mut builder = Client::builder(connection.server.as_str());
    if let Some(token) = &connection.token {
        builder = builder.token(token.expose_secret());
    }
    if connection.insecure_http {
        builder = builder.insecure_http();
    }
    if connection.use_proxy {
        builder = builder.use_proxy();
    }
    if let Some(trace) = args.traceparent.as_ref().and_then(|text| text.to_str()) {
        builder = builder.traceparent(trace);
    }
    let client = match builder.build() {
        Ok(client) => client,
        Err(error) => {
            report(&error.to_string());
            return Ok(Exit::Usage.into());
        }
    };
    let mut signals = Signals::watch()?;
    let mut messages = ServerMessages::new(args.resource.clone(), client::name(&connection.server));
    let acquiring = client.acquire_observed(args.request(), |progress| messages.acquiring(progress));
    // An acquire without a result is withdrawn: a lock that the server has granted in the meantime would stay held for one TTL.
    let lease = tokio::select! {
        acquired = acquiring => match acquired {
            Ok(lease) => lease,
            Err(error) => {
                let exit = not_obtained(&args, &error);
                client.withdrawn().await;
                return Ok(exit.into());
            }
        },
        signal = signals.terminating() => {
            client.withdrawn().await;
            return Ok(died_by(signal?));
        }
    };
    run_under_lease(&args, &lease, signals, messages).await
}

async fn run_under_lease(
    args: &Args,
    lease: &Lease,
    signals: Signals,
    messages: ServerMessages,
) -> anyhow::Result<ExitCode> {
    let held = SupervisedLease::start(args, lease, signals, messages).await;
    let ended = match held {
        Ok(held) => held.until_ended().await,
        Err(error) => Err(error),
    };
    // No process of the command is left: the next owner need not wait for the expiry.
    let released = tokio::time::timeout(release_within(&ended), lease.release()).await;
    if let (Ok(Err(error)), Ok(CommandEnd::ByItself(_))) = (released, &ended) {
        report(&visible(&error.to_string()));
    }
    match ended? {
        CommandEnd::Lost => Ok(Exit::LeaseLost.into()),
        CommandEnd::ByItself(code) => Ok(code.into()),
    }
}

/// Releasing a lost lease is only best effort.
fn release_within(ended: &anyhow::Result<CommandEnd>) -> Duration {
    match ended {
        Ok(CommandEnd::ByItself(_)) => Duration::MAX,
        Ok(CommandEnd::Lost) | Err(_) => Duration::from_secs(1),
    }
}

fn not_obtained(args: &Args, error: &AcquireError) -> Exit {
    report(&visible(&format!("{} was not obtained: {error}", args.resource)));
    match error {
        AcquireError::Refused {
            status: 400 | 413, ..
        } => Exit::Usage,
        _ => Exit::NotObtained,
    }
}

/// 128 plus the signal number, as in shells.
fn died_by(signal: Signal) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_whole_seconds() {
        // The API has whole seconds, and rounding would change the promise.
        assert_eq!(parse_ttl("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_ttl("5m"), Ok(Duration::from_secs(300)));
        for bad in ["0s", "1500ms", "500ms", "30", "", "-1s"] {
            assert!(parse_ttl(bad).is_err(), "{bad}");
        }
    }
}

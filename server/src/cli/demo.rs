//! `leasehold demo`: the console on throwaway servers with a workload.
//!
//! **Invariant:** the sign-in link is the last line on the terminal; from then on the log is in a file, unless
//! `--verbose` asks for it.

use std::fs::{self, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use app::links;
use app::session::TourLinks;
use domain::access::{Grant, Role};
use domain::names::BackendName;
use domain::shell_quote::quote;
use tokio_util::sync::CancellationToken;

use super::exit_code::Exit;
use super::output::{print, report};
use crate::history::simulation;
use crate::http::DemoConsole;
use crate::identity::{NewToken, NewUser, Principal, Secret};
use crate::notify::{NewReceiver, ReceiverKind};
use crate::serve::{self, ServeError, Serving, Setup};
use config::{
    AccessConfig, HistoryConfig, LISTEN_DEFAULT, LeaseConfig, LogConfig, NotifyConfig, TelemetryConfig,
};
use demo;
use demo::{Demo, Webhook};
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::telemetry::{self, LogOutput};

/// The user that the sign-in link is for.
const VISITOR: &str = "visitor";

/// Serve the console on throwaway servers with a workload, to look around.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Starts its own Postgres, Redis, etcd, ZooKeeper and Consul on free ports and removes them at the end.\n",
    "The last line is a sign-in link. The server's log is in a file that is removed too.\n\n",
    "Example:\n  leasehold demo\n\n",
    "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage.",
))]
pub struct Args {
    /// Address and port of the console
    #[arg(long, value_name = "ADDRESS", default_value_t = LISTEN_DEFAULT)]
    pub listen: SocketAddr,
    /// Show the server's log on the terminal instead of writing it to a file
    #[arg(long)]
    pub verbose: bool,
}

/// # Errors
/// None of the servers is installed, one of them does not start, or the console cannot listen on the port.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = demo::create_folder()?;
    let files = DemoFiles::new(folder.path(), args.verbose);
    telemetry::start_pushing_to(
        files.log_output()?,
        &LogConfig::default(),
        &TelemetryConfig::default(),
    )?;
    let stop = runtime::shutdown::on_signal()?;
    report("starting Postgres, Redis, etcd, ZooKeeper and Consul, each in a folder of its own");
    let mut demo = demo::start(folder, stop.clone()).await?;
    for server in demo.missing_servers() {
        report(&format!("continuing without {server}"));
    }
    let served = Box::pin(serve_until_stopped(&mut demo, &files, args.listen, stop)).await;
    report("stopping the servers");
    demo.end().await;
    telemetry::flush().await;
    served
}

async fn serve_until_stopped(
    demo: &mut Demo,
    files: &DemoFiles,
    listen: SocketAddr,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let store = files.store();
    let written = stop.run_until_cancelled(write_history(demo, &store)).await;
    if written.transpose()?.is_none() {
        return Ok(Exit::Ok.into());
    }
    let serving = serve(demo, files, listen, &stop).await?;
    files.write_config(serving.address)?;
    let token = workers_token(&serving).await?;
    demo.work_on(&format!("http://{}", serving.address), token.expose())?;
    // Before the receiver, which would be notified of the new admin.
    let link = visitor_link(&serving).await?;
    listen_to(&serving, stop).await?;
    watch_over(&serving).await?;
    print(&files.closing_lines())?;
    print(&format!("{}/sign-in?link={}\n", serving.home, link.expose()))?;
    match serving.ended().await {
        None => Ok(Exit::Ok.into()),
        Some(why) => Err(anyhow::anyhow!(why)),
    }
}

/// Before the server starts: it then reads the past like its own.
async fn write_history(demo: &Demo, store: &str) -> anyhow::Result<()> {
    report("simulating the history of the last 24 hours");
    let until = Clock::start().now().wall.timestamp_millis();
    let past = demo.past(until)?;
    let db = Db::open(store).await?;
    let history = db.history(store).await?;
    simulation::write_history(&history, &past).await?;
    history.close().await;
    db.close().await;
    Ok(())
}

async fn serve(
    demo: &Demo,
    files: &DemoFiles,
    listen: SocketAddr,
    stop: &CancellationToken,
) -> Result<Serving, ServeError> {
    let setup = |listen| Setup {
        listen,
        store: files.store().into(),
        lease: LeaseConfig::default(),
        backends: demo.backends(),
        identity_rules: demo.identity_rules(),
        access: AccessConfig::default(),
        history: HistoryConfig::default(),
        notify: NotifyConfig {
            // The demo's own webhook is on this machine.
            allowed_networks: vec![IpAddr::V4(Ipv4Addr::LOCALHOST).into()],
            ..NotifyConfig::default()
        },
        demo: Some(DemoConsole::new(files.link_command(), tour())),
        clock: Clock::start(),
        stop: stop.clone(),
    };
    match serve::start(setup(listen)).await {
        // The default port is in use: take any free one.
        Err(ServeError::Listen { .. }) if listen == LISTEN_DEFAULT => {
            serve::start(setup(SocketAddr::new(listen.ip(), 0))).await
        }
        started => started,
    }
}

/// The console's files in the demo's folder.
struct DemoFiles {
    folder: PathBuf,
    is_verbose: bool,
}

impl DemoFiles {
    fn new(folder: &Path, is_verbose: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            is_verbose,
        }
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.folder.join("leasehold.db").display())
    }

    fn log(&self) -> PathBuf {
        self.folder.join("leasehold.log")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("leasehold.toml")
    }

    fn log_output(&self) -> io::Result<LogOutput> {
        if self.is_verbose {
            return Ok(LogOutput::StandardError);
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        Ok(LogOutput::File(options.open(self.log())?))
    }

    /// For other commands on the demo's store.
    fn write_config(&self, address: SocketAddr) -> io::Result<()> {
        let text = format!("listen = \"{address}\"\nstore = \"{}\"\n", self.store());
        fs::write(self.config(), text)
    }

    /// Runs in any terminal, from any folder.
    fn link_command(&self) -> String {
        let binary = std::env::current_exe().unwrap_or_else(|_| "leasehold".into());
        let (binary, config) = (binary.display().to_string(), self.config().display().to_string());
        format!(
            "{} user link --name {VISITOR} --config {}",
            quote(&binary),
            quote(&config)
        )
    }

    /// The lines before the link.
    fn closing_lines(&self) -> String {
        let log = if self.is_verbose {
            String::new()
        } else {
            format!("Log: {}\n", self.log().display())
        };
        format!(
            "{log}Another link: {}\nPress Ctrl-C to stop the demo and to remove its files. This link signs you in once, as the demo's admin:\n\n",
            self.link_command()
        )
    }
}

fn tour() -> TourLinks {
    let targets = Demo::tour_targets();
    let builtin = BackendName::builtin();
    TourLinks {
        find: links::with_query("/locks", [("q", targets.search)]),
        understand: links::named(builtin.as_str(), targets.queue),
        break_safely: links::unlock(&links::named(builtin.as_str(), targets.held)),
        alert: format!("/alerts/rules/{}", targets.rule),
    }
}

/// A webhook receiver, and its first message.
async fn listen_to(serving: &Serving, stop: CancellationToken) -> anyhow::Result<()> {
    let webhook = Webhook::open(stop, |line| {
        tracing::info!("the demo's webhook received {line}");
    })
    .await?;
    let receiver = NewReceiver {
        name: "demo-webhook".to_owned(),
        kind: ReceiverKind::Webhook,
        urls: vec![webhook.url()],
        secret: Some(webhook.secret()),
    };
    let demo = Principal::system("demo");
    serving.notifier.add(&demo, receiver).await?;
    serving.notifier.try_out(&demo, "demo-webhook").await?;
    Ok(())
}

/// Adds rules that fire within two minutes.
async fn watch_over(serving: &Serving) -> anyhow::Result<()> {
    let demo = Principal::system("demo");
    for rule in Demo::rules() {
        // Their locks appear with the workload.
        Box::pin(serving.alerts.save_rule(&demo, rule, None, true)).await?;
    }
    Ok(())
}

/// A user with all permissions, and a sign-in link.
async fn visitor_link(serving: &Serving) -> anyhow::Result<Secret> {
    let visitor = NewUser {
        name: VISITOR.to_owned(),
        grants: vec![Grant::everywhere(Role::Admin)],
        password: None,
    };
    let demo = Principal::system("demo");
    let user = serving.identity().add_user(&demo, visitor).await?;
    Ok(serving.identity().user_link(&demo, &user).await?)
}

/// The token with which the demo's workers hold leases of the built-in service.
async fn workers_token(serving: &Serving) -> anyhow::Result<Secret> {
    let workers = NewToken {
        name: "demo-workers".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: None,
    };
    Ok(serving
        .identity()
        .create_token(&Principal::system("demo"), workers)
        .await?)
}

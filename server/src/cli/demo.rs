//! `leasehold demo`: the console on throwaway servers with a workload.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use domain::access::{Grant, Role};
use tokio_util::sync::CancellationToken;

use super::exit_code::Exit;
use super::output::{print, report};
use crate::identity::{NewToken, NewUser, Principal, Secret};
use crate::notify::{NewReceiver, ReceiverKind};
use crate::serve::{self, ServeError, Serving, Setup};
use config::{
    AccessConfig, HistoryConfig, LISTEN_DEFAULT, LeaseConfig, LogConfig, NotifyConfig, TelemetryConfig,
};
use demo;
use demo::{Demo, Webhook};
use runtime::clock::Clock;

/// Serve the console on throwaway servers with a workload, to look around.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Starts its own Postgres, Redis, etcd, ZooKeeper and Consul on free ports and removes them at the end.\n\n",
    "Example:\n  leasehold demo\n\n",
    "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage.",
))]
pub struct Args {
    /// Address and port of the console
    #[arg(long, value_name = "ADDRESS", default_value_t = LISTEN_DEFAULT)]
    pub listen: SocketAddr,
}

/// # Errors
/// None of the servers is installed, one of them does not start, or the port cannot be had.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    runtime::telemetry::start_pushing(&LogConfig::default(), &TelemetryConfig::default())?;
    let stop = runtime::shutdown::on_signal()?;
    report("starting Postgres, Redis, etcd, ZooKeeper and Consul, each in a folder of its own");
    let mut demo = demo::start(stop.clone()).await?;
    for server in demo.missing_servers() {
        report(&format!("continuing without {server}"));
    }
    let store = format!("sqlite:{}", demo.folder().join("leasehold.db").display());
    // The demo's own webhook is on this machine.
    let inner = NotifyConfig {
        allowed_networks: vec![IpAddr::V4(Ipv4Addr::LOCALHOST).into()],
        ..NotifyConfig::default()
    };
    let setup = |listen| Setup {
        listen,
        store: store.clone().into(),
        lease: LeaseConfig::default(),
        backends: demo.backends(),
        identity_rules: Vec::new(),
        access: AccessConfig::default(),
        history: HistoryConfig::default(),
        notify: inner.clone(),
        clock: Clock::start(),
        stop: stop.clone(),
    };
    let serving = match serve::start(setup(args.listen)).await {
        // The default port is in use: take any free one.
        Err(ServeError::Listen { .. }) if args.listen == LISTEN_DEFAULT => {
            serve::start(setup(SocketAddr::new(args.listen.ip(), 0))).await
        }
        started => started,
    };
    let served = match serving {
        Ok(serving) => {
            let token = workers_token(&serving).await?;
            demo.work_on(&format!("http://{}", serving.address), token.expose())?;
            listen_to(&serving, stop.clone()).await?;
            watch_over(&serving).await?;
            let link = visitor_link(&serving).await?;
            print("Press Ctrl-C to stop the demo. This link signs you in once, as its admin:\n")?;
            print(&format!(
                "http://{}/sign-in?link={}\n",
                serving.address,
                link.expose()
            ))?;
            match serving.ended().await {
                None => Ok(Exit::Ok.into()),
                Some(why) => Err(anyhow::anyhow!(why)),
            }
        }
        Err(error) => Err(error.into()),
    };
    report("stopping the servers");
    demo.end().await;
    runtime::telemetry::flush().await;
    served
}

/// A webhook receiver, and its first message.
async fn listen_to(serving: &Serving, stop: CancellationToken) -> anyhow::Result<()> {
    let webhook = Webhook::open(stop, |line| {
        report(&format!("the demo's webhook received {line}"))
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
        name: "visitor".to_owned(),
        grants: vec![Grant::everywhere(Role::Admin)],
        password: None,
    };
    let demo = Principal::system("demo");
    let user = serving.identity.add_user(&demo, visitor).await?;
    Ok(serving.identity.user_link(&demo, &user).await?)
}

/// The token with which the demo's workers hold leases of the built-in service.
async fn workers_token(serving: &Serving) -> anyhow::Result<Secret> {
    let workers = NewToken {
        name: "demo-workers".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: None,
    };
    Ok(serving
        .identity
        .create_token(&Principal::system("demo"), workers)
        .await?)
}

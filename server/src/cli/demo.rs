//! `leasehold demo`: the console on throwaway servers with a workload.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use domain::access::{Grant, Role};
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::output::{print, report};
use crate::clock::Clock;
use crate::config::{
    AccessConfig, HistoryConfig, LISTEN_DEFAULT, LeaseConfig, LogConfig, NotifyConfig, TelemetryConfig,
};
use crate::demo;
use crate::demo::{Demo, Webhook};
use crate::identity::{NewPerson, NewToken, Secret, Who};
use crate::notify::{Kind, NewReceiver};
use crate::serve::{self, ServeError, Serving, Setup};

/// Serve the console on throwaway servers with a workload, to look around.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Starts its own Postgres, Redis and etcd on free ports and removes them at the end.\n\n",
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
    crate::telemetry::start_pushing(&LogConfig::default(), &TelemetryConfig::default())?;
    let stop = crate::shutdown::on_signal()?;
    report("starting Postgres, Redis and etcd, each in a folder of its own");
    let mut demo = demo::start(stop.clone()).await?;
    for server in demo.missing() {
        report(&format!("going on without: {server}"));
    }
    let store = format!("sqlite:{}", demo.folder().join("leasehold.db").display());
    // The demo's own webhook is on this machine.
    let inner = NotifyConfig {
        allow: vec![IpAddr::V4(Ipv4Addr::LOCALHOST).into()],
        ..NotifyConfig::default()
    };
    let setup = |listen| Setup {
        listen,
        store: store.clone().into(),
        lease: LeaseConfig::default(),
        backends: demo.backends(),
        access: AccessConfig::default(),
        history: HistoryConfig::default(),
        notify: inner.clone(),
        clock: Clock::start(),
        stop: stop.clone(),
    };
    let serving = match serve::start(setup(args.listen)).await {
        // Somebody else has the usual port: any free one will do to look around.
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
            print("Ctrl-C ends everything. This link signs you in, once, as an admin of the demo:\n")?;
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
    report("ending the servers");
    demo.end().await;
    crate::telemetry::flush().await;
    served
}

/// A receiver that really receives, and its first message.
async fn listen_to(serving: &Serving, stop: CancellationToken) -> anyhow::Result<()> {
    let webhook = Webhook::open(stop, |said| report(&format!("the demo's webhook heard {said}"))).await?;
    let receiver = NewReceiver {
        name: "demo-webhook".to_owned(),
        kind: Kind::Webhook,
        urls: vec![webhook.url()],
        secret: Some(webhook.secret()),
    };
    let demo = Who::system("demo");
    serving.notifier.add(&demo, receiver).await?;
    serving.notifier.try_out(&demo, "demo-webhook").await?;
    Ok(())
}

/// With rules that fire within two minutes.
async fn watch_over(serving: &Serving) -> anyhow::Result<()> {
    let demo = Who::system("demo");
    for rule in Demo::rules() {
        // What they look at comes with the first locks.
        Box::pin(serving.alerts.save_rule(&demo, rule, None, true)).await?;
    }
    Ok(())
}

/// A person who may try everything, and the link that signs them in.
async fn visitor_link(serving: &Serving) -> anyhow::Result<Secret> {
    let visitor = NewPerson {
        name: "visitor".to_owned(),
        grants: vec![Grant::everywhere(Role::Admin)],
        password: None,
    };
    let demo = Who::system("demo");
    let person = serving.identity.add_person(&demo, visitor).await?;
    Ok(serving.identity.person_link(&demo, &person).await?)
}

/// With which the demo's workers hold leases of the console's own service.
async fn workers_token(serving: &Serving) -> anyhow::Result<Secret> {
    let workers = NewToken {
        name: "demo-workers".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: None,
    };
    Ok(serving
        .identity
        .create_token(&Who::system("demo"), workers)
        .await?)
}

//! The commands of docs/backends/zookeeper.md, run unchanged, and the accounts that they create.

use ::backends::Backend;
use domain::force_release::Release;
use domain::reported::Reported;
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Error, Permission};

use super::watched_zookeeper::{backend, node, zookeeper};
use crate::support::unlocking::unlock;
use crate::support::watching::{owner, scan};

const GUIDE: &str = include_str!("../../../../docs/backends/zookeeper.md");
const PASSWORD: &str = "it's-\"long\"";
const UNLOCK_PASSWORD: &str = "breaks-'glass'";
const APP: &str = "app:app-password";

/// The blocks of shell commands: of the account that watches, and of the one that unlocks.
fn commands() -> [&'static str; 2] {
    let blocks = GUIDE.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    blocks.try_into().expect("the guide has two blocks of commands")
}

async fn run(commands: &str, cluster: &str) {
    let commands = format!("PATH=\"$PATH:/usr/share/zookeeper/bin\"\n{commands}");
    let output = tokio::process::Command::new("sh")
        .args(["-euc", &commands])
        .env("ZOOKEEPER", cluster)
        .env("ZOOKEEPER_ADMIN", APP)
        .env("WATCH_PASSWORD", PASSWORD)
        .env("UNLOCK_PASSWORD", UNLOCK_PASSWORD)
        .output()
        .await
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("Exception"), "{text}");
}

async fn client(cluster: &str, credentials: &str) -> Client {
    let connector = Client::connector().with_auth("digest", credentials.as_bytes());
    connector.connect(cluster).await.unwrap()
}

/// The ACL of the folder, as its lock client copies it to the nodes that it creates.
async fn acl_of(app: &Client, path: &str) -> Vec<Acl> {
    app.get_acl(path).await.unwrap().0
}

#[tokio::test]
async fn documented_accounts_see_and_unlock_and_can_do_little_else() {
    // Lock nodes of a client with an account of its own; each line of the guide's table.
    let zookeeper = zookeeper().await;
    let cluster = zookeeper.cluster();
    let app = client(&cluster, APP).await;
    let own = CreateMode::Persistent.with_acls(Acls::creator_all());
    app.mkdir("/locks/job", &own).await.unwrap();
    let hidden = backend(&cluster, |config, _| {
        config.user = Some("leasehold-watch".to_owned());
        config.password = Some(PASSWORD.to_owned().into());
    });
    let error = scan(&hidden).await.unwrap_err();
    assert!(
        error.to_string().contains("ACL of /locks") && error.remedy().contains("setAcl"),
        "{error}"
    );
    run(commands()[0], &cluster).await;
    run(commands()[1], &cluster).await;
    let acl = acl_of(&app, "/locks/job").await;
    let joining = CreateMode::EphemeralSequential.with_acls(Acls::new(&acl));
    app.create("/locks/job/lock-", b"w-1", &joining).await.unwrap();
    app.create("/locks/job/lock-", b"w-2", &joining).await.unwrap();
    let watcher = backend(&cluster, |config, zookeeper| {
        config.user = Some("leasehold-watch".to_owned());
        config.password = Some(PASSWORD.to_owned().into());
        zookeeper.unlock_user = Some("leasehold-unlock".to_owned());
        zookeeper.unlock_password = Some(UNLOCK_PASSWORD.to_owned().into());
    });
    let seen = scan(&watcher).await.unwrap();
    assert!(seen.is_whole());
    assert_eq!(owner(seen.lock("/locks/job")), "w-1");
    let rights = watcher.probe().await.unwrap().rights;
    assert!(
        rights
            .iter()
            .all(|right| right.allowed == Reported::Value(right.wanted)),
        "{rights:?}"
    );
    let (source, resource) = node("/locks/job");
    assert_eq!(unlock(&watcher, &source, &resource).await, Release::Released);
    assert_eq!(owner(scan(&watcher).await.unwrap().lock("/locks/job")), "w-2");
    denies(&client(&cluster, &format!("leasehold-watch:{PASSWORD}")).await).await;
    powerless(&cluster).await;
}

/// Requests that ZooKeeper refuses to the watching account, according to the guide.
async fn denies(watch: &Client) {
    let any = CreateMode::Persistent.with_acls(Acls::anyone_all());
    assert_eq!(
        watch.create("/locks/job/x", b"", &any).await.unwrap_err(),
        Error::NoAuth
    );
    let contender = watch.list_children("/locks/job").await.unwrap().remove(0);
    let contender = format!("/locks/job/{contender}");
    assert_eq!(watch.delete(&contender, None).await.unwrap_err(), Error::NoAuth);
    assert_eq!(
        watch.set_data(&contender, b"x", None).await.unwrap_err(),
        Error::NoAuth
    );
    let all = Acl::new(Permission::ALL, AuthId::new("world", "anyone"));
    assert_eq!(
        watch.set_acl("/locks", &[all], None).await.unwrap_err(),
        Error::NoAuth
    );
    assert!(watch.check_stat(&contender).await.unwrap().is_some());
}

/// The watching account as the unlocking one: refused with the ACL to set, and nothing is left in the queue.
async fn powerless(cluster: &str) {
    let powerless = backend(cluster, |config, zookeeper| {
        config.user = Some("leasehold-watch".to_owned());
        config.password = Some(PASSWORD.to_owned().into());
        zookeeper.unlock_user = Some("leasehold-watch".to_owned());
        zookeeper.unlock_password = Some(PASSWORD.to_owned().into());
    });
    let (source, resource) = node("/locks/job");
    let answer = unlock(&powerless, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { remedy, .. } if remedy.contains("setAcl /locks/job") && remedy.contains(":cdr")),
        "{answer:?}"
    );
    let seen = scan(&powerless).await.unwrap();
    assert_eq!(seen.lock("/locks/job").waiter_count, Reported::Value(0));
}

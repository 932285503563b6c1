//! A cycle of three systems with their real clients: an advisory lock of Postgres, an election of etcd's `concurrency`, a
//! lock of kazoo in ZooKeeper.

use std::process::Stdio;

use ::testkit::{
    Etcd, EtcdOptions, Postgres, PostgresOptions, Throwaway, Zookeeper, ZookeeperOptions, eventually,
};
use domain::access::Role;
use serde_json::Value;
use tokio::process::Child;

use super::{admin, advisory, cycle, deadlocked, session, wait_for_advisory};
use crate::etcd_adapter::watched_etcd::etcdctl;
use crate::support::lock_client::LockClient;
use crate::support::{TestServer, on};

const RULE: &str = r#"
[[identity]]
name = "workers"
[[identity.match]]
backend = "orders-db"
field = "application_name"
template = "app-{worker}"
[[identity.match]]
backend = "coord"
field = "owner"
template = "{worker}"
[[identity.match]]
backend = "zk"
field = "owner"
template = "host/{worker}"
"#;

struct Systems {
    postgres: Postgres,
    etcd: Etcd,
    zookeeper: Zookeeper,
}

/// End with this value.
struct Workers {
    _kazoo: [LockClient; 2],
    _etcdctl: [Child; 2],
    _holder: sqlx::PgConnection,
}

impl Systems {
    async fn start() -> Self {
        let postgres = PostgresOptions {
            fast: true,
            ..Default::default()
        };
        let etcd = EtcdOptions {
            fast: true,
            ..EtcdOptions::default()
        };
        Self {
            postgres: Throwaway::postgres(postgres).await.unwrap(),
            etcd: Throwaway::etcd(etcd).await.unwrap(),
            zookeeper: Throwaway::zookeeper(ZookeeperOptions::default()).await.unwrap(),
        }
    }

    fn toml(&self, rules: &str) -> String {
        format!(
            "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{}\"\npoll_interval = \"1s\"\n\
             [[backend]]\nname = \"coord\"\nkind = \"etcd\"\nendpoints = [\"{}\"]\npoll_interval = \"1s\"\n\
             [[backend]]\nname = \"zk\"\nkind = \"zookeeper\"\nconnect = \"{}\"\npaths = [\"/locks\"]\n\
             poll_interval = \"1s\"\n{rules}",
            self.postgres.superuser_url(),
            self.etcd.endpoint(),
            self.zookeeper.cluster()
        )
    }

    /// w1 waits in etcd for w2, w2 in ZooKeeper for w3, w3 in Postgres for w1.
    async fn deadlock(&self) -> Workers {
        let mut w1 = session(&self.postgres, "app-w1").await;
        advisory(&mut w1, 42).await;
        drop(wait_for_advisory(session(&self.postgres, "app-w3").await, 42));
        let cluster = self.zookeeper.cluster();
        let kazoo = |worker| LockClient::start("kazoo_lock.py", &[&cluster, "Lock", "/locks/index", worker]);
        let mut w3 = kazoo("host/w3");
        assert_eq!(w3.line().await, "held");
        let elect = |worker| {
            let mut command = etcdctl(&self.etcd.endpoint());
            command
                .args(["elect", "/locks/leader", worker])
                .stdin(Stdio::piped());
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let w2_leads = elect("w2");
        let mut client = etcd_client::Client::connect([self.etcd.endpoint()], None)
            .await
            .unwrap();
        eventually("w2 is the leader", async || {
            let options = etcd_client::GetOptions::new().with_prefix();
            !client
                .get("/locks/leader", Some(options))
                .await
                .unwrap()
                .kvs()
                .is_empty()
        })
        .await;
        Workers {
            _kazoo: [w3, kazoo("host/w2")],
            _etcdctl: [w2_leads, elect("w1")],
            _holder: w1,
        }
    }
}

#[tokio::test]
async fn a_cycle_of_three_systems_is_one_deadlock() {
    // In the API with its reasons, on the page and the overview as a drawing, and as an alert per lock.
    let systems = Systems::start().await;
    let server = TestServer::builder()
        .config(&systems.toml(RULE))
        .operator()
        .start()
        .await;
    let admin = admin(&server).await;
    let _workers = systems.deadlock().await;
    let page = deadlocked(&server, &admin).await;
    let key = "advisory:postgres:42";
    assert_eq!(
        cycle(&page),
        [
            "w1 /locks/leader w2",
            "w2 /locks/index w3",
            &format!("w3 {key} w1")
        ]
    );
    assert_eq!(page["title"], "One deadlock across 3 systems blocks 3 owners");
    let hops = page["deadlocks"][0]["cycle"].as_array().unwrap();
    for hop in hops {
        let joined = &hop["joined"];
        assert_eq!(joined["rule"], "workers", "{hop}");
        assert_eq!(joined["values"]["worker"], hop["owner"], "{hop}");
        assert!(
            hop["wait"]["ageMs"].is_i64() && hop["wait"]["trust"] == "current",
            "{hop}"
        );
    }
    assert!(page.to_string().contains("pg_blocking_pids") && page.to_string().contains("application_name"));
    let freed = &page["deadlocks"][0]["releases"][0]["freedOwners"];
    assert_eq!(freed, 3);
    for path in ["/waits", "/"] {
        let (status, html) = server.as_user(&admin).text(path).await;
        assert_eq!(status, 200);
        assert!(
            html.contains("class=\"wg wgw\"") && html.contains("w3 waits on orders-db for"),
            "{path}"
        );
    }
    eventually("an alert for each lock of the cycle", async || {
        let (_, alerts) = server.as_user(&admin).get("/v1/alerts").await;
        let firing = |alert: &&Value| alert["rule"] == "deadlock" && alert["state"] == "firing";
        let all: Vec<&Value> = alerts["alerts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(firing)
            .collect();
        let has_lock = |name: &&str| all.iter().any(|alert| alert.to_string().contains(name));
        [key, "/locks/leader", "/locks/index"].iter().all(has_lock)
    })
    .await;
    scoped_readers_see_their_part(&server).await;
}

/// One of three locks in scope: the others are one unnamed lock, on the page too.
async fn scoped_readers_see_their_part(server: &TestServer) {
    let reader = server
        .token("reader", on(Role::Viewer, None, Some("/locks/leader")))
        .await;
    let (_, page) = server.as_user(&reader).get("/v1/waits").await;
    assert_eq!(cycle(&page), ["w1 /locks/leader w2", "w2 null w1"]);
    assert_eq!(page["deadlocks"][0]["isPartlyHidden"], true);
    let (_, html) = server.as_user(&reader).text("/waits").await;
    assert!(html.contains("another lock out of your scope"));
    for foreign in ["w3", "advisory", "/locks/index", "app-w1", "host/"] {
        assert!(!page.to_string().contains(foreign), "{foreign} in {page}");
        assert!(!html.contains(foreign), "{foreign} on the page");
    }
}

#[tokio::test]
async fn without_a_rule_three_systems_have_no_deadlock() {
    // The same waits, and a rule that names another backend in place of etcd.
    let systems = Systems::start().await;
    let other = RULE.replace("\"coord\"", "\"builtin\"");
    let server = TestServer::builder()
        .config(&systems.toml(&other))
        .operator()
        .start()
        .await;
    let admin = admin(&server).await;
    let _workers = systems.deadlock().await;
    let mut last = Value::Null;
    eventually("all three waits", async || {
        last = server.as_user(&admin).get("/v1/waits").await.1;
        last["waitsTotal"] == 3
    })
    .await;
    assert_eq!(last["deadlocksTotal"], 0, "{last}");
}

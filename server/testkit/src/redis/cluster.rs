//! A throwaway Redis Cluster: masters without replicas, made by `redis-cli --cluster create`.

use std::{path::PathBuf, process::Output, time::Duration};

use tokio::{process::Command, time::sleep};

use super::{INSTALL, Redis, RedisOptions, WHAT};
use crate::{StartError, binaries};

/// A running cluster. Each node has the faults of a server of its own.
#[derive(Debug)]
pub struct RedisCluster {
    pub nodes: Vec<Redis>,
    cli: PathBuf,
}

/// Gossip makes the cluster known to all nodes within a second or two.
const STATE_POLL: Duration = Duration::from_millis(50);
const STATE_POLLS_MAX: u32 = 1_200;

impl RedisCluster {
    pub(crate) async fn start(masters: usize, mut options: RedisOptions) -> Result<Self, StartError> {
        let cli = binaries::find("redis-cli", INSTALL)?;
        options.config.extend(
            [
                "cluster-enabled yes",
                "cluster-config-file nodes.conf",
                "cluster-node-timeout 1000",
            ]
            .map(str::to_owned),
        );
        let mut nodes = Vec::with_capacity(masters);
        for _ in 0..masters {
            nodes.push(Redis::start(options.clone()).await?);
        }
        let cluster = Self { nodes, cli };
        let mut args = vec!["--cluster".to_owned(), "create".to_owned()];
        args.extend(cluster.nodes.iter().map(address));
        args.extend(["--cluster-replicas", "0", "--cluster-yes"].map(str::to_owned));
        cluster.run_cli(&args).await?;
        for node in &cluster.nodes {
            cluster.wait_until_ok(node).await?;
        }
        Ok(cluster)
    }

    /// Addresses of all nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// Hands over this many slots from one node to another, by their positions, with the keys in them.
    ///
    /// # Errors
    /// `redis-cli` fails.
    pub async fn move_slots(&self, from: usize, to: usize, slots: u32) -> Result<(), StartError> {
        let ids = [self.id(from).await?, self.id(to).await?];
        let first = self.nodes.first().map(address).unwrap_or_default();
        let slots = slots.to_string();
        let [from, to] = &ids;
        let args = [
            "--cluster",
            "reshard",
            &first,
            "--cluster-from",
            from,
            "--cluster-to",
            to,
            "--cluster-slots",
            &slots,
            "--cluster-yes",
            // Small steps: a slot is in the middle of its move for longer.
            "--cluster-pipeline",
            "1",
        ];
        self.run_cli(&args.map(str::to_owned)).await.map(drop)
    }

    async fn id(&self, node: usize) -> Result<String, StartError> {
        let port = self.nodes.get(node).map(Redis::port).unwrap_or_default();
        let args = [
            "-p".to_owned(),
            port.to_string(),
            "cluster".to_owned(),
            "myid".to_owned(),
        ];
        let output = self.run_cli(&args).await?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    async fn wait_until_ok(&self, node: &Redis) -> Result<(), StartError> {
        let args = [
            "-p".to_owned(),
            node.port().to_string(),
            "cluster".to_owned(),
            "info".to_owned(),
        ];
        let mut last = String::new();
        for _ in 0..STATE_POLLS_MAX {
            let output = self.run_cli(&args).await?;
            last = String::from_utf8_lossy(&output.stdout).into_owned();
            if last.contains("cluster_state:ok") {
                return Ok(());
            }
            sleep(STATE_POLL).await;
        }
        Err(StartError::NotReady {
            what: WHAT,
            waited_s: 60,
            last,
            log: String::new(),
        })
    }

    async fn run_cli(&self, args: &[String]) -> Result<Output, StartError> {
        let output = Command::new(&self.cli)
            .args(args)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|source| StartError::Io {
                what: WHAT,
                doing: "run redis-cli",
                source,
            })?;
        if output.status.success() {
            return Ok(output);
        }
        Err(StartError::Exited {
            what: "redis-cli",
            status: output.status.to_string(),
            log: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }
}

fn address(node: &Redis) -> String {
    format!("127.0.0.1:{}", node.port())
}

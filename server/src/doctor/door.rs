//! How people come in: the address, the site that the binary carries, and the time of day.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::net::TcpStream;

use super::finding::Finding;
use crate::config::Config;
use crate::http::pages::site;
use crate::serve::doors::limits::open_files;

const KNOCK: Duration = Duration::from_secs(2);
/// Below it only root, or a right of its own, may listen.
const ORDINARY_PORT: u16 = 1_024;
/// Each browser and each waiting client is an open file.
const FILES_MIN: u64 = 4_096;

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = vec![listening(config).await];
    if config.listen.port() > 0
        && config.listen.port() < ORDINARY_PORT
        && !rustix::process::geteuid().is_root()
    {
        findings.push(Finding::warning(
            "listen",
            format!("port {} is for root, and this user is not", config.listen.port()),
            "AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit, or a port from 1024 up behind a proxy",
        ));
    }
    findings.push(embedded());
    findings.push(files());
    findings
}

async fn listening(config: &Config) -> Finding {
    let address = config.listen;
    let said = config.access.explain(address);
    if address.port() == 0 {
        return Finding::ok("listen", format!("{said} Port 0 takes a free one."));
    }
    match tokio::time::timeout(KNOCK, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Finding::ok(
            "listen",
            format!("{said} Something answers there already; it should be Leasehold."),
        ),
        _ => Finding::ok("listen", format!("{said} Nothing listens there yet.")),
    }
}

fn embedded() -> Finding {
    let missing: Vec<&str> = ["pkg/leasehold.js", "pkg/leasehold_bg.wasm", "pkg/leasehold.css"]
        .into_iter()
        .filter(|file| !site::holds(file))
        .collect();
    if missing.is_empty() {
        return Finding::ok("site", "the pages' style and script are in the binary");
    }
    Finding::fault(
        "site",
        format!("the binary was built without {}", missing.join(", ")),
        "make build",
    )
}

fn files() -> Finding {
    let most = open_files();
    let found = format!("this process may open {most} files");
    match most < FILES_MIN {
        true => Finding::warning(
            "limits",
            found,
            "LimitNOFILE=65536 in the unit, or: ulimit -n 65536",
        ),
        false => Finding::ok("limits", found),
    }
}

/// A clock that stands before this was written is not set.
pub(super) fn time_of_day(now: DateTime<Utc>) -> Option<Finding> {
    const WRITTEN: i64 = 1_767_225_600;
    (now.timestamp() < WRITTEN).then(|| {
        Finding::fault(
            "clock",
            format!("this machine says that it is {}", now.format("%Y-%m-%d")),
            "timedatectl set-ntp true",
        )
    })
}

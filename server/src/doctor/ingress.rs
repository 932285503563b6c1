//! Checks of the listen address, the embedded site and the time of day.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::net::TcpStream;

use super::check_result::Finding;
use crate::http::pages::site;
use crate::serve::listener::limits::open_files;
use config::Config;

const KNOCK: Duration = Duration::from_secs(2);
/// Lower ports need root or a capability.
const ORDINARY_PORT: u16 = 1_024;
/// Each browser and each waiting client uses an open file.
const FILES_MIN: u64 = 4_096;

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = vec![listening(config).await];
    if config.listen.port() > 0
        && config.listen.port() < ORDINARY_PORT
        && !rustix::process::geteuid().is_root()
    {
        findings.push(Finding::warning(
            "listen",
            format!("port {} needs root or CAP_NET_BIND_SERVICE", config.listen.port()),
            "set AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit, or listen on a port from 1024 up behind a proxy",
        ));
    }
    findings.push(embedded());
    findings.push(files());
    findings
}

async fn listening(config: &Config) -> Finding {
    let address = config.listen;
    let summary = config.access.explain(address);
    if address.port() == 0 {
        return Finding::ok("listen", format!("{summary} Port 0 selects a free port."));
    }
    match tokio::time::timeout(KNOCK, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Finding::ok(
            "listen",
            format!("{summary} A server already answers there: check that it is Leasehold."),
        ),
        _ => Finding::ok("listen", format!("{summary} Nothing listens there yet.")),
    }
}

fn embedded() -> Finding {
    let missing: Vec<&str> = ["pkg/leasehold.js", "pkg/leasehold_bg.wasm", "pkg/leasehold.css"]
        .into_iter()
        .filter(|file| !site::holds(file))
        .collect();
    if missing.is_empty() {
        return Finding::ok("site", "the binary contains the pages' styles and scripts");
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
            "set LimitNOFILE=65536 in the unit, or: ulimit -n 65536",
        ),
        false => Finding::ok("limits", found),
    }
}

/// A clock before this date is not set.
pub(super) fn time_of_day(now: DateTime<Utc>) -> Option<Finding> {
    const WRITTEN: i64 = 1_767_225_600;
    (now.timestamp() < WRITTEN).then(|| {
        Finding::fault(
            "clock",
            format!("this machine's clock reads {}", now.format("%Y-%m-%d")),
            "timedatectl set-ntp true",
        )
    })
}

//! 10,000 sign-ins at random names from one source, to fill the table of attempts and the hashing queue.

use super::proxied_server::ProxiedServer;
use crate::support::{PASSWORD, on};
use domain::access::Role;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::StatusCode;

/// What the requirement allows for a sign-in during the flood.
const HONEST_MAX: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_flood_of_names_does_not_delay_honest_sign_ins() {
    // During the flood: a user from elsewhere, and one who signed in from the attacker's own address before.
    let proxied = ProxiedServer::start().await;
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    proxied
        .server
        .add_user("grace", on(Role::Admin, None, None))
        .await;
    proxied.session("203.0.113.1", "grace").await;
    let before = proxied.hashes();
    let flood = futures::stream::iter(0..10_000)
        .map(|number| {
            let proxied = &proxied;
            async move {
                let name = format!("name-{number}");
                let answer = proxied.sign_in("203.0.113.1", &name, "not the password").await;
                answer.status()
            }
        })
        .buffer_unordered(32)
        .filter(|status| std::future::ready(*status != StatusCode::TOO_MANY_REQUESTS))
        .count();
    let honest = async {
        let mut sign_ins = 0;
        for number in 0..20 {
            let elsewhere = format!("198.51.100.{number}");
            for (from, name) in [(elsewhere.as_str(), "ada"), ("203.0.113.1", "grace")] {
                let answer = tokio::time::timeout(HONEST_MAX, proxied.sign_in(from, name, PASSWORD)).await;
                let answer = answer.unwrap_or_else(|_| panic!("{name} from {from} waits too long"));
                assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{name} from {from}");
                sign_ins += 1;
            }
            // The pace of honest users.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sign_ins
    };
    let (evaluated, sign_ins) = futures::join!(flood, honest);
    // Five, and one more for each minute that the flood lasted on a slow machine.
    assert!(evaluated <= 10, "{evaluated}");
    let hashes = proxied.hashes() - before - sign_ins;
    assert_eq!(hashes, evaluated as u64);
}

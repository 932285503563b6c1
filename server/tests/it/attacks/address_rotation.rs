//! One machine with 1,000 addresses: an IPv6 /64 is one source.

use super::proxied_server::{ProxiedServer, count};
use crate::support::{PASSWORD, on};
use domain::access::Role;
use reqwest::StatusCode;

#[tokio::test]
async fn addresses_of_one_ipv6_64_count_as_one_source() {
    // A guess from each of 1,000 addresses, as proxies write them; the neighbouring /64 is not affected.
    let proxied = ProxiedServer::start().await;
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    let before = proxied.hashes();
    let mut statuses = Vec::new();
    for number in 1..=1_000 {
        let address = format!("2001:db8:1:2::{number:x}");
        let from = match number % 3 {
            0 => address,
            1 => format!("[{address}]"),
            _ => format!("[{address}]:{}", 1_024 + number),
        };
        statuses.push(proxied.sign_in(&from, "ada", "not the password").await.status());
    }
    assert_eq!(proxied.hashes() - before, 5);
    assert_eq!(count(&statuses, StatusCode::UNAUTHORIZED), 5);
    assert_eq!(count(&statuses, StatusCode::TOO_MANY_REQUESTS), 995);
    let neighbour = proxied.sign_in("2001:db8:1:3::1", "ada", PASSWORD).await;
    assert_eq!(neighbour.status(), StatusCode::SEE_OTHER);
}

/// Guesses at ada's password, each from an address of its own; returns the number of the first that was refused.
async fn first_refused(proxied: &ProxiedServer) -> Option<u32> {
    let mut refused = None;
    for number in 0..200 {
        let answer = proxied
            .sign_in(&format!("198.51.100.{number}"), "ada", "not the password")
            .await;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            refused = refused.or(Some(number));
        }
    }
    refused
}

#[tokio::test]
async fn addresses_of_a_botnet_share_the_budget_of_a_name() {
    // 200 sources at one name; a user who signed in from their source before still can. The same after a restart, which
    // empties the counts and forgets no such source.
    let mut proxied = ProxiedServer::start().await;
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    proxied.session("203.0.113.1:5678", "ada").await;
    for _ in 0..2 {
        assert_eq!(first_refused(&proxied).await, Some(20));
        let known = proxied.sign_in("203.0.113.1", "ada", PASSWORD).await;
        assert_eq!(known.status(), StatusCode::SEE_OTHER);
        proxied = proxied.restart().await;
    }
}

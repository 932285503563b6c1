//! Guessing passwords over HTTP.

use crate::support::{PASSWORD, TestServer, on};
use std::net::IpAddr;
use std::time::Duration;

use domain::access::Role;
use reqwest::{Client, redirect};

use crate::support::form::Form as _;
use testkit::eventually;

fn from(address: [u8; 4]) -> Client {
    Client::builder()
        .redirect(redirect::Policy::none())
        .local_address(IpAddr::from(address))
        .build()
        .unwrap()
}

async fn guess(server: &TestServer, http: &Client, name: &str, password: &str) -> (u16, String) {
    let form = [("name", name), ("password", password)];
    let answer = http
        .post(server.url("/sign-in"))
        .form(&form)
        .send()
        .await
        .unwrap();
    let status = answer.status().as_u16();
    (status, answer.text().await.unwrap().replace(name, "NAME"))
}

#[tokio::test]
async fn a_thousand_guesses_fail_and_lock_out_no_user() {
    // 500 passwords for an existing user and 500 for an unknown one, from one address, answered alike; meanwhile the
    // user signs in from another address.
    let server = TestServer::builder().redis().start().await;
    server.add_user("ada", on(Role::Viewer, None, None)).await;
    let (attacker, office) = (from([127, 0, 0, 9]), from([127, 0, 0, 1]));
    let (mut wrong, mut waits) = (0, 0);
    for number in 0..500 {
        let password = format!("guess number {number}");
        let known = guess(&server, &attacker, "ada", &password).await;
        let unknown = guess(&server, &attacker, "nobody", &password).await;
        // The seconds that are left may tick over between the two.
        if known.0 == unknown.0 && known.0 == 401 {
            assert_eq!(known.1, unknown.1);
        }
        for status in [known.0, unknown.0] {
            match status {
                401 => wrong += 1,
                429 => waits += 1,
                status => panic!("{status}"),
            }
        }
    }
    // Five for the address, whatever the names, and one more for each minute that a slow machine takes.
    assert!(
        wrong <= 10 && waits >= 990,
        "{wrong} were looked at, {waits} had to wait"
    );
    assert_eq!(guess(&server, &attacker, "ada", PASSWORD).await.0, 429);
    assert_eq!(guess(&server, &office, "ada", PASSWORD).await.0, 303);
    server.serving.clock.advance(Duration::from_secs(60));
    eventually("every wrong password is counted", async || {
        server.rejections_recorded("wrong_password").await == wrong
    })
    .await;
}

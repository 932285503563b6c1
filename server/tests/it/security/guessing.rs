//! Guessing passwords over HTTP.

use std::net::IpAddr;
use std::time::Duration;

use domain::access::Role;
use reqwest::{Client, StatusCode, redirect};

use crate::people::stage::{PASSWORD, Stage, on};
use crate::support::eventually::eventually;
use crate::support::form::Form as _;

fn from(address: [u8; 4]) -> Client {
    Client::builder()
        .redirect(redirect::Policy::none())
        .local_address(IpAddr::from(address))
        .build()
        .unwrap()
}

async fn guess(stage: &Stage, http: &Client, name: &str, password: &str) -> (StatusCode, String) {
    let form = [("name", name), ("password", password)];
    let answer = http.post(stage.url("/sign-in")).form(&form).send().await.unwrap();
    let status = answer.status();
    (status, answer.text().await.unwrap().replace(name, "NAME"))
}

#[tokio::test]
async fn a_thousand_guesses_get_nowhere_and_keep_nobody_out() {
    // 500 passwords for somebody and 500 for nobody, from one place, answered alike; meanwhile the owner of the name comes
    // from elsewhere and gets in.
    let stage = Stage::start().await;
    stage.person("ada", on(Role::Viewer, None, None)).await;
    let (attacker, office) = (from([127, 0, 0, 9]), from([127, 0, 0, 1]));
    let (mut wrong, mut waits) = (0, 0);
    for number in 0..500 {
        let password = format!("guess number {number}");
        let known = guess(&stage, &attacker, "ada", &password).await;
        let unknown = guess(&stage, &attacker, "nobody", &password).await;
        // The seconds that are left may tick over between the two.
        if known.0 == unknown.0 && known.0 == StatusCode::UNAUTHORIZED {
            assert_eq!(known.1, unknown.1);
        }
        for status in [known.0, unknown.0] {
            match status {
                StatusCode::UNAUTHORIZED => wrong += 1,
                StatusCode::TOO_MANY_REQUESTS => waits += 1,
                status => panic!("{status}"),
            }
        }
    }
    // Five for the address, whatever the names, and one more for each minute that a slow machine takes.
    assert!(
        wrong <= 10 && waits >= 990,
        "{wrong} were looked at, {waits} had to wait"
    );
    assert_eq!(
        guess(&stage, &attacker, "ada", PASSWORD).await.0,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(
        guess(&stage, &office, "ada", PASSWORD).await.0,
        StatusCode::SEE_OTHER
    );
    stage.serving.clock.advance(Duration::from_secs(60));
    eventually("every wrong password is counted", async || {
        stage.counted("wrong_password").await == wrong
    })
    .await;
}

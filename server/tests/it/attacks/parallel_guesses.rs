//! 200 guesses that arrive before the first of them is evaluated.

use super::proxied_server::{ProxiedServer, count};
use crate::support::{PASSWORD, on};
use domain::access::Role;
use std::sync::Arc;

use futures::future::join_all;
use reqwest::{StatusCode, header};

#[tokio::test]
async fn parallel_guesses_share_one_budget() {
    // At one name, then at names that differ, from two sources: of each 200, five are hashed and the rest must wait.
    let proxied = Arc::new(ProxiedServer::start().await);
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    for (source, is_spray) in [("203.0.113.1", false), ("203.0.113.2", true)] {
        let before = proxied.hashes();
        let guesses = (0..200).map(|number| {
            let name = if is_spray {
                format!("ada{number}")
            } else {
                "ada".to_owned()
            };
            let proxied = proxied.clone();
            async move { proxied.sign_in(source, &name, "not the password").await }
        });
        let answers = join_all(guesses).await;
        assert!(proxied.hashes() - before <= 5, "{}", proxied.hashes() - before);
        let statuses: Vec<StatusCode> = answers.iter().map(reqwest::Response::status).collect();
        assert!(count(&statuses, StatusCode::UNAUTHORIZED) <= 5, "{statuses:?}");
        assert!(
            count(&statuses, StatusCode::TOO_MANY_REQUESTS) >= 195,
            "{statuses:?}"
        );
        for answer in answers {
            if answer.status() == StatusCode::TOO_MANY_REQUESTS {
                let retry_after = answer.headers()[header::RETRY_AFTER].to_str().unwrap().to_owned();
                assert!(
                    answer
                        .text()
                        .await
                        .unwrap()
                        .contains(&format!("in {retry_after} s"))
                );
            }
        }
    }
    assert_eq!(
        proxied.sign_in("203.0.113.3", "ada", PASSWORD).await.status(),
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn parallel_sign_ins_of_an_office_all_succeed() {
    // Ten users behind one address at the same moment, with correct passwords: a limit of five
    // failures stops none.
    let proxied = Arc::new(ProxiedServer::start().await);
    for number in 0..10 {
        proxied
            .server
            .add_user(&format!("ada{number}"), on(Role::Admin, None, None))
            .await;
    }
    let sign_ins = (0..10).map(|number| {
        let proxied = proxied.clone();
        async move {
            let name = format!("ada{number}");
            proxied.sign_in("203.0.113.1", &name, PASSWORD).await.status()
        }
    });
    let statuses = join_all(sign_ins).await;
    assert_eq!(count(&statuses, StatusCode::SEE_OTHER), 10, "{statuses:?}");
}

#[tokio::test]
async fn parallel_reauthentications_share_one_budget() {
    // With a stolen session, from 20 addresses: the session's five, and a 429 with the time to wait.
    let proxied = Arc::new(ProxiedServer::start().await);
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    let cookie = proxied.session("203.0.113.1", "ada").await;
    let before = proxied.hashes();
    let guesses = (0..40).map(|number| {
        let (proxied, cookie) = (proxied.clone(), cookie.clone());
        async move {
            let form = [("old", "not the password"), ("password", "another good password")];
            let from = format!("198.51.100.{}", number % 20);
            loop {
                let request = proxied.post(&from, "/settings/password");
                let request = request.header("sec-fetch-site", "same-origin");
                let request = crate::support::form::Form::form(request, &form);
                let answer = request.header(header::COOKIE, &cookie).send().await.unwrap();
                // The queue of hashes was full: nothing was guessed.
                if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
                    return answer;
                }
            }
        }
    });
    let answers = join_all(guesses).await;
    assert!(proxied.hashes() - before <= 5, "{}", proxied.hashes() - before);
    for answer in &answers {
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            assert!(answer.headers().contains_key(header::RETRY_AFTER));
        }
    }
    let statuses: Vec<StatusCode> = answers.iter().map(reqwest::Response::status).collect();
    assert!(
        count(&statuses, StatusCode::TOO_MANY_REQUESTS) >= 35,
        "{statuses:?}"
    );
}

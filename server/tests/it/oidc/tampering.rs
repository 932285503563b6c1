//! Answers that were tampered with: in transit, at the provider, or by delivery to the wrong browser.

use futures::future::join_all;
use reqwest::{Response, StatusCode, Url};

use super::provider::Lie;
use super::provider_sign_in::{Back, ProviderSignIn, cookies};

/// No session, the sign-in page with a remedy, and an audit entry with the reason.
async fn refused(flow: &ProviderSignIn, answer: Response, why: &str) {
    let set = cookies(&answer);
    assert!(
        set.iter().all(|cookie| !cookie.contains("lhs_")),
        "{why}: {set:?}"
    );
    let status = answer.status();
    let page = answer.text().await.unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}: {page}");
    assert!(
        page.contains("was rejected") && page.contains("name=\"password\""),
        "{why}: {page}"
    );
    // A second answer that is refused for the same reason within the minute is counted, and written when it is over.
    let rows = flow.console.audit_entries().await;
    let is_recorded = rows.iter().any(|row| {
        let after = row.after.as_deref().unwrap_or_default();
        (row.action.as_str(), row.outcome.as_str()) == ("LOGIN", "refused")
            && after.contains(&format!("\"{why}\""))
    });
    assert!(is_recorded, "{why}: {rows:?}");
}

fn with(back: &Back, name: &str, value: Option<&str>) -> Back {
    let mut url = Url::parse(&back.url).unwrap();
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .into_owned()
        .filter(|(key, _)| key != name)
        .collect();
    url.query_pairs_mut().clear().extend_pairs(pairs);
    if let Some(value) = value {
        url.query_pairs_mut().append_pair(name, value);
    }
    Back {
        url: url.into(),
        cookie: back.cookie.clone(),
    }
}

#[tokio::test]
async fn tampered_responses_are_refused_and_recorded() {
    // Thirteen invalid ID tokens, and seven forged redirects; then a valid one is accepted, once.
    let flow = ProviderSignIn::start().await;
    for (lie, why) in [
        (Lie::Nonce, "wrong_nonce"),
        (Lie::Issuer, "wrong_issuer"),
        (Lie::Audience, "wrong_audience"),
        (Lie::AuthorizedParty, "wrong_audience"),
        (Lie::Expired, "expired"),
        (Lie::NotYetValid, "not_yet_valid"),
        (Lie::IssuedInTheFuture, "not_yet_valid"),
        (Lie::AlgorithmNone, "wrong_algorithm"),
        (Lie::PublicKeyAsSecret, "wrong_algorithm"),
        (Lie::OtherKey, "wrong_signature"),
        (Lie::UnknownKey, "unknown_key"),
        (Lie::Payload, "wrong_signature"),
        (Lie::NoSubject, "unreadable"),
    ] {
        flow.provider.lie(lie);
        let back = flow.go("/sign-in/oidc").await;
        refused(&flow, flow.come_back(&back).await, why).await;
    }
    flow.provider.lie(Lie::Nothing);

    let back = flow.go("/sign-in/oidc").await;
    let wrong = flow.come_back(&with(&back, "state", Some("another"))).await;
    refused(&flow, wrong, "wrong_state").await;
    let missing = flow.come_back(&with(&back, "state", None)).await;
    refused(&flow, missing, "wrong_state").await;
    let forged = Back {
        cookie: back.cookie.replacen('.', ".1", 1),
        ..back.clone()
    };
    refused(&flow, flow.come_back(&forged).await, "wrong_cookie").await;
    let no_cookie = Back {
        cookie: "a=b".to_owned(),
        ..back.clone()
    };
    refused(&flow, flow.come_back(&no_cookie).await, "no_cookie").await;
    // Another browser, with the first one's code: its verifier does not match the challenge.
    let theirs = flow.go("/sign-in/oidc").await;
    let code = Url::parse(&back.url).unwrap();
    let code = code
        .query_pairs()
        .find(|(name, _)| name == "code")
        .unwrap()
        .1
        .into_owned();
    refused(
        &flow,
        flow.come_back(&with(&theirs, "code", Some(&code))).await,
        "wrong_code",
    )
    .await;
    let own = flow.go("/sign-in/oidc").await;
    let invented = flow.come_back(&with(&own, "code", Some("0123"))).await;
    refused(&flow, invented, "wrong_code").await;

    let good = flow.go("/sign-in/oidc").await;
    assert_eq!(flow.come_back(&good).await.status(), StatusCode::SEE_OTHER);
    refused(&flow, flow.come_back(&good).await, "spent").await;
    assert_eq!(flow.console.serving.identity().directory().users.len(), 1);
}

#[tokio::test]
async fn a_flow_opens_one_session_whatever_the_provider_redeems() {
    // Eight callbacks at once and one later, with a code that the provider redeems each time.
    let flow = ProviderSignIn::start().await;
    flow.provider.lie(Lie::ReusableCodes);
    let back = flow.go("/sign-in/oidc").await;
    let answers = join_all((0..8).map(|_| flow.come_back(&back))).await;
    let opened = answers
        .iter()
        .filter(|answer| answer.status() == StatusCode::SEE_OTHER);
    assert_eq!(opened.count(), 1);
    refused(&flow, flow.come_back(&back).await, "spent").await;
}

#[tokio::test]
async fn an_unfinished_sign_in_costs_the_store_nothing() {
    // Sign-ins begin while the store accepts no flow. The first of them is finished afterwards.
    let flow = ProviderSignIn::start().await;
    let first = flow.go("/sign-in/oidc").await;
    let store = &flow.console.store;
    store.sql("ALTER TABLE oidc_finished_flows RENAME TO away").await;
    for _ in 1..30 {
        flow.go("/sign-in/oidc").await;
    }
    store.sql("ALTER TABLE away RENAME TO oidc_finished_flows").await;
    assert_eq!(flow.come_back(&first).await.status(), StatusCode::SEE_OTHER);
}

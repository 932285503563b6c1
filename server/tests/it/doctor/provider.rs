//! The identity provider: there, away, another's, without keys, and with another time.

use super::command::{ConfigFolder, report};
use crate::oidc::provider::{CLIENT, Lie, Provider, SECRET};

fn config_for(issuer: &str) -> ConfigFolder {
    ConfigFolder::new(&format!(
        "[oidc]\nissuer = \"{issuer}\"\nclient_id = \"{CLIENT}\"\nclient_secret = \"{SECRET}\"\n\
         [[oidc.role]]\nvalue = \"*\"\nrole = \"viewer\"\n"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_check_equals_a_sign_in_request() {
    // The doctor checks more than an open port: healthy, then another issuer, then no key, then down; the output never
    // has the client secret.
    let (provider, away) = Provider::start().await;
    let sound = config_for(provider.issuer()).doctor().await;
    assert_eq!(sound.code, 0, "{sound:#?}");
    let ok = sound.level("ok").join("\n");
    assert!(
        ok.contains("serves its discovery document and 1 key for signatures"),
        "{ok}"
    );
    assert!(ok.contains("oidc: its clock is "), "{ok}");

    let named = provider.issuer().replace("127.0.0.1", "localhost");
    config_for(&named).doctor().await.has_one_fault(&[
        "oidc: its issuer is http://127.0.0.1:",
        "→ set issuer = \"http://127.0.0.1:",
    ]);
    let lost = format!("{}/nowhere", provider.issuer());
    config_for(&lost)
        .doctor()
        .await
        .has_one_fault(&["answers 404", "→ set oidc.issuer"]);

    provider.lie(Lie::NoKeys);
    let keyless = config_for(provider.issuer()).doctor().await;
    keyless.has_one_fault(&[
        "oidc: none of its keys has a supported signature algorithm",
        "→ give the client",
    ]);
    provider.lie(Lie::Nothing);

    drop(away);
    let gone = "http://127.0.0.1:1";
    let gone = config_for(gone).doctor().await;
    gone.has_one_fault(&[
        "oidc: ",
        "→ curl -f http://127.0.0.1:1/.well-known/openid-configuration",
    ]);
    assert!(!format!("{sound:?}{keyless:?}{gone:?}").contains(SECRET));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_offset_that_breaks_sign_in_is_reported() {
    // Our clock is an hour ahead of the provider's.
    let (provider, _away) = Provider::start().await;
    let config = config_for(provider.issuer());
    let mut command = config.command("faketime");
    let doctor = [
        "-f",
        "+3600s",
        env!("CARGO_BIN_EXE_leasehold"),
        "doctor",
        "--json",
    ];
    command.args(doctor);
    command
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    let report = report(command).await;
    let faults = report.level("fault");
    let found = faults
        .iter()
        .find(|fault| fault.starts_with("oidc: its clock is 3"));
    let found = found.unwrap_or_else(|| panic!("{report:#?}"));
    assert!(
        found.contains("behind this server's") && found.contains("→ timedatectl set-ntp true"),
        "{found}"
    );
}

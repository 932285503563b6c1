//! A token on its way: plain HTTP to another machine, and a proxy that the environment names.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::time::Duration;

/// An address of the documentation block: nothing answers there.
const ELSEWHERE: &str = "http://192.0.2.1:9";

fn leasehold(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args).current_dir(folder.path()).env_clear();
    command.envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn a_token_is_not_sent_over_plain_http_to_another_host() {
    // Every command that calls a server; a name, an address, and a token of the environment.
    let export = ["rules", "export"];
    let locks = ["locks"];
    let unlock = [
        "unlock",
        "db",
        "jobs/1",
        "--reason",
        "stuck since 03:00",
        "--confirm-resource",
        "jobs/1",
    ];
    let commands: [&[&str]; 3] = [&export, &locks, &unlock];
    for command in commands {
        for server in [ELSEWHERE, "http://locks.example.com"] {
            let args = [command, &["--server", server]].concat();
            let printed = leasehold(&args, &[("LEASEHOLD_TOKEN", "lht_canary")]);
            let text = String::from_utf8_lossy(&printed.stderr);
            assert_eq!(printed.status.code(), Some(2), "{args:?}: {text}");
            assert!(
                text.contains("--insecure-http") && !text.contains("canary"),
                "{text}"
            );
        }
    }
    let run = [
        "run",
        "--resource",
        "r",
        "--ttl",
        "5s",
        "--server",
        ELSEWHERE,
        "--token",
        "lht_canary",
        "--",
        "true",
    ];
    let printed = leasehold(&run, &[]);
    let text = String::from_utf8_lossy(&printed.stderr);
    assert_eq!(printed.status.code(), Some(2), "{text}");
    assert!(text.contains("--insecure-http"), "{text}");
}

#[test]
fn proxies_of_the_environment_are_used_only_if_configured() {
    // A proxy that stores its input: nothing without the flag, the token with both flags.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let (came, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in proxy.incoming() {
            let mut bytes = vec![0; 4_096];
            let read = stream.unwrap().read(&mut bytes).unwrap_or(0);
            came.send(String::from_utf8_lossy(&bytes[..read]).into_owned())
                .unwrap();
        }
    });
    let variables = [
        ("HTTP_PROXY", address.as_str()),
        ("http_proxy", &address),
        ("ALL_PROXY", &address),
    ];
    let args = [
        "locks",
        "--server",
        ELSEWHERE,
        "--token",
        "lht_canary",
        "--insecure-http",
    ];
    let printed = leasehold(&args, &variables);
    assert_eq!(
        printed.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&printed.stderr)
    );
    assert!(heard.try_recv().is_err(), "the proxy was asked");
    let with_proxy = [&args[..], &["--use-proxy"]].concat();
    leasehold(&with_proxy, &variables);
    let request = heard.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(
        request.contains("192.0.2.1") && request.contains("lht_canary"),
        "{request}"
    );
}

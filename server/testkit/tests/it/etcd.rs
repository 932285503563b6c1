//! The throwaway etcd.

use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, TlsOptions};
use leasehold_testkit::{Etcd, EtcdOptions, StartError, Throwaway};

use leasehold_testkit::{Certs, hangs};

async fn fast() -> Etcd {
    Throwaway::etcd(EtcdOptions {
        fast: true,
        ..Default::default()
    })
    .await
    .unwrap()
}

async fn connect(etcd: &Etcd) -> Client {
    Client::connect([etcd.endpoint()], None).await.unwrap()
}

#[tokio::test]
async fn keys_and_leases_survive_a_kill() {
    // etcd syncs before it answers; the same ports answer again.
    let etcd = fast().await;
    let mut client = connect(&etcd).await;
    let lease = client.lease_grant(60, None).await.unwrap().id();
    client.put("/locks/a", "v", None).await.unwrap();
    etcd.kill().await.unwrap();
    etcd.restart().await.unwrap();
    let mut client = connect(&etcd).await;
    let got = client.get("/locks/a", None).await.unwrap();
    assert_eq!(got.kvs()[0].value(), b"v");
    let left = client.lease_time_to_live(lease, None).await.unwrap().ttl();
    assert!(left > 0, "{left}");
}

#[tokio::test]
async fn a_paused_server_answers_nothing_until_it_is_resumed() {
    // One process, many threads: SIGSTOP stops them all.
    let etcd = fast().await;
    let mut client = connect(&etcd).await;
    etcd.pause().await.unwrap();
    assert!(hangs(Duration::from_millis(200), client.get("/a", None)).await);
    etcd.resume().await.unwrap();
    client.get("/a", None).await.unwrap();
    etcd.stop().await.unwrap();
    assert_eq!(etcd.pid(), None);
}

#[tokio::test]
async fn tls_requires_a_client_certificate_if_configured() {
    // The plain endpoint stays open too.
    let certs = Certs::make();
    let etcd = Throwaway::etcd(EtcdOptions {
        fast: true,
        tls: Some(certs.mutual()),
        ..Default::default()
    })
    .await
    .unwrap();
    let read = |path| std::fs::read(path).unwrap();
    let authority = TlsOptions::new().ca_certificate(Certificate::from_pem(read(certs.ca())));
    let identity = etcd_client::Identity::from_pem(read(certs.client_cert()), read(certs.client_key()));
    let get = async |tls: TlsOptions| {
        let options = ConnectOptions::new().with_tls(tls);
        Client::connect([etcd.tls_endpoint().unwrap()], Some(options))
            .await?
            .get("/a", None)
            .await
    };
    get(authority.clone().identity(identity)).await.unwrap();
    assert!(get(authority).await.is_err());
    connect(&etcd).await.get("/a", None).await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    // A later flag overrides ours, so each attempt meets the same port.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let args = vec![format!(
        "--listen-client-urls=http://{}",
        taken.local_addr().unwrap()
    )];
    let error = Throwaway::etcd(EtcdOptions {
        args,
        ..Default::default()
    })
    .await
    .unwrap_err();
    assert!(matches!(error, StartError::PortTaken { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_are_cut_off_commit_nothing_until_the_links_heal() {
    let options = EtcdOptions {
        fast: true,
        has_links: true,
        ..EtcdOptions::default()
    };
    let etcd = Throwaway::etcd_cluster(3, options).await.unwrap();
    let put = async |member, value| {
        etcd.ctl(&[member], &["--command-timeout=2s", "put", "/k", value])
            .await
    };
    let leader = etcd.leader().await.unwrap();
    let others: Vec<usize> = (0..3).filter(|member| *member != leader).collect();
    put(leader, "before").await.unwrap();
    etcd.links()
        .unwrap()
        .split(&[0, 1, 2].map(|member| usize::from(member == leader)));
    assert_ne!(etcd.leader_among(&others).await.unwrap(), leader);
    put(others[0], "meanwhile").await.unwrap();
    assert!(put(leader, "lost").await.is_err());
    etcd.links().unwrap().heal();
    etcd.leader().await.unwrap();
    let read = etcd.ctl(&[leader], &["get", "/k", "--print-value-only"]).await;
    assert_eq!(read.unwrap(), "meanwhile\n");
    etcd.links().unwrap().split(&[0, 1, 2]);
    for member in 0..3 {
        assert!(put(member, "without a majority").await.is_err(), "{member}");
    }
}

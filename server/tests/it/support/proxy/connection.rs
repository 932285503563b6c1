//! One connection through the proxy: two directions, each controlled by the link.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    time::sleep,
};

use super::{Link, link::Way, traffic::Traffic};

const CHUNK_BYTES: usize = 16 * 1024;

/// One client's connection, until both sides have ended it or the link is cut.
pub(super) async fn carry(
    mut client: TcpStream,
    target: SocketAddr,
    link: watch::Sender<Link>,
    traffic: Arc<Traffic>,
) {
    let mut cut = link.subscribe();
    let server = tokio::select! {
        server = dial(target, link.subscribe()) => server,
        _ = cut.wait_for(|link| *link == Link::Cut) => Err(io::ErrorKind::ConnectionReset.into()),
    };
    let Ok(mut server) = server else {
        let _ = client.set_zero_linger();
        traffic.reset.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let ended = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let there = pump(
            &mut from_client,
            &mut to_server,
            (Way::ToServer, &link),
            &traffic.to_server_bytes,
        );
        let back = pump(
            &mut from_server,
            &mut to_client,
            (Way::ToClient, &link),
            &traffic.to_client_bytes,
        );
        tokio::select! {
            ended = async { tokio::try_join!(there, back) } => ended.map(drop),
            _ = cut.wait_for(|link| *link == Link::Cut) => Err(io::ErrorKind::ConnectionReset.into()),
        }
    };
    if ended.is_err() {
        // A reset, not an orderly end: a broken link or a killed peer has the same effect.
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
        traffic.reset.fetch_add(1, Ordering::Relaxed);
    }
}

/// A held link does not reach the server: the connection is made when requests get through again.
async fn dial(target: SocketAddr, mut link: watch::Receiver<Link>) -> io::Result<TcpStream> {
    carried(&mut link, Way::ToServer).await?;
    let server = TcpStream::connect(target).await?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// Carries one direction until its end, which it passes on.
async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    (way, state): (Way, &watch::Sender<Link>),
    carried_bytes: &AtomicU64,
) -> io::Result<()> {
    let mut link = state.subscribe();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        carried(&mut link, way).await?;
        let len = tokio::select! {
            biased;
            _ = link.changed() => continue,
            len = from.read(&mut chunk) => len?,
        };
        if let Link::Slow(delay) = carried(&mut link, way).await? {
            // The delay of a slow link.
            sleep(delay).await;
            // The link may have changed in the meantime.
            carried(&mut link, way).await?;
        }
        if len == 0 {
            return to.shutdown().await;
        }
        if matches!(way, Way::ToServer) {
            // Before the server can answer it.
            state.send_if_modified(Link::count_request);
        }
        to.write_all(&chunk[..len]).await?;
        carried_bytes.fetch_add(u64::try_from(len).unwrap_or_default(), Ordering::Relaxed);
    }
}

/// Waits until the link carries that way.
async fn carried(link: &mut watch::Receiver<Link>, way: Way) -> io::Result<Link> {
    let now = link.wait_for(|link| link.carries(way)).await;
    now.map(|link| *link)
        .map_err(|_| io::ErrorKind::ConnectionReset.into())
}

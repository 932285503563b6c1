//! TLS with another name than the host's (`server_name`): through a tunnel, or by an IP
//! address.
//!
//! The driver verifies the certificate against the host it connects to. So it connects to a
//! socket file that only this process can open, with `server_name` as its host, and a task
//! relays the bytes to the real host.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::net::{TcpStream, UnixListener};
use tokio_util::sync::{CancellationToken, DropGuard};

use runtime::tasks;

/// Relays one session, the first that is opened with [`Self::options`].
pub(super) struct Relay {
    pub(super) options: PgConnectOptions,
    _folder: TempDir,
    abandoned: DropGuard,
}

impl Relay {
    pub(super) async fn open(options: &PgConnectOptions, server_name: &str) -> Result<Self, std::io::Error> {
        let upstream = TcpStream::connect((options.get_host(), options.get_port())).await?;
        let folder = tempfile::Builder::new()
            .prefix("leasehold-tls-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let listener = UnixListener::bind(folder.path().join(format!(".s.PGSQL.{}", options.get_port())))?;
        let stop = CancellationToken::new();
        let abandoned = stop.clone().drop_guard();
        tasks::spawn("postgres tls relay", stop, relay_session(listener, upstream));
        let options = options.clone().host(server_name).socket(folder.path());
        Ok(Self {
            options,
            _folder: folder,
            abandoned,
        })
    }

    /// The session is open: its end ends the relay. Before that, dropping this does.
    pub(super) fn connected(self) {
        self.abandoned.disarm();
    }
}

async fn relay_session(listener: UnixListener, mut upstream: TcpStream) {
    if let Ok((mut client, _)) = listener.accept().await {
        drop(listener);
        // The end of either side ends the session.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
    }
}

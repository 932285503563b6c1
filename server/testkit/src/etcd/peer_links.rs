//! The connections between the members of a cluster, each through a listener in front of the member that it leads to, so
//! that members can be cut off from each other while their clients still reach all of them.
//!
//! A member names itself in its requests to others (`X-PeerURLs`), so a connection is known by both of its ends. Requests
//! without it, probes, pass only while no member is cut off.

use std::{io, net::Ipv4Addr, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::ports;

const SENDER: &[u8] = b"X-Peerurls: http://127.0.0.1:";
const CHUNK: usize = 16 * 1024;

/// Closed when dropped.
#[derive(Debug)]
pub struct PeerLinks {
    /// The part of the network that each member is in.
    parts: watch::Sender<Vec<usize>>,
    /// Of each member.
    ports: Arc<[u16]>,
    acceptors: Vec<JoinHandle<()>>,
}

impl PeerLinks {
    /// In front of these ports of the members.
    pub(super) async fn start(peer_ports: &[u16]) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for _ in peer_ports {
            listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free_port()?)).await?);
        }
        let addresses: io::Result<Vec<_>> = listeners.iter().map(TcpListener::local_addr).collect();
        let ports: Arc<[u16]> = addresses?.iter().map(std::net::SocketAddr::port).collect();
        let parts = watch::Sender::new(vec![0; peer_ports.len()]);
        let mut acceptors = Vec::new();
        for (member, (listener, peer_port)) in listeners.into_iter().zip(peer_ports).enumerate() {
            let end = MemberEnd {
                member,
                peer_port: *peer_port,
                ports: ports.clone(),
                parts: parts.subscribe(),
            };
            #[expect(
                clippy::disallowed_methods,
                reason = "a task of a throwaway server, aborted when it is dropped"
            )]
            acceptors.push(tokio::spawn(accept(listener, end)));
        }
        Ok(Self {
            parts,
            ports,
            acceptors,
        })
    }

    /// Where the others reach a member.
    pub(super) fn port(&self, member: usize) -> u16 {
        self.ports[member]
    }

    /// Cuts every connection between members of different parts; `parts` has the part of each member.
    pub fn split(&self, parts: &[usize]) {
        assert_eq!(parts.len(), self.ports.len(), "one part for each member");
        self.parts.send_replace(parts.to_vec());
    }

    /// All members reach each other again.
    pub fn heal(&self) {
        self.split(&vec![0; self.ports.len()]);
    }
}

impl Drop for PeerLinks {
    fn drop(&mut self) {
        for acceptor in &self.acceptors {
            acceptor.abort();
        }
    }
}

/// The end of connections to one member.
#[derive(Clone)]
struct MemberEnd {
    member: usize,
    peer_port: u16,
    /// Of the listeners, by which the sender of a request is known.
    ports: Arc<[u16]>,
    parts: watch::Receiver<Vec<usize>>,
}

async fn accept(listener: TcpListener, end: MemberEnd) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // An error concerns one connection, which has ended.
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                connections.spawn(proxy_connection(client, end.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries one connection until an end closes it, or the network is split between its ends.
async fn proxy_connection(mut client: TcpStream, mut end: MemberEnd) -> io::Result<()> {
    let mut member = TcpStream::connect((Ipv4Addr::LOCALHOST, end.peer_port)).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_member, mut to_member) = member.split();
    let (mut request, mut answer) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut sender = None;
    loop {
        tokio::select! {
            changed = end.parts.changed() => if changed.is_err() {
                return Ok(());
            },
            read = from_client.read(&mut request) => {
                let read = read?;
                sender = end.sender(&request[..read]).or(sender);
                if read == 0 || !end.is_reached_from(sender) {
                    return Ok(());
                }
                to_member.write_all(&request[..read]).await?;
            }
            read = from_member.read(&mut answer) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                to_client.write_all(&answer[..read]).await?;
            }
        }
        if !end.is_reached_from(sender) {
            return Ok(());
        }
    }
}

impl MemberEnd {
    /// The member that sent this request.
    fn sender(&self, request: &[u8]) -> Option<usize> {
        let port_start = request
            .windows(SENDER.len())
            .position(|window| window == SENDER)?
            + SENDER.len();
        let digits = request[port_start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let port = digits.fold(0_u32, |port, digit| {
            port.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        });
        self.ports.iter().position(|known| u32::from(*known) == port)
    }

    fn is_reached_from(&self, sender: Option<usize>) -> bool {
        let parts = self.parts.borrow();
        match sender {
            Some(sender) => parts[sender] == parts[self.member],
            None => parts.iter().all(|part| *part == parts[0]),
        }
    }
}

//! The protected resource: for each lock two registers, one that compares fencing tokens and one that does not.
//!
//! It runs in the test's own process and records every request in the order of its decisions. The register that compares refuses
//! a token below the highest that it has seen, on reads too: after a read by a newer holder, a write by an older one must be
//! refused.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::history::{Access, EventKind};

/// One line of JSON on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) client: u32,
    pub(super) resource: String,
    pub(super) token: u64,
    pub(super) fenced: bool,
    /// None: a read; a version: a write of the next one.
    pub(super) base: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) accepted: bool,
    pub(super) version: u64,
}

#[derive(Default)]
struct Cells {
    cells: HashMap<(String, bool), Cell>,
    /// Read without comparison and not written yet, by client, resource and token.
    open: Vec<(u32, String, u64)>,
    log: Vec<Access>,
}

#[derive(Default)]
struct Cell {
    version: u64,
    highest: u64,
}

pub(super) struct Register {
    pub(super) address: SocketAddr,
    cells: Arc<Mutex<Cells>>,
    acceptor: JoinHandle<()>,
}

impl Register {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let cells: Arc<Mutex<Cells>> = Arc::default();
        let shared = cells.clone();
        let acceptor = super::aside(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                super::aside(answer(stream, shared.clone()));
            }
        });
        Self {
            address,
            cells,
            acceptor,
        }
    }

    pub(super) fn log(&self) -> Vec<Access> {
        self.cells.lock().unwrap().log.clone()
    }

    /// A client in the middle of its critical section: it has read, and will write the next version.
    pub(super) fn section_between_read_and_write(&self) -> Option<(u32, String, u64)> {
        self.cells.lock().unwrap().open.last().cloned()
    }

    pub(super) fn is_open(&self, section: &(u32, String, u64)) -> bool {
        self.cells.lock().unwrap().open.contains(section)
    }

    /// Its client is dead: it will never write.
    pub(super) fn forget(&self, section: &(u32, String, u64)) {
        self.cells.lock().unwrap().open.retain(|other| other != section);
    }

    /// Whether a higher token has written there.
    pub(super) fn overtaken(&self, (_, resource, token): &(u32, String, u64)) -> bool {
        let cells = self.cells.lock().unwrap();
        let later = |access: &&Access| {
            access.resource == *resource
                && access.token > *token
                && matches!(access.kind, EventKind::Write { .. })
        };
        cells.log.iter().rev().any(|access| later(&access))
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn answer(stream: TcpStream, cells: Arc<Mutex<Cells>>) {
    stream.set_nodelay(true).unwrap();
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    // A client that is killed resets the connection.
    while let Ok(Some(line)) = lines.next_line().await {
        let question: Question = serde_json::from_str(&line).unwrap();
        let reply = cells.lock().unwrap().decide(&question);
        let text = format!("{}\n", serde_json::to_string(&reply).unwrap());
        if write.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Cells {
    fn decide(&mut self, question: &Question) -> Reply {
        let cell = self
            .cells
            .entry((question.resource.clone(), question.fenced))
            .or_default();
        let accepted = !question.fenced || question.token >= cell.highest;
        if accepted {
            cell.highest = cell.highest.max(question.token);
            if let Some(base) = question.base {
                cell.version = base + 1;
            }
        }
        let section = (question.client, question.resource.clone(), question.token);
        if !question.fenced {
            match question.base {
                None => self.open.push(section),
                Some(_) => self.open.retain(|other| *other != section),
            }
        }
        self.log.push(Access {
            resource: question.resource.clone(),
            token: question.token,
            fenced: question.fenced,
            kind: question
                .base
                .map_or(EventKind::Read, |base| EventKind::Write { base }),
            accepted,
        });
        Reply {
            accepted,
            version: cell.version,
        }
    }
}

//! Our service over HTTP with keep-alive connections.

use crate::error::BenchError;
use crate::http::{Http, member};
use crate::load::{self, CLIENTS, LoadSpan, LockClient, NAMES, Pace};
use crate::test_server::Served;

struct Ours {
    http: Http,
    /// One per name.
    acquires: Vec<String>,
    path: String,
}

impl LockClient for Ours {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let name = usize::try_from(name).unwrap_or_default();
        let answer = self.http.send(&self.acquires[name]).await?;
        let id = member(answer, "leaseId").ok_or_else(|| BenchError::bad_answer("our server", answer))?;
        self.path.clear();
        self.path.extend(["/v1/locks/", id]);
        let answer = self.http.delete(&self.path).await?;
        if answer.contains(r#""released":true"#) {
            return Ok(());
        }
        Err(BenchError::bad_answer("our server", answer))
    }
}

pub(super) async fn measure(served: Served, span: LoadSpan) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let http = served.connect().await?;
        let acquire = |name| {
            let body = format!(
                r#"{{"resource":"bench:{number}:{name}","ownerId":"worker-{number}","ttlSeconds":30}}"#
            );
            http.written("/v1/locks/acquire", &body)
        };
        clients.push(Ours {
            acquires: (0..NAMES).map(acquire).collect(),
            http,
            path: String::new(),
        });
    }
    let pace = load::run(clients, span).await;
    served.end().await;
    pace
}

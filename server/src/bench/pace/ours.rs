//! Our own service, over HTTP with connections that stay open.

use std::fmt::Write as _;

use crate::bench::error::BenchError;
use crate::bench::http::{Http, member};
use crate::bench::load::{self, CLIENTS, LockClient, Pace, Span};
use crate::bench::served::Served;

struct Ours {
    http: Http,
    number: usize,
    path: String,
}

impl LockClient for Ours {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let number = self.number;
        let body =
            format!(r#"{{"resource":"bench:{number}:{name}","ownerId":"worker-{number}","ttlSeconds":30}}"#);
        let answer = self.http.post("/v1/locks/acquire", &body).await?;
        let id = member(answer, "leaseId").ok_or_else(|| BenchError::answer("our server", answer))?;
        self.path.clear();
        let _ = write!(self.path, "/v1/locks/{id}");
        let answer = self.http.delete(&self.path).await?;
        if answer.contains(r#""released":true"#) {
            return Ok(());
        }
        Err(BenchError::answer("our server", answer))
    }
}

pub(super) async fn measure(served: Served, span: Span) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(Ours {
            http: served.connect().await?,
            number,
            path: String::new(),
        });
    }
    let pace = load::run(clients, span).await;
    served.end().await;
    pace
}

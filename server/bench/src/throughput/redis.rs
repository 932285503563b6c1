//! The peer Redis with a sync before each response. SET NX PX acquires, a compare-and-delete script releases, with
//! one connection per client.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::error::BenchError;
use crate::load::{self, CLIENTS, LoadSpan, LockClient, Pace};
use testkit::Redis;

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

struct Client {
    stream: TcpStream,
    number: usize,
    script: String,
    request: String,
    answer: Vec<u8>,
}

impl Client {
    /// The first line of a response, without its line break.
    async fn call(&mut self, words: &[&str]) -> Result<&str, BenchError> {
        let io = BenchError::io("connection");
        self.request.clear();
        let _ = write!(self.request, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(self.request, "${}\r\n{word}\r\n", word.len());
        }
        self.stream
            .write_all(self.request.as_bytes())
            .await
            .map_err(&io)?;
        self.answer.clear();
        while !self.answer.ends_with(b"\r\n") {
            if self.stream.read_buf(&mut self.answer).await.map_err(&io)? == 0 {
                return Err(BenchError::bad_answer("Redis", "it closed the connection"));
            }
        }
        let text = std::str::from_utf8(&self.answer).unwrap_or_default();
        Ok(text.trim_end())
    }

    async fn expect(&mut self, words: &[&str], expected: &str) -> Result<(), BenchError> {
        let answer = self.call(words).await?;
        if answer == expected {
            return Ok(());
        }
        Err(BenchError::bad_answer("Redis", answer))
    }
}

impl LockClient for Client {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let key = format!("bench:{}:{name}", self.number);
        let owner = format!("worker-{}", self.number);
        self.expect(&["SET", &key, &owner, "NX", "PX", "30000"], "+OK")
            .await?;
        let script = self.script.clone();
        self.expect(&["EVALSHA", &script, "1", &key, &owner], ":1").await
    }
}

pub(super) async fn measure(server: &Redis, span: LoadSpan) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).await;
        let stream = stream.map_err(BenchError::io("connection"))?;
        stream.set_nodelay(true).map_err(BenchError::io("connection"))?;
        let mut client = Client {
            stream,
            number,
            script: String::new(),
            request: String::new(),
            answer: Vec::new(),
        };
        let loaded_script = client.call(&["SCRIPT", "LOAD", COMPARE_AND_DELETE]).await?;
        let hash = loaded_script.lines().nth(1).unwrap_or_default().to_owned();
        client.script = hash;
        clients.push(client);
    }
    load::run(clients, span).await
}

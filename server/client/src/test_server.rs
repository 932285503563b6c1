//! A server for unit tests that gives each answer to one request.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};

pub(crate) struct TestServer {
    pub(crate) address: String,
    /// What was first read of each request.
    requests: Receiver<String>,
}

impl TestServer {
    /// With the status and the body of each answer.
    pub(crate) fn start<const N: usize>(answers: [(&'static str, &'static str); N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4_096];
                let bytes = stream.read(&mut request).unwrap();
                let request = String::from_utf8_lossy(&request[..bytes]).into_owned();
                // The test may not read it.
                let _ = sender.send(request);
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                let answer = format!("{head}{body}");
                // Fails if the client has closed the connection.
                let _ = stream.write_all(answer.as_bytes());
                // Until the client closes the connection.
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            }
        });
        Self { address, requests }
    }

    /// The start of the next request.
    pub(crate) fn next_request(&self) -> String {
        self.requests.recv().unwrap()
    }

    /// The idempotency key of a request.
    pub(crate) fn key_of(request: &str) -> &str {
        let mut lines = request.lines();
        let key = lines.find_map(|line| line.strip_prefix("idempotency-key: "));
        key.unwrap()
    }
}

//! A minimal HTTP/1.1 client on one keep-alive connection. It writes each request at once and parses only the status
//! and length of a response, because it shares the CPU cores with the measured server.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::error::BenchError;

pub(super) struct Http {
    stream: TcpStream,
    request: String,
    answer: Vec<u8>,
    token: String,
}

impl Http {
    pub(super) async fn connect(address: SocketAddr, token: &str) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(BenchError::io("connection"))?;
        stream.set_nodelay(true).map_err(BenchError::io("connection"))?;
        Ok(Self {
            stream,
            request: String::new(),
            answer: Vec::new(),
            token: token.to_owned(),
        })
    }

    /// The body of a 200; any other status is an error.
    pub(super) async fn post(&mut self, path: &str, body: &str) -> Result<&str, BenchError> {
        self.request = self.written(path, body);
        self.call().await
    }

    /// A serialized POST for [`send`](Self::send), reusable.
    pub(super) fn written(&self, path: &str, body: &str) -> String {
        let (length, token) = (body.len(), &self.token);
        format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }

    /// As [`post`](Self::post), for a serialized request.
    pub(super) async fn send(&mut self, request: &str) -> Result<&str, BenchError> {
        self.request.clear();
        self.request.push_str(request);
        self.call().await
    }

    /// As [`send`](Self::send), with an idempotency key.
    pub(super) async fn send_with_key(&mut self, request: &str, key: &str) -> Result<&str, BenchError> {
        let (first, rest) = request.split_once("\r\n").unwrap_or((request, ""));
        self.request.clear();
        self.request
            .extend([first, "\r\nidempotency-key: ", key, "\r\n", rest]);
        self.call().await
    }

    pub(super) async fn delete(&mut self, path: &str) -> Result<&str, BenchError> {
        self.request.clear();
        let parts = [
            "DELETE ",
            path,
            " HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ",
            &self.token,
            "\r\n\r\n",
        ];
        self.request.extend(parts);
        self.call().await
    }

    async fn call(&mut self) -> Result<&str, BenchError> {
        let io = BenchError::io("connection");
        self.stream
            .write_all(self.request.as_bytes())
            .await
            .map_err(&io)?;
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await.map_err(&io)?;
            if let Some(body) = body(&self.answer)? {
                return text(&self.answer[body..]);
            }
            if read == 0 {
                return Err(BenchError::bad_answer("our server", "it closed the connection"));
            }
        }
    }
}

/// Start of the body of a complete response; `None` while incomplete.
fn body(answer: &[u8]) -> Result<Option<usize>, BenchError> {
    // From the end: bodies are shorter than headers, and our JSON has no line breaks.
    let Some(head_end) = answer.windows(4).rposition(|it| it == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = text(&answer[..head_end])?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .and_then(|length| length.parse().ok());
    let Some(length) = length else {
        return Err(BenchError::bad_answer("our server", head));
    };
    let body_start = head_end + 4;
    let is_complete = answer.len() - body_start >= length;
    if is_complete && !head.starts_with("HTTP/1.1 200") {
        return Err(BenchError::bad_answer("our server", text(answer)?));
    }
    Ok(is_complete.then_some(body_start))
}

fn text(bytes: &[u8]) -> Result<&str, BenchError> {
    std::str::from_utf8(bytes).map_err(|_| BenchError::bad_answer("our server", "no UTF-8"))
}

/// A string member without escapes of a JSON object; a JSON parser would cost measured CPU time.
pub(super) fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let value_start = json.find(name)? + name.len();
    let rest = json[value_start..].strip_prefix("\":\"")?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_complete_at_its_content_length() {
        // Byte by byte: incomplete until the last one.
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        for end in 0..answer.len() {
            assert_eq!(body(&answer[..end]).unwrap(), None);
        }
        assert_eq!(body(answer).unwrap(), Some(answer.len() - 5));
        assert!(body(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").is_err());
    }

    #[test]
    fn a_member_is_found_by_its_name() {
        // A response of acquire.
        let json = r#"{"acquired":true,"leaseId":"abc","fencingToken":7}"#;
        assert_eq!(member(json, "leaseId"), Some("abc"));
        assert_eq!(member(json, "fencingToken"), None);
    }
}

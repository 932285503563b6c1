//! A hostile server in the place of a Redis: it refuses each command with a text of its choice.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// Returns its port. It serves until the process ends.
pub(crate) fn hostile_redis(text: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = format!("-ERR {text}\r\n");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4_096];
                while matches!(stream.read(&mut buffer), Ok(1..))
                    && stream.write_all(answer.as_bytes()).is_ok()
                {}
            });
        }
    });
    port
}

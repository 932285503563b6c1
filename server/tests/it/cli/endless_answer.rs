//! Answers without an end, as from an intermediary or a hostile host: a command uses bounded memory and fails.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::{leasehold, run};

/// Answers every request with this status and white space until the client closes the connection.
fn endless_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), status);
        }
    });
    address
}

fn answer(mut stream: TcpStream, status: &str) {
    let _request_bytes = stream.read(&mut [0; 4_096]).unwrap();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    while stream.write_all(&[b' '; 65_536]).is_ok() {}
}

#[test]
fn an_endless_answer_ends_a_command() {
    // A page of locks, a text, a document, and an error.
    let folder = tempfile::tempdir().unwrap();
    let builtin = ["rules", "export", "--builtin", "--format", "toml"];
    let (_, rules, _) = run(leasehold(folder.path()).args(builtin));
    std::fs::write(folder.path().join("rules.toml"), rules).unwrap();
    let too_large = "is not a Leasehold server: the answer is larger than";
    let cases: [(&str, &[&str], &str); 4] = [
        ("200 OK", &["locks"], too_large),
        ("200 OK", &["rules", "export"], too_large),
        ("200 OK", &["rules", "import", "rules.toml"], too_large),
        ("500 Internal Server Error", &["locks"], "answers 500"),
    ];
    for (status, args, expected) in cases {
        let server = endless_server(status);
        let (code, out, err) = run(leasehold(folder.path()).args(args).args(["--server", &server]));
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

//! Asking a person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output::print_error;

pub(super) enum Asked {
    /// Without the end of the line, and otherwise as it was typed.
    Typed(String),
    /// Nobody is there.
    NoTerminal,
    /// The end of the input, or Ctrl-C.
    GivenUp,
}

pub(super) async fn name(question: &str) -> Asked {
    if !io::stdin().is_terminal() {
        return Asked::NoTerminal;
    }
    // Before the question: an answer may come at once.
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else {
        return Asked::NoTerminal;
    };
    print_error(question);
    let (told, typed) = tokio::sync::oneshot::channel();
    // A thread of its own, which the end of the program does not wait for.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Nobody listens any more after Ctrl-C.
        let _ = told.send(read.is_ok_and(|bytes| bytes > 0).then_some(line));
    });
    tokio::select! {
        typed = typed => match typed {
            Ok(Some(line)) => Asked::Typed(line.trim_end_matches(['\n', '\r']).to_owned()),
            Ok(None) | Err(_) => Asked::GivenUp,
        },
        _ = interrupt.recv() => {
            print_error("\n");
            Asked::GivenUp
        }
    }
}

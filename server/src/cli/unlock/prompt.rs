//! Prompts on the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output::print_error;

pub(super) enum PromptResult {
    /// The typed line without its line break.
    Typed(String),
    /// Standard input is not a terminal.
    NoTerminal,
    /// End of input, or Ctrl-C.
    GivenUp,
}

pub(super) async fn name(question: &str) -> PromptResult {
    if !io::stdin().is_terminal() {
        return PromptResult::NoTerminal;
    }
    // Before the prompt: an answer may come immediately.
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else {
        return PromptResult::NoTerminal;
    };
    print_error(question);
    let (sender, input) = tokio::sync::oneshot::channel();
    // A detached thread, which the end of the program does not wait for.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // After Ctrl-C the receiver is gone.
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0).then_some(line));
    });
    tokio::select! {
        input = input => match input {
            Ok(Some(line)) => PromptResult::Typed(line.trim_end_matches(['\n', '\r']).to_owned()),
            Ok(None) | Err(_) => PromptResult::GivenUp,
        },
        _ = interrupt.recv() => {
            print_error("\n");
            PromptResult::GivenUp
        }
    }
}

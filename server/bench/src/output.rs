//! Figures on standard output, progress on standard error. A closed pipe is not a failure.

use std::io::{self, Write as _};

/// # Errors
/// Standard output cannot be written; a closed pipe is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Progress for the terminal. A failure to write it cannot be reported and is ignored.
pub(crate) fn report(message: &str) {
    let _ = writeln!(io::stderr().lock(), "leasehold-bench: {message}");
}

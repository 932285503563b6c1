//! Standard output and standard error. A closed pipe (`leasehold locks | head`) is not a failure.

use std::io::{self, Write};

/// Writes to standard output and flushes it.
///
/// # Errors
/// The output cannot be written.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Writes the complete output of a command.
///
/// # Errors
/// The output cannot be written; a closed pipe is not an error.
pub(super) fn print(text: &str) -> io::Result<()> {
    match write(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes to standard error without the program name. A failure cannot be reported.
pub(super) fn print_error(text: &str) {
    let mut error = io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

/// Writes an escaped message to standard error. A failure cannot be reported.
pub fn report(message: &str) {
    let _ = writeln!(io::stderr().lock(), "leasehold: {message}");
}

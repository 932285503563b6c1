//! Standard output and standard error. A reader that went away (`leasehold locks | head`) is no failure.

use std::io::{self, Write};

/// Writes to standard output, at once.
///
/// # Errors
/// Whatever the output says.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Writes all there is to say.
///
/// # Errors
/// Whatever the output says, except that nobody reads it any more.
pub(super) fn print(text: &str) -> io::Result<()> {
    match write(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes to standard error as it is, without our name in front. There is nobody to tell when that fails.
pub(super) fn print_error(text: &str) {
    let mut error = io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

/// Writes a message for people to standard error. There is nobody to tell when that fails.
pub fn report(message: &str) {
    let _ = writeln!(io::stderr().lock(), "leasehold: {message}");
}

//! Background tasks of a test.

/// Runs it as a task of the test's own: the runtime ends it with the test, and its panic reaches the test through the handle.
#[expect(
    clippy::disallowed_methods,
    reason = "a task of a test: it ends with the test's runtime"
)]
pub(crate) fn aside<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(work)
}

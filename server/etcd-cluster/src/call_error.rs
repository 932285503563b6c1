//! Errors of calls: gRPC status codes, and a text with the cause.

use std::error::Error as StdError;

use etcd_client::Error;

/// gRPC status codes by number: the crate that names them is no direct dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcCode {
    Cancelled,
    Unknown,
    DeadlineExceeded,
    PermissionDenied,
    Internal,
    Unavailable,
    Unauthenticated,
    Other,
}

impl From<i32> for GrpcCode {
    fn from(number: i32) -> Self {
        match number {
            1 => Self::Cancelled,
            2 => Self::Unknown,
            4 => Self::DeadlineExceeded,
            7 => Self::PermissionDenied,
            13 => Self::Internal,
            14 => Self::Unavailable,
            16 => Self::Unauthenticated,
            _ => Self::Other,
        }
    }
}

/// The message and its innermost cause, which has the detail ("Connection refused") where the message is "transport
/// error". etcd's messages name neither users nor passwords.
pub fn error_text(error: &Error) -> String {
    match error {
        Error::GRpcStatus(status) => with_innermost(status.message(), status),
        _ => chain(error),
    }
}

/// A status' own `Display` is debug output.
fn with_innermost(message: &str, status: &dyn StdError) -> String {
    let Some(mut cause) = status.source() else {
        return message.to_owned();
    };
    while let Some(next) = cause.source() {
        cause = next;
    }
    let cause = cause.to_string();
    if message.contains(&cause) {
        message.to_owned()
    } else {
        format!("{message}: {cause}")
    }
}

/// The two innermost causes.
fn chain(error: &dyn StdError) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !causes.iter().any(|known| known.contains(&text)) {
            causes.push(text);
        }
        next = cause.source();
    }
    let skipped = causes.len().saturating_sub(2);
    causes[skipped..].join(": ")
}

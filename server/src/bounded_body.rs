//! Reads the body of a response up to a limit. One from an intermediary or a hostile host may have no end.

use reqwest::Response;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum BoundedBodyError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
}

/// # Errors
/// The connection fails; the body has more bytes.
pub(crate) async fn read(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, BoundedBodyError> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > bytes_max {
            return Err(BoundedBodyError::TooLarge { bytes_max });
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

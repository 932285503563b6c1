//! A page's data, refetched on changes. The resource is independent of the request and data
//! types, so that the wasm has the fetching code once and not once per page.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use leptos::prelude::*;
use leptos::server::codee::{Decoder, Encoder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::topics::Topics;
use super::{FetchGuard, Live};
use crate::api::ApiError;
use crate::api::codec::{self, Payload, PayloadError};

type LoadResult = Result<Data, ApiError>;
type Fetch = dyn Fn(Vec<String>) -> Pin<Box<dyn Future<Output = LoadResult> + Send>> + Send + Sync;

/// Data of type `T`.
pub struct Load<T> {
    resource: Resource<LoadResult, Payload>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Load<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Load<T> {}

/// Request of a page, as text.
pub trait PageRequest {
    fn texts(self) -> Vec<String>;
    fn from_texts(texts: Vec<String>) -> Self;
}

impl PageRequest for () {
    fn texts(self) -> Vec<String> {
        Vec::new()
    }

    fn from_texts(_: Vec<String>) -> Self {}
}

impl PageRequest for String {
    fn texts(self) -> Vec<String> {
        vec![self]
    }

    fn from_texts(texts: Vec<String>) -> Self {
        texts.into_iter().next().unwrap_or_default()
    }
}

impl PageRequest for (String, String) {
    fn texts(self) -> Vec<String> {
        vec![self.0, self.1]
    }

    fn from_texts(texts: Vec<String>) -> Self {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        (next(), next())
    }
}

impl PageRequest for (String, String, String) {
    fn texts(self) -> Vec<String> {
        vec![self.0, self.1, self.2]
    }

    fn from_texts(texts: Vec<String>) -> Self {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        (next(), next(), next())
    }
}

impl PageRequest for (String, String, String, String) {
    fn texts(self) -> Vec<String> {
        vec![self.0, self.1, self.2, self.3]
    }

    fn from_texts(texts: Vec<String>) -> Self {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        (next(), next(), next(), next())
    }
}

impl Live {
    /// Data that is refetched when an event announces a change of one of these kinds.
    pub fn refreshing<Q, T, Fut>(
        self,
        topics: Topics,
        request: impl Fn() -> Q + Send + Sync + 'static,
        fetch: impl Fn(Q) -> Fut + Send + Sync + 'static,
    ) -> Load<T>
    where
        Q: PageRequest,
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
        Fut: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let fetch = move |texts| -> Pin<Box<dyn Future<Output = LoadResult> + Send>> {
            let answer = fetch(Q::from_texts(texts));
            Box::pin(async move { answer.await.and_then(Data::from_value) })
        };
        Load {
            resource: self.resource(topics, Box::new(move || request().texts()), Arc::new(fetch)),
            of: PhantomData,
        }
    }

    fn resource(
        self,
        topics: Topics,
        request: Box<dyn Fn() -> Vec<String> + Send + Sync>,
        fetch: Arc<Fetch>,
    ) -> Resource<LoadResult, Payload> {
        Resource::new_with_options(
            move || (request(), self.epoch(topics)),
            move |(texts, _)| {
                let answer = fetch(texts);
                async move {
                    let guard = FetchGuard::begin(self);
                    let answer = answer.await;
                    drop(guard);
                    answer
                }
            },
            false,
        )
    }
}

impl<T: Clone + DeserializeOwned + 'static> Load<T> {
    /// Tracked read; `None` before the first response.
    pub fn get(self) -> Option<Result<T, ApiError>> {
        self.resource
            .get()
            .map(|answer| answer.and_then(|data| data.open()))
    }

    pub fn failure(self) -> Option<ApiError> {
        self.resource.get().and_then(Result::err)
    }

    /// Tracked: the last response has data.
    pub fn has_answered(self) -> bool {
        self.resource.with(|answer| matches!(answer, Some(Ok(_))))
    }

    pub fn refetch(self) {
        self.resource.refetch();
    }
}

/// Data with its type erased.
#[derive(Clone)]
pub enum Data {
    /// As embedded in the first HTML.
    Packed(Arc<[u8]>),
    /// As returned by a server function in the browser.
    Decoded(Arc<dyn Any + Send + Sync>),
}

impl Data {
    fn from_value<T: Serialize + Send + Sync + 'static>(value: T) -> Result<Self, ApiError> {
        // The browser does not encode, and needs no code for it.
        if cfg!(feature = "ssr") {
            let packed = codec::write(&value).map_err(codec_error)?;
            Ok(Self::Packed(packed.into()))
        } else {
            Ok(Self::Decoded(Arc::new(value)))
        }
    }

    fn open<T: Clone + DeserializeOwned + 'static>(self) -> Result<T, ApiError> {
        match self {
            Self::Packed(bytes) => codec::read(&bytes).map_err(codec_error),
            Self::Decoded(value) => value
                .downcast_ref::<T>()
                .cloned()
                .ok_or_else(|| codec_error(PayloadError::Malformed)),
        }
    }
}

fn codec_error(error: PayloadError) -> ApiError {
    match error {
        PayloadError::OtherBuild => ApiError::OtherBuild,
        PayloadError::Malformed => ApiError::Unreachable(error.to_string()),
    }
}

/// Only the server encodes, and its data is already encoded.
impl Encoder<LoadResult> for Payload {
    type Error = PayloadError;
    type Encoded = String;

    fn encode(answer: &LoadResult) -> Result<String, PayloadError> {
        let answer = match answer {
            Ok(Data::Packed(bytes)) => Ok(&bytes[..]),
            Ok(Data::Decoded(_)) => return Err(PayloadError::Malformed),
            Err(error) => Err(error),
        };
        codec::to_text(&answer)
    }
}

impl Decoder<LoadResult> for Payload {
    type Error = PayloadError;
    type Encoded = str;

    fn decode(text: &str) -> Result<LoadResult, PayloadError> {
        let answer: Result<Vec<u8>, ApiError> = codec::from_text(text)?;
        Ok(answer.map(|bytes| Data::Packed(bytes.into())))
    }
}

//! The same collector for OTLP over HTTP, protobuf in the body of a POST; and how it is reached by TLS, over HTTP/1.1 and HTTP/2.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::testkit::Tls;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use futures::Stream;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::LogsService;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::MetricsService;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::TraceService;
use prost::Message;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::Request;

use super::sink::ReceivedTelemetry;

pub(super) fn routes(kept: ReceivedTelemetry) -> Router {
    Router::new()
        .route("/v1/metrics", post(metrics))
        .route("/v1/traces", post(traces))
        .route("/v1/logs", post(logs))
        .with_state(kept)
}

fn decoded<T: Message + Default>(body: Bytes) -> Request<T> {
    Request::new(T::decode(body).unwrap())
}

/// An answer without a field is one of no bytes.
async fn metrics(State(kept): State<ReceivedTelemetry>, body: Bytes) -> StatusCode {
    MetricsService::export(&kept, decoded(body)).await.unwrap();
    StatusCode::OK
}

async fn traces(State(kept): State<ReceivedTelemetry>, body: Bytes) -> StatusCode {
    TraceService::export(&kept, decoded(body)).await.unwrap();
    StatusCode::OK
}

async fn logs(State(kept): State<ReceivedTelemetry>, body: Bytes) -> StatusCode {
    LogsService::export(&kept, decoded(body)).await.unwrap();
    StatusCode::OK
}

fn certificates(file: &Path) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_file_iter(file).unwrap();
    all.map(Result::unwrap).collect()
}

/// With this certificate; where an authority is named, for its clients alone.
pub(super) fn acceptor(tls: &Tls) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone());
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = match &tls.client_ca {
        None => config.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(authority));
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::from_pem_file(&tls.key).unwrap();
    let mut config = config.with_single_cert(certificates(&tls.cert), key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// The peer of the TLS handshake.
pub(super) fn let_in(
    listener: TcpListener,
    tls: TlsAcceptor,
) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
    futures::stream::unfold((listener, tls), |(listener, tls)| async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = tls.accept(stream).await {
                return Some((Ok(stream), (listener, tls)));
            }
        }
    })
}

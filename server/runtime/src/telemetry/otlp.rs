//! OTLP exporters from the standard variables, and the resource they report.

use std::path::Path;
use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, SpanExporter, WithHttpConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::PeriodicReader;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::export_status::{Export, Noted};
use crate::clock::Clock;
use config::otel::{Otel, Protocol, Push};

#[derive(Debug, Error)]
pub enum PushError {
    #[error(
        "{path}: {source}; OTEL_EXPORTER_OTLP_CERTIFICATE, …_CLIENT_CERTIFICATE and …_CLIENT_KEY are PEM files"
    )]
    File { path: String, source: std::io::Error },
    #[error("the certificates for pushing cannot be used: {0}")]
    Certificate(#[source] reqwest::Error),
    #[error("pushing {signal} cannot be set up: {source}")]
    Exporter {
        signal: &'static str,
        source: ExporterBuildError,
    },
    #[error("pushing cannot be set up: its thread ended")]
    Thread,
}

/// The OTel resource: from the variables, with name and version as defaults.
pub(super) fn resource(otel: &Otel) -> Resource {
    let mut builder = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", crate::random::id()),
    ]);
    // A value given here would override the variable.
    if !otel.names_service {
        builder = builder.with_service_name("leasehold");
    }
    builder.build()
}

pub(super) type Reader = PeriodicReader<Noted<MetricExporter>>;

/// Builds one exporter by protocol; the three builders have no common type.
macro_rules! build {
    ($exporter:ty, $signal:literal, $push:expr) => {{
        let push: &Push = $push;
        let built = match push.protocol {
            Protocol::Grpc => match tls(push)? {
                Some(tls) => <$exporter>::builder().with_tonic().with_tls_config(tls).build(),
                None => <$exporter>::builder().with_tonic().build(),
            },
            Protocol::Http => match client(push)? {
                Some(client) => <$exporter>::builder()
                    .with_http()
                    .with_http_client(client)
                    .build(),
                None => <$exporter>::builder().with_http().build(),
            },
        };
        built.map_err(|source| PushError::Exporter {
            signal: $signal,
            source,
        })?
    }};
}

pub(super) fn metrics(push: &Push, clock: &Clock) -> Result<(Reader, Arc<Export>), PushError> {
    let exporter = build!(MetricExporter, "metrics", push);
    let export = export("metrics", push, clock);
    let reader = PeriodicReader::builder(Noted::new(exporter, export.clone())).build();
    Ok((reader, export))
}

pub(super) fn traces(
    push: &Push,
    resource: Resource,
    clock: &Clock,
) -> Result<(SdkTracerProvider, Arc<Export>), PushError> {
    let exporter = build!(SpanExporter, "traces", push);
    let export = export("traces", push, clock);
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(Noted::new(exporter, export.clone()))
        .with_resource(resource)
        .build();
    Ok((provider, export))
}

pub(super) fn logs(
    push: &Push,
    resource: Resource,
    clock: &Clock,
) -> Result<(SdkLoggerProvider, Arc<Export>), PushError> {
    let exporter = build!(LogExporter, "logs", push);
    let export = export("logs", push, clock);
    let provider = SdkLoggerProvider::builder()
        .with_batch_exporter(Noted::new(exporter, export.clone()))
        .with_resource(resource)
        .build();
    Ok((provider, export))
}

fn export(signal: &'static str, push: &Push, clock: &Clock) -> Arc<Export> {
    Export::new(
        signal,
        push.address.clone(),
        push.protocol.as_str(),
        clock.clone(),
    )
}

fn read(path: &Path) -> Result<Vec<u8>, PushError> {
    std::fs::read(path).map_err(|source| PushError::File {
        path: path.display().to_string(),
        source,
    })
}

/// `None`: plain text. The exporter's own TLS trusts no roots by default.
fn tls(push: &Push) -> Result<Option<ClientTlsConfig>, PushError> {
    let is_clear = !push.address.starts_with("https:");
    if is_clear && push.certificate.is_none() && push.client_certificate.is_none() {
        return Ok(None);
    }
    let mut tls = ClientTlsConfig::new();
    tls = match &push.certificate {
        Some(path) => tls.ca_certificate(Certificate::from_pem(read(path)?)),
        None => tls.with_enabled_roots(),
    };
    if let (Some(certificate), Some(key)) = (&push.client_certificate, &push.client_key) {
        tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(Some(tls))
}

/// `None`: the exporter's default client. A blocking client must not be created on a runtime thread.
fn client(push: &Push) -> Result<Option<reqwest::blocking::Client>, PushError> {
    if push.certificate.is_none() && push.client_certificate.is_none() {
        return Ok(None);
    }
    let roots = match &push.certificate {
        Some(path) => reqwest::Certificate::from_pem_bundle(&read(path)?).map_err(PushError::Certificate)?,
        None => Vec::new(),
    };
    let identity = match (&push.client_certificate, &push.client_key) {
        (Some(certificate), Some(key)) => {
            let mut pem = read(certificate)?;
            pem.extend(read(key)?);
            Some(reqwest::Identity::from_pem(&pem).map_err(PushError::Certificate)?)
        }
        _ => None,
    };
    let timeout = push.timeout;
    let making = std::thread::spawn(move || {
        // The exporter limits only its own client.
        let mut builder = reqwest::blocking::Client::builder().timeout(timeout);
        if !roots.is_empty() {
            builder = builder.tls_certs_only(roots);
        }
        if let Some(identity) = identity {
            builder = builder.identity(identity);
        }
        builder.build()
    });
    let result = making.join().map_err(|_| PushError::Thread)?;
    result.map(Some).map_err(PushError::Certificate)
}

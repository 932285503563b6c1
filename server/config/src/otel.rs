//! The standard `OTEL_*` variables that the SDK does not handle: whether each signal is exported, the protocol, the
//! endpoint and certificates. The SDK reads headers, timeouts, compression, batches and samplers.
//!
//! **Invariant:** without an endpoint and without an `otlp` exporter, a signal is not exported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use url::Url;

/// Signals to export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Otel {
    pub metrics: Option<Push>,
    pub traces: Option<Push>,
    pub logs: Option<Push>,
    /// `OTEL_SERVICE_NAME` is set, or `service.name` is among `OTEL_RESOURCE_ATTRIBUTES`.
    pub names_service: bool,
    /// `OTEL_PROPAGATORS` disables trace context of callers.
    pub ignores_callers: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    pub protocol: Protocol,
    /// For display: scheme, host and port, without credentials.
    pub address: String,
    /// PEM files.
    pub certificate: Option<PathBuf>,
    pub client_certificate: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    /// Timeout of one export for clients made here. Default 10 s, as in the SDK.
    pub timeout: Duration,
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Protocol {
        Grpc = "grpc",
        Http = "http/protobuf",
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{variable}: {why}. {remedy}")]
pub struct OtelError {
    pub variable: String,
    pub why: String,
    pub remedy: &'static str,
}

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

type Variables = BTreeMap<String, String>;

/// From the process's environment.
///
/// # Errors
/// A variable is invalid.
pub fn from_process() -> Result<Otel, OtelError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is read in this folder alone"
    )]
    let variables = std::env::vars_os();
    let own_variables = variables.filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with("OTEL_"))?;
        Some((name, value.into_string().ok()?))
    });
    read(&own_variables.collect())
}

/// # Errors
/// A variable is invalid.
pub fn read(variables: &Variables) -> Result<Otel, OtelError> {
    let get = |name: &str| {
        variables
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    };
    let is_off = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let signal = |name| if is_off { Ok(None) } else { signal(&get, name) };
    let attributes = get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut propagators = get("OTEL_PROPAGATORS").unwrap_or("tracecontext").split(',');
    Ok(Otel {
        metrics: signal("METRICS")?,
        traces: signal("TRACES")?,
        logs: signal("LOGS")?,
        names_service: get("OTEL_SERVICE_NAME").is_some()
            || attributes
                .split(',')
                .any(|attribute| attribute.trim_start().starts_with("service.name=")),
        ignores_callers: !propagators.any(|name| name.trim() == "tracecontext"),
    })
}

fn signal<'a>(
    get: &dyn Fn(&str) -> Option<&'a str>,
    signal: &'static str,
) -> Result<Option<Push>, OtelError> {
    let exporter = format!("OTEL_{signal}_EXPORTER");
    let is_asked = match get(&exporter) {
        Some("none") => return Ok(None),
        // The Prometheus endpoint is always available.
        Some("prometheus") if signal == "METRICS" => return Ok(None),
        Some("otlp") => true,
        None => false,
        Some(other) => {
            let why = format!("{other:?} is not a supported exporter");
            let remedy = "Set it to otlp or none.";
            return Err(OtelError {
                variable: exporter,
                why,
                remedy,
            });
        }
    };
    let lookup = |name: &str| {
        let signal_name = format!("OTEL_EXPORTER_OTLP_{signal}_{name}");
        let common = format!("OTEL_EXPORTER_OTLP_{name}");
        match get(&signal_name) {
            Some(value) => Some((signal_name, value)),
            None => get(&common).map(|value| (common, value)),
        }
    };
    let endpoint = lookup("ENDPOINT");
    if endpoint.is_none() && !is_asked {
        return Ok(None);
    }
    let protocol = match lookup("PROTOCOL") {
        None => Protocol::Http,
        Some((_, "http/protobuf")) => Protocol::Http,
        Some((_, "grpc")) => Protocol::Grpc,
        Some((variable, other)) => {
            return Err(OtelError {
                variable,
                why: format!("{other:?} is not a supported protocol"),
                remedy: "Set it to grpc or http/protobuf.",
            });
        }
    };
    let file = |name| lookup(name).map(|(_, path)| PathBuf::from(path));
    let default_address = match protocol {
        Protocol::Http => "http://localhost:4318",
        Protocol::Grpc => "http://localhost:4317",
    };
    Ok(Some(Push {
        address: match endpoint {
            Some((variable, value)) => validated_endpoint(variable, value)?,
            None => default_address.to_owned(),
        },
        protocol,
        certificate: file("CERTIFICATE"),
        client_certificate: file("CLIENT_CERTIFICATE"),
        client_key: file("CLIENT_KEY"),
        timeout: lookup("TIMEOUT")
            .and_then(|(_, ms)| ms.parse().ok())
            .map_or(TIMEOUT_DEFAULT, Duration::from_millis),
    }))
}

fn validated_endpoint(variable: String, endpoint: &str) -> Result<String, OtelError> {
    let url = Url::parse(endpoint).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url else {
        return Err(OtelError {
            variable,
            why: "this is not an http:// or https:// address".to_owned(),
            remedy: "Set it to an address such as http://collector:4318.",
        });
    };
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    let host = url.host_str().unwrap_or_default();
    Ok(format!("{}://{host}{port}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn otel_of(pairs: &[(&str, &str)]) -> Result<Otel, OtelError> {
        read(
            &pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn nothing_is_pushed_unless_configured() {
        // No variable; everything off; each signal off; an exporter without an endpoint.
        assert_eq!(otel_of(&[]).unwrap(), Otel::default());
        let endpoint = (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://user:secret@collector:4318/x",
        );
        assert_eq!(
            otel_of(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")])
                .unwrap()
                .metrics,
            None
        );
        let without_traces = otel_of(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]).unwrap();
        assert!(without_traces.traces.is_none() && without_traces.logs.is_some());
        let metrics = without_traces.metrics.unwrap();
        assert_eq!(
            (metrics.address.as_str(), metrics.protocol),
            ("http://collector:4318", Protocol::Http)
        );
        let parsed = otel_of(&[
            ("OTEL_LOGS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
        ]);
        assert_eq!(parsed.unwrap().logs.unwrap().address, "http://localhost:4317");
        assert_eq!(
            otel_of(&[("OTEL_METRICS_EXPORTER", "prometheus"), endpoint])
                .unwrap()
                .metrics,
            None
        );
    }

    #[test]
    fn an_invalid_variable_is_named_without_its_secret() {
        // An unsupported exporter and protocol, and an invalid address.
        for (name, value) in [
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "s3cret-token@collector"),
        ] {
            let error = otel_of(&[(name, value)]).unwrap_err();
            assert_eq!(error.variable, name);
            assert!(!error.to_string().contains("s3cret"));
        }
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
        let wrong = otel_of(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
        assert_eq!(wrong.unwrap_err().variable, "OTEL_EXPORTER_OTLP_PROTOCOL");
    }
}

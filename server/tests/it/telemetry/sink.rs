//! A collector for OTLP inside the test, over gRPC and HTTP, in clear and by TLS: keeps what it is sent, decoded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use ::testkit::Tls;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use super::http_sink;

/// A span or a log record.
#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    /// Of a span its name, of a log record its text.
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) span: String,
    pub(super) parent: String,
    pub(super) attributes: HashMap<String, String>,
    /// Of the sender.
    pub(super) service: String,
}

/// By name and attributes.
pub(super) type MetricSeries = BTreeMap<(String, BTreeMap<String, String>), f64>;

#[derive(Clone, Default)]
pub(super) struct ReceivedTelemetry {
    spans: Arc<Mutex<Vec<Item>>>,
    logs: Arc<Mutex<Vec<Item>>>,
    /// Newest value of each series, by name and attributes; of histograms how many they have counted.
    values: Arc<Mutex<MetricSeries>>,
}

pub(super) struct Sink {
    pub(super) url: String,
    kept: ReceivedTelemetry,
    _stop: DropGuard,
}

impl Sink {
    pub(super) async fn open() -> Self {
        Self::serve(None).await
    }

    /// By TLS alone; with an authority of clients, for those alone.
    pub(super) async fn open_with_tls(tls: &Tls) -> Self {
        Self::serve(Some(http_sink::acceptor(tls))).await
    }

    async fn serve(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (kept, stop) = (ReceivedTelemetry::default(), CancellationToken::new());
        let by_http = Routes::from(http_sink::routes(kept.clone()));
        let serving = tonic::transport::Server::builder()
            .accept_http1(true)
            .add_routes(by_http)
            .add_service(MetricsServiceServer::new(kept.clone()))
            .add_service(TraceServiceServer::new(kept.clone()))
            .add_service(LogsServiceServer::new(kept.clone()));
        let stopped = stop.clone().cancelled_owned();
        runtime::tasks::spawn("sink", CancellationToken::new(), async move {
            let served = match tls {
                None => {
                    let incoming = TcpIncoming::from(listener);
                    serving.serve_with_incoming_shutdown(incoming, stopped).await
                }
                Some(tls) => {
                    let incoming = http_sink::let_in(listener, tls);
                    serving.serve_with_incoming_shutdown(incoming, stopped).await
                }
            };
            served.unwrap();
        });
        Self {
            url,
            kept,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn spans(&self) -> Vec<Item> {
        self.kept.spans.lock().unwrap().clone()
    }

    pub(super) fn values(&self) -> MetricSeries {
        self.kept.values.lock().unwrap().clone()
    }

    pub(super) fn logs(&self) -> Vec<Item> {
        self.kept.logs.lock().unwrap().clone()
    }
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::BoolValue(value)) => value.to_string(),
        Some(any_value::Value::DoubleValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn pairs(all: Vec<KeyValue>) -> HashMap<String, String> {
    all.into_iter().map(|one| (one.key, text(one.value))).collect()
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tonic::async_trait]
impl MetricsService for ReceivedTelemetry {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let parts = request.into_inner().resource_metrics.into_iter();
        let scopes = parts.flat_map(|part| part.scope_metrics);
        for metric in scopes.flat_map(|scope| scope.metrics) {
            let points: Vec<_> = match metric.data {
                Some(metric::Data::Sum(sum)) => sum.data_points.into_iter().map(number).collect(),
                Some(metric::Data::Gauge(gauge)) => gauge.data_points.into_iter().map(number).collect(),
                Some(metric::Data::Histogram(histogram)) => histogram
                    .data_points
                    .into_iter()
                    .map(|point| (point.attributes, point.count as f64))
                    .collect(),
                _ => Vec::new(),
            };
            let mut values = self.values.lock().unwrap();
            for (attributes, value) in points {
                let attributes = pairs(attributes).into_iter().collect();
                values.insert((metric.name.clone(), attributes), value);
            }
        }
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

fn number(point: opentelemetry_proto::tonic::metrics::v1::NumberDataPoint) -> (Vec<KeyValue>, f64) {
    let value = match point.value {
        Some(number_data_point::Value::AsInt(value)) => value as f64,
        Some(number_data_point::Value::AsDouble(value)) => value,
        None => f64::NAN,
    };
    (point.attributes, value)
}

#[tonic::async_trait]
impl TraceService for ReceivedTelemetry {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for part in request.into_inner().resource_spans {
            let of = pairs(part.resource.unwrap_or_default().attributes);
            for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                self.spans.lock().unwrap().push(Item {
                    name: span.name,
                    trace: hex(&span.trace_id),
                    span: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    attributes: pairs(span.attributes),
                    service: of["service.name"].clone(),
                });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl LogsService for ReceivedTelemetry {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        for part in request.into_inner().resource_logs {
            let of = pairs(part.resource.unwrap_or_default().attributes);
            for record in part.scope_logs.into_iter().flat_map(|scope| scope.log_records) {
                self.logs.lock().unwrap().push(Item {
                    name: text(record.body),
                    trace: hex(&record.trace_id),
                    span: hex(&record.span_id),
                    parent: String::new(),
                    attributes: pairs(record.attributes),
                    service: of["service.name"].clone(),
                });
            }
        }
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

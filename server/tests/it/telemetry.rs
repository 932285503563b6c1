//! Telemetry as monitoring systems receive it: scraped, pushed, decoded; and a faulty collector has no effect on the
//! server.

mod cardinality;
mod collectors;
mod dashboards;
mod database;
mod http_sink;
mod otlp_push;
mod prometheus_scrape;
mod promql;
mod server_process;
mod sink;
mod tls;
mod trace_propagation;

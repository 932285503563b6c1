//! Telemetry as monitoring systems get it: scraped, pushed, decoded; and what a bad collector does to us: nothing.

mod bounded;
mod collectors;
mod database;
mod encrypted;
mod http_sink;
mod pushed;
mod scraped;
mod shipped;
mod sink;
mod stage;
mod stored;
mod traced;

//! `log` and `log_format`: filter and format of the log.

use tracing_subscriber::EnvFilter;

use super::reader::Section;
use super::value_parsers;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `log`: a filter such as `info`, `leasehold=debug,info` or `warn`. Default `info`.
    pub filter: String,
    /// `log_format`: `human` (default) or `json`, one object a line.
    pub format: LogFormat,
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum LogFormat {
        #[default]
        Human = "human",
        Json = "json",
    }
}

pub const FILTER_DEFAULT: &str = "info";

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            filter: FILTER_DEFAULT.to_owned(),
            format: LogFormat::default(),
        }
    }
}

impl LogConfig {
    pub(super) fn read(root: &mut Section<'_>) -> Self {
        let filter =
            value_parsers::checked("a filter such as \"info\" or \"leasehold=debug,info\"", |text| {
                EnvFilter::builder()
                    .parse(text)
                    .map(|_| ())
                    .map_err(|error| format!("is not a filter ({error})"))
            });
        Self {
            filter: root.or("log", FILTER_DEFAULT.to_owned(), &filter),
            format: root.or("log_format", LogFormat::default(), &value_parsers::choice()),
        }
    }
}

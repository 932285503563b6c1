//! `[telemetry]`: link to the tracing tool. Export is configured by the standard `OTEL_*` variables.

use url::Url;

use super::reader::Section;
use super::value_parsers;

/// Placeholder of the trace id.
pub const TRACE_ID: &str = "{trace_id}";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelemetryConfig {
    /// `trace_url`: URL of a trace in the tracing tool, with `{trace_id}`. Default: none, ids are shown without a
    /// link.
    pub trace_url: Option<String>,
}

impl TelemetryConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let expected =
            "an address with {trace_id} in it, such as \"https://tracing.example/trace/{trace_id}\"";
        let trace_url = section.optional("trace_url", &value_parsers::checked(expected, check_filter));
        section.finish();
        Self { trace_url }
    }
}

fn check_filter(text: &str) -> Result<(), String> {
    if text.matches(TRACE_ID).count() != 1 {
        return Err("does not have {trace_id} in it once".to_owned());
    }
    let filled = text.replace(TRACE_ID, "0af7651916cd43dd8448eb211c80319c");
    let url = Url::parse(&filled).map_err(|_| "is not an address".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("is not an http:// or https:// address".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has credentials, which every user who opens a lock would see".to_owned());
    }
    if filled.contains(['<', '>', '"', '\'', '\\', '{', '}']) || filled.chars().any(char::is_whitespace) {
        return Err("has characters that no address has".to_owned());
    }
    if url
        .host_str()
        .is_some_and(|host| host.contains("0af7651916cd43dd"))
    {
        return Err("has {trace_id} in the name of the host".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_url_has_exactly_one_placeholder() {
        // One valid address, and one for each error.
        assert_eq!(
            check_filter("https://grafana.example/explore?trace={trace_id}"),
            Ok(())
        );
        for invalid in [
            "https://grafana.example/trace",
            "https://h/{trace_id}/{trace_id}",
            "javascript:alert('{trace_id}')",
            "https://user:word@h/{trace_id}",
            "https://{trace_id}.example/",
            "https://h/\"><script>{trace_id}",
            "//h/{trace_id}",
        ] {
            assert!(check_filter(invalid).is_err(), "{invalid}");
        }
    }
}

//! One event is one line of the human log: texts of backends, providers and clients cannot forge another one.

use std::fmt;

use domain::escape::visible;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Full, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::registry::LookupSpan;

/// Begins the colours of the formatter. In texts the formatter itself writes it as `\x1b`.
const ESCAPE: char = '\u{1b}';

/// The usual format, with control, bidirectional and invisible characters written as `\u{…}`.
pub(super) struct OneLine {
    format: Format<Full, SystemTime>,
    has_colours: bool,
}

impl OneLine {
    pub(super) fn new(has_colours: bool) -> Self {
        Self {
            format: Format::default().with_ansi(has_colours),
            has_colours,
        }
    }

    fn escaped(&self, line: &str) -> String {
        if !self.has_colours {
            return visible(line).into_owned();
        }
        let mut escaped = String::with_capacity(line.len());
        for (index, part) in line.split(ESCAPE).enumerate() {
            if index > 0 {
                escaped.push_str(if is_colour(part) { "\u{1b}" } else { "\\u{1b}" });
            }
            escaped.push_str(&visible(part));
        }
        escaped
    }
}

/// Whether what follows an escape sets a colour or a weight (SGR), which moves no cursor and clears nothing.
fn is_colour(part: &str) -> bool {
    let digits = |c: char| c.is_ascii_digit() || c == ';';
    let rest = part.strip_prefix('[').map(|rest| rest.trim_start_matches(digits));
    rest.is_some_and(|rest| rest.starts_with('m'))
}

impl<S, N> FormatEvent<S, N> for OneLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        writeln!(writer, "{}", self.escaped(line.trim_end_matches('\n')))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log(has_colours: bool, text: &str) -> String {
        let written = Written::default();
        let writer = written.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(has_colours)
            .event_format(OneLine::new(has_colours));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::error_span!("asked", who = text, how = %text);
            let _inside = span.enter();
            let error = io::Error::other(text.to_owned());
            tracing::error!(lock.owner = text, lock.resource = %text, error = &error as &dyn std::error::Error, "cannot: {text}");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_event_is_one_line_whatever_its_texts_hold() {
        // In the message, in fields of every kind, in a span; with and without colours.
        let hostile = "x\n2026-01-01 INFO forged\r\u{2028}\u{85}\u{202e}\u{1b}[2Ky\t";
        for has_colours in [false, true] {
            let line = log(has_colours, hostile);
            assert_eq!(
                line.matches(['\n', '\r', '\u{2028}', '\u{85}']).count(),
                1,
                "{line:?}"
            );
            assert!(line.ends_with('\n') && line.contains("forged"), "{line:?}");
            assert!(
                !line.contains(['\u{202e}', '\t']) && !line.contains("\u{1b}[2K"),
                "{line:?}"
            );
            assert_eq!(line.contains(ESCAPE), has_colours, "{line:?}");
        }
        assert!(
            log(false, "plain").ends_with("lock.resource=plain error=plain\n"),
            "{}",
            log(false, "plain")
        );
    }
}

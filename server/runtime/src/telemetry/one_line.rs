//! One log event is one line: text from backends, providers and clients can neither forge a line nor send terminal
//! escapes.

use std::fmt::{self, Write as _};

use domain::escape::{is_hidden, visible};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Full, Json, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::registry::LookupSpan;

/// Start of the formatter's colour sequences. In event text the formatter writes it as `\x1b`.
const ESCAPE: char = '\u{1b}';

/// A `tracing_subscriber` format that escapes control, bidirectional and invisible characters.
pub(super) struct OneLine<F> {
    format: F,
    notation: Notation,
}

/// How a character is escaped.
enum Notation {
    /// As `\u{…}`; colours of the formatter stay.
    Text { has_colours: bool },
    /// As `\uXXXX`, which JSON parsers restore.
    Json,
}

impl OneLine<Format<Full, SystemTime>> {
    pub(super) fn human(has_colours: bool) -> Self {
        Self {
            format: Format::default().with_ansi(has_colours),
            notation: Notation::Text { has_colours },
        }
    }
}

impl OneLine<Format<Json, SystemTime>> {
    pub(super) fn json() -> Self {
        Self {
            format: Format::default().json().flatten_event(true),
            notation: Notation::Json,
        }
    }
}

impl Notation {
    fn escaped(&self, line: &str) -> String {
        match self {
            Self::Text { has_colours: false } => visible(line).into_owned(),
            Self::Text { has_colours: true } => visible_with_colours(line),
            Self::Json => escaped_json(line),
        }
    }
}

fn visible_with_colours(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for (index, part) in line.split(ESCAPE).enumerate() {
        if index > 0 {
            escaped.push_str(if is_colour(part) { "\u{1b}" } else { "\\u{1b}" });
        }
        escaped.push_str(&visible(part));
    }
    escaped
}

/// For compact JSON, where such characters occur only in strings. `serde_json` has escaped those below U+0020.
fn escaped_json(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for c in line.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether an escape sequence only sets colour or weight (SGR), which moves no cursor and clears nothing.
fn is_colour(part: &str) -> bool {
    let digits = |c: char| c.is_ascii_digit() || c == ';';
    let rest = part.strip_prefix('[').map(|rest| rest.trim_start_matches(digits));
    rest.is_some_and(|rest| rest.starts_with('m'))
}

impl<S, N, F> FormatEvent<S, N> for OneLine<F>
where
    F: FormatEvent<S, N>,
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
        writeln!(writer, "{}", self.notation.escaped(line.trim_end_matches('\n')))
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
            .event_format(OneLine::human(has_colours));
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
    fn an_event_with_line_breaks_is_one_line() {
        // In the message, in fields of each kind, in a span; with and without colours.
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

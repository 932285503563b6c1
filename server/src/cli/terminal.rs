//! Properties of standard output: terminal, size, colours.

use std::io::{self, IsTerminal};

use super::output::write;

/// Columns and rows, if standard output is a terminal.
pub(super) fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}

pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Colours on a terminal, unless disabled by the user.
pub(super) fn colour(no_color: Option<&str>) -> bool {
    is_terminal() && no_color.is_none_or(str::is_empty)
}

/// The alternate screen of the terminal, without cursor and line wrapping; restored when dropped.
pub(super) struct Screen(());

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        write("\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l")?;
        Ok(Self(()))
    }

    /// Overwrites line by line, to avoid flicker.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let body: String = lines.iter().map(|line| format!("{line}\u{1b}[K\r\n")).collect();
        write(&format!("\u{1b}[H{}\u{1b}[J", body.trim_end_matches("\r\n")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write("\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l");
    }
}

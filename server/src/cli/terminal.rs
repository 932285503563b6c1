//! What standard output is: a terminal or not, how large, and whether colours are welcome.

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

/// Colours on a terminal, unless the person says no.
pub(super) fn colour(no_color: Option<&str>) -> bool {
    is_terminal() && no_color.is_none_or(str::is_empty)
}

/// The other screen of the terminal, without a cursor and without wrapping of long lines; given back when dropped.
pub(super) struct Screen(());

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        write("\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l")?;
        Ok(Self(()))
    }

    /// Draws over what was there, line by line, so that nothing flickers.
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

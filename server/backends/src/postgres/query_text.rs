//! SQL text without its literals, so that passwords and personal data of other sessions do not
//! leave this adapter.
//!
//! The tokens are those of Postgres' own lexer (`src/backend/parser/scan.l`). If the text alone
//! does not determine where a literal ends, the rest of the text is left out: the result may
//! show too little, never too much. Comments are left out, because they may contain literals.
//! Identifiers, keywords, operators and `$1` stay.

#[cfg(test)]
mod tests;

use config::postgres::QueryText;

/// Replaces a literal; for an unterminated literal also everything after it.
const LITERAL: &str = "?";
const REST: &str = "?…";
/// Replaces the text if the configuration hides it.
pub(super) const NOT_SHOWN: &str = "not shown: query_text is \"hidden\" for this backend";

/// The text of a session's last statement as this backend's `query_text` allows.
pub(super) fn apply_mode(query: Option<String>, mode: QueryText) -> Option<String> {
    match mode {
        QueryText::Full => query,
        QueryText::Normalized => query.map(|query| without_literals(&query)),
        QueryText::Hidden => Some(NOT_SHOWN.to_owned()),
    }
}

/// Replaces each literal by `?` and each comment by a space. `sql` may be truncated anywhere.
fn without_literals(sql: &str) -> String {
    let mut lexer = Lexer {
        rest: sql,
        out: String::with_capacity(sql.len()),
    };
    while lexer.token() {}
    lexer.out
}

struct Lexer<'a> {
    rest: &'a str,
    out: String,
}

/// Meaning of a backslash inside quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    /// It escapes the next character: `E'…'`.
    Escapes,
    /// No meaning unless `standard_conforming_strings` is off, which the text does not show.
    DependsOnSession,
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn continues_word(c: char) -> bool {
    starts_word(c) || c.is_ascii_digit()
}

impl<'a> Lexer<'a> {
    /// Reads one token; false at the end.
    fn token(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        match first {
            '\'' => self.string(1, Backslash::DependsOnSession),
            '"' => self.quoted_name(),
            '$' => self.dollar(),
            '-' if self.rest.starts_with("--") => self.line_comment(),
            '/' if self.rest.starts_with("/*") => self.block_comment(),
            _ if first.is_ascii_digit() => self.number(),
            _ if starts_word(first) => self.word(),
            _ => self.copy(first.len_utf8()),
        }
        true
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn copy(&mut self, bytes: usize) {
        let copied = self.take(bytes);
        self.out.push_str(copied);
    }

    fn replace(&mut self, bytes: usize) {
        self.take(bytes);
        self.out.push_str(LITERAL);
    }

    fn leave_out_rest(&mut self) {
        self.rest = "";
        self.out.push_str(REST);
    }

    /// A literal; `opening` is the number of bytes up to and including its quote.
    fn string(&mut self, opening: usize, backslash: Backslash) {
        match string_end(&self.rest[opening..], backslash) {
            Some(end) => self.replace(opening + end),
            None => self.leave_out_rest(),
        }
    }

    /// A keyword, an identifier, or the prefix of a literal.
    fn word(&mut self) {
        let end = self.rest.find(|c: char| !continues_word(c) && c != '$');
        let (word, after) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let quote = word.len() + 1;
        match word {
            "e" | "E" if after.starts_with('\'') => self.string(quote, Backslash::Escapes),
            "b" | "B" | "n" | "N" | "x" | "X" if after.starts_with('\'') => {
                self.string(quote, Backslash::DependsOnSession);
            }
            "u" | "U" if after.starts_with("&'") => self.string(quote + 1, Backslash::DependsOnSession),
            _ => self.copy(word.len()),
        }
    }

    /// `"name"`; quotes inside are doubled.
    fn quoted_name(&mut self) {
        let inside = self.rest[1..].replace("\"\"", "  ");
        let end = inside.find('"').map_or(self.rest.len(), |end| end + 2);
        self.copy(end);
    }

    /// `$1`, `$tag$ … $tag$`, or a dollar sign alone.
    fn dollar(&mut self) {
        let after = &self.rest[1..];
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            return self.copy(1 + digits);
        }
        let tag = after.find(|c: char| !continues_word(c)).unwrap_or(after.len());
        if !after[tag..].starts_with('$') {
            return self.copy(1);
        }
        let opening = tag + 2;
        let quote = &self.rest[..opening];
        match self.rest[opening..].find(quote) {
            Some(inside) => self.replace(opening + inside + opening),
            None => self.leave_out_rest(),
        }
    }

    fn line_comment(&mut self) {
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        self.take(end);
        self.out.push(' ');
    }

    /// Nested, as in Postgres.
    fn block_comment(&mut self) {
        let (mut depth, mut at) = (0_usize, 0);
        let bytes = self.rest.as_bytes();
        while at < bytes.len() {
            match &bytes[at..] {
                [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        self.take(at);
        self.out.push(' ');
    }

    /// `1`, `1.5e-3`, `0xff`, `1_000`, and letters that follow directly, as in a bare UUID.
    fn number(&mut self) {
        let bytes = self.rest.as_bytes();
        let is_radix = matches!(bytes, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]);
        let (mut end, mut has_letters) = (0, false);
        while let Some(c) = self.rest[end..].chars().next() {
            let is_sign_of_exponent = matches!(c, '+' | '-')
                && !is_radix
                && matches!(bytes[end - 1], b'e' | b'E')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if c == '$' && has_letters {
                // Versions differ in whether this continues a name or begins a dollar quote.
                return self.leave_out_rest();
            }
            if !continues_word(c) && c != '.' && !is_sign_of_exponent {
                break;
            }
            has_letters |= starts_word(c);
            end += c.len_utf8();
        }
        self.replace(end);
    }
}

/// Bytes to the end of a string, including its closing quote. `None` if it is unterminated or
/// the end is ambiguous.
fn string_end(inside: &str, backslash: Backslash) -> Option<usize> {
    let bytes = inside.as_bytes();
    let (mut at, mut backslashes) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => {
                backslashes += 1;
                at += 1;
                continue;
            }
            b'\'' if backslashes % 2 == 1 => match backslash {
                Backslash::Escapes => at += 1,
                Backslash::DependsOnSession => return None,
            },
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return Some(at + 1),
            _ => at += 1,
        }
        backslashes = 0;
    }
    None
}

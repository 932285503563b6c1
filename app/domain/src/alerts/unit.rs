//! Units of thresholds: parsing and formatting. Values are whole numbers of the smallest unit.

/// Unit of a threshold's whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds: `90s`, `2h`, `1m30s`.
    Duration,
    Count,
    /// Thousandths: `12.5%`.
    Share,
    /// Hundredths: `2.5`.
    Times,
}

const STEPS: [(&str, i64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

impl Unit {
    /// # Errors
    /// The expected form.
    pub fn parse(self, text: &str) -> Result<i64, &'static str> {
        let text = text.trim();
        match self {
            Self::Duration => duration(text).ok_or("is a time such as 90s, 5m or 2h"),
            Self::Count => text.parse().ok().ok_or("is a whole number"),
            Self::Share => {
                let number = text.strip_suffix('%').unwrap_or(text).trim_end();
                decimal(number, 1).ok_or("is a share such as 50% or 12.5%")
            }
            Self::Times => {
                let number = text.strip_suffix(['x', '×']).unwrap_or(text).trim_end();
                decimal(number, 2).ok_or("is a number such as 3 or 2.5")
            }
        }
    }

    /// Text that [`parse`](Self::parse) reads back.
    pub fn text(self, value: i64) -> String {
        match self {
            Self::Duration => duration_text(value),
            Self::Count => value.to_string(),
            Self::Share => format!("{}%", decimal_text(value, 1)),
            Self::Times => decimal_text(value, 2),
        }
    }

    /// For display: units behind a space.
    pub fn format(self, value: i64) -> String {
        match self {
            Self::Duration => crate::format::period(value),
            Self::Count => crate::format::count(value.unsigned_abs()),
            Self::Share => format!("{} %", decimal_text(value, 1)),
            Self::Times => format!("{} ×", decimal_text(value, 2)),
        }
    }
}

/// Parts such as `1h30m`, optionally separated by spaces. A bare 0 is 0.
fn duration(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    let mut rest = text.as_str();
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest.get(..digits)?.parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (_, ms) = STEPS.iter().find(|(unit, _)| *unit == &rest[..letters])?;
        rest = &rest[letters..];
        sum = sum.checked_add(number.checked_mul(*ms)?)?;
    }
    (!text.is_empty()).then_some(sum)
}

fn duration_text(mut ms: i64) -> String {
    if ms <= 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, step) in STEPS.iter().rev() {
        if ms / step > 0 {
            out.push_str(&format!("{}{unit}", ms / step));
            ms %= step;
        }
    }
    out
}

/// A decimal number with up to `places` decimal places, scaled to a whole number.
fn decimal(text: &str, places: usize) -> Option<i64> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if integer.is_empty() || fraction.len() > places || !is_digits(integer) || !is_digits(fraction) {
        return None;
    }
    format!("{integer}{fraction:0<places$}").parse().ok()
}

fn decimal_text(value: i64, places: u32) -> String {
    let scale = 10_i64.pow(places);
    let width = places as usize;
    let text = format!("{}.{:0width$}", value / scale, value % scale);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_require_their_unit() {
        // Valid inputs and typical mistakes.
        let ok = [
            (Unit::Duration, "1m30s", 90_000),
            (Unit::Duration, "2 h", 7_200_000),
            (Unit::Duration, "0", 0),
            (Unit::Count, "12", 12),
            (Unit::Share, "12.5%", 125),
            (Unit::Share, "50 %", 500),
            (Unit::Times, "3×", 300),
            (Unit::Times, "2.25", 225),
        ];
        for (unit, text, value) in ok {
            assert_eq!(unit.parse(text), Ok(value), "{text}");
            assert_eq!(unit.parse(&unit.text(value)), Ok(value), "{text}");
        }
        let bad = [
            (Unit::Duration, ""),
            (Unit::Duration, "5"),
            (Unit::Duration, "-5s"),
            (Unit::Duration, "5 weeks"),
            (Unit::Duration, "99999999999999999d"),
            (Unit::Count, "1.5"),
            (Unit::Share, "half"),
            (Unit::Share, "12.55%"),
            (Unit::Times, "NaN"),
        ];
        for (unit, text) in bad {
            assert!(unit.parse(text).is_err(), "{text}");
        }
    }
}

//! Numbers as shown on pages, with units after a space.

/// A duration: `0.8 s`, `27.0 s`, `41 m 08 s`, `6 h 02 m`, `3 d 04 h`. Negative with a true minus sign.
pub fn duration(ms: i64) -> String {
    if ms < 0 {
        return format!("\u{2212}{}", duration(ms.saturating_neg()));
    }
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A round duration without trailing zeros: `0 s`, `250 ms`, `27.3 s`, `1 m 30 s`, `2 h`.
pub fn period(ms: i64) -> String {
    match ms {
        0 => "0 s".to_owned(),
        1..1000 => format!("{ms} ms"),
        _ if ms < 60_000 && ms % 1000 != 0 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ if ms < 60_000 => format!("{} s", ms / 1000),
        _ if ms < 3_600_000 => two_units(ms / 60_000, "m", ms % 60_000 / 1000, "s"),
        _ if ms < 86_400_000 => two_units(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "m"),
        _ => two_units(ms / 86_400_000, "d", ms % 86_400_000 / 3_600_000, "h"),
    }
}

fn two_units(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {unit}")
    } else {
        format!("{large} {unit} {small:02} {small_unit}")
    }
}

/// An age; tenths of a second below ten seconds only: `0.4 s`, `14 s`, `41 m 08 s`.
pub fn age(ms: i64) -> String {
    match ms {
        10_000..60_000 => format!("{} s", ms / 1000),
        _ => duration(ms.max(0)),
    }
}

/// A short measured time. Below the clock's resolution `< 1 ms`; then `12 ms`, `1.2 s`.
pub fn latency(ms: i64) -> String {
    match ms {
        i64::MIN..1 => "< 1 ms".to_owned(),
        1..1000 => format!("{ms} ms"),
        _ => duration(ms),
    }
}

/// A clock's offset with its sign: `+12 ms`, `−3 ms`, `0 ms`, `+1 h 00 m`.
pub fn offset(ms: i64) -> String {
    let size = ms.saturating_abs();
    let text = if size < 1000 {
        format!("{size} ms")
    } else {
        duration(size)
    };
    match ms.signum() {
        1 => format!("+{text}"),
        -1 => format!("\u{2212}{text}"),
        _ => text,
    }
}

/// A count with thousands marks: `12,847`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size: `0 bytes`, `1 byte`, `64 kB`, `1.5 MB`, `400 MB`. Units of 1,000; rounded down to
/// two digits below ten.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if number < 1000 {
        return counted(number, "byte", "bytes");
    }
    let (mut unit, mut unit_index) = (1000, 0);
    while number / unit >= 1000 && unit_index + 1 < UNITS.len() {
        (unit, unit_index) = (unit * 1000, unit_index + 1);
    }
    let (whole, tenth) = (number / unit, number % unit / (unit / 10));
    if whole < 10 && tenth > 0 {
        format!("{whole}.{tenth} {}", UNITS[unit_index])
    } else {
        format!("{whole} {}", UNITS[unit_index])
    }
}

/// A coordinate with at most two decimals, without trailing zeros: `12.5`, `100`, `0.07`. The
/// standard float formatting would add as much wasm as a page.
pub fn measure(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is drawn is no wider than a screen"
    )]
    let hundredths = (value * 100.0).round() as i64;
    let sign = if hundredths < 0 { "-" } else { "" };
    let (integer, fraction) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
    match (fraction, fraction % 10) {
        (0, _) => format!("{sign}{integer}"),
        (_, 0) => format!("{sign}{integer}.{}", fraction / 10),
        _ => format!("{sign}{integer}.{fraction:02}"),
    }
}

/// `1 lock`, `2 locks`, `12,847 locks`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_have_two_decimals_at_most() {
        // Both signs, both ends of rounding, and no decimal point without decimals.
        let shown = [0.0, 100.0, 12.5, 0.07, 99.999, -0.004, -3.25].map(measure);
        assert_eq!(shown, ["0", "100", "12.5", "0.07", "100", "0", "-3.25"]);
    }

    #[test]
    fn sizes_carry_units_of_a_thousand() {
        // Both edges of a unit; the largest value.
        let shown = [0, 1, 999, 1000, 1_550, 65_536, 999_999, 400_000_001, u64::MAX].map(bytes);
        assert_eq!(
            shown,
            [
                "0 bytes",
                "1 byte",
                "999 bytes",
                "1 kB",
                "1.5 kB",
                "65 kB",
                "999 kB",
                "400 MB",
                "18 EB"
            ]
        );
    }

    #[test]
    fn durations_carry_units_and_keep_their_sign() {
        let shown = [0, 800, 27_040, 2_468_000, 21_720_000, 273_600_000, -372_000].map(duration);
        assert_eq!(
            shown,
            [
                "0.0 s",
                "0.8 s",
                "27.0 s",
                "41 m 08 s",
                "6 h 02 m",
                "3 d 04 h",
                "\u{2212}6 m 12 s"
            ]
        );
        assert_eq!(
            [offset(12), offset(-3), offset(0)],
            ["+12 ms", "\u{2212}3 ms", "0 ms"]
        );
        assert_eq!(
            [count(0), count(999), count(12_847), count(1_000_000)],
            ["0", "999", "12,847", "1,000,000"]
        );
        assert_eq!(duration(i64::MIN), format!("\u{2212}{}", duration(i64::MAX)));
    }
}

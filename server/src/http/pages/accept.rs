//! Which encodings a client takes, by its `Accept-Encoding`.

/// Whether `header` takes `encoding`: named, or by `*`, and not with a weight of zero.
pub fn accepts(header: &str, encoding: &str) -> bool {
    let weight_of = |wanted: &str| {
        header.split(',').find_map(|part| {
            let (name, parameters) = part.split_once(';').unwrap_or((part, ""));
            let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
            is_wanted.then(|| !is_zero(parameters))
        })
    };
    weight_of(encoding).or_else(|| weight_of("*")).unwrap_or(false)
}

fn is_zero(parameters: &str) -> bool {
    let weight = parameters
        .trim()
        .strip_prefix("q=")
        .and_then(|weight| weight.trim().parse::<f32>().ok());
    weight.is_some_and(|weight| weight <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_of_zero_refuses_an_encoding() {
        // As browsers, curl and proxies write the header.
        assert!(accepts("gzip, deflate, br, zstd", "br"));
        assert!(accepts("gzip;q=0.5, BR;q=1", "br"));
        assert!(accepts("*", "br"));
        assert!(!accepts("br;q=0, *", "br"));
        assert!(!accepts("br; q=0.0", "br"));
        assert!(!accepts("gzip", "br"));
        assert!(!accepts("", "gzip"));
    }
}

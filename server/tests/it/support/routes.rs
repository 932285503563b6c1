//! Every route that reads, from the table of needs.

use leasehold::http::access::needs::TABLE;

/// Paths of all GET routes but streams and server functions; `fill` gives the value of a parameter such as
/// `{backend}` or `{*resource}`, or nothing where the route does not fit.
pub(crate) fn read_paths(fill: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    TABLE
        .iter()
        .filter(|(method, path, _)| {
            *method == "GET" && !path.ends_with("/events") && !path.starts_with("/api/")
        })
        .filter_map(|(_, path, _)| {
            let parts = path.split('/').map(|part| match part.starts_with('{') {
                true => fill(path, part),
                false => Some(part.to_owned()),
            });
            Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
        })
        .collect()
}

/// One segment of a path.
pub(crate) fn segment(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

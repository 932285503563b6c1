//! Every route that reads, from the table of routes.

use leasehold::http::routes::TABLE;

/// Paths of all GET routes but streams and server functions; `fill` returns the value of a parameter such as
/// `{backend}` or `{*resource}`, or None to skip the route.
pub(crate) fn read_paths(fill: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    TABLE
        .iter()
        .filter(|row| row.method == "GET" && !row.path.ends_with("/events") && !row.path.starts_with("/api/"))
        .filter_map(|row| {
            let parts = row.path.split('/').map(|part| match part.starts_with('{') {
                true => fill(row.path, part),
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

//! Messages of finished actions. A form leads to a page with a key in its query, so that the
//! message needs no script and no state on the server.

/// Start of the page's path, key in its query, message.
const MESSAGES: [(&str, &str, &str); 21] = [
    ("/alerts", "acked", "Acknowledged."),
    ("/alerts", "unacked", "Acknowledgement withdrawn."),
    (
        "/alerts",
        "silenced",
        "Silenced: new matching alerts send no notification until the silence ends.",
    ),
    (
        "/alerts",
        "ended",
        "The silence has ended. Notifications are sent for alerts that still fire.",
    ),
    ("/alerts", "extended", "The end of the silence is changed."),
    (
        "/alerts",
        "removed",
        "The rule is removed; its alerts are resolved.",
    ),
    (
        "/alerts/rules/",
        "saved",
        "Saved as a new version. It is in effect.",
    ),
    (
        "/alerts/receivers",
        "added",
        "Receiver added. Send a test message.",
    ),
    (
        "/alerts/receivers",
        "changed",
        "Receiver changed. Send a test message.",
    ),
    ("/alerts/receivers", "removed", "Receiver removed."),
    (
        "/settings",
        "changed",
        "Password changed; your other sessions have ended.",
    ),
    ("/audit", "reviewed", "Marked as reviewed."),
    ("/settings", "ended", "The session has ended."),
    (
        "/settings/users/",
        "saved",
        "Saved. All servers apply it within a second.",
    ),
    (
        "/settings/users/",
        "enabled",
        "Enabled: the user can sign in again.",
    ),
    (
        "/settings/users/",
        "disabled",
        "Disabled: all sessions of the user have ended. API tokens that the user created are not revoked.",
    ),
    (
        "/settings/tokens",
        "revoked",
        "Revoked, with the tokens, sign-in links and sessions that came from it. Requests with it are refused within a second.",
    ),
    (
        "/settings/protected-prefixes",
        "set",
        "Protection saved. It is in effect.",
    ),
    ("/settings/protected-prefixes", "removed", "Protection removed."),
    (
        "/settings/protected-prefixes",
        "switched",
        "Saved. Every server of this console applies it within a second.",
    ),
    ("/alerts/receivers", "retried", "Queued for delivery again."),
];

/// The message for the page at `path` with this query string.
pub fn find(path: &str, search: &str) -> Option<&'static str> {
    let search = search.trim_start_matches('?');
    let of_path = |(start, key, _): &&(&str, &str, &str)| {
        path.starts_with(start) && search.split('&').any(|param| param == *key)
    };
    let found = MESSAGES.iter().filter(of_path);
    found
        .max_by_key(|(start, ..)| start.len())
        .map(|(_, _, message)| *message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_page_has_the_message() {
        assert_eq!(find("/alerts", "?rule=a&acked"), Some("Acknowledged."));
        assert_eq!(find("/alerts/receivers", "removed"), Some("Receiver removed."));
        assert_eq!(find("/alerts", "ackedx"), None);
        assert_eq!(find("/locks", "acked"), None);
    }
}

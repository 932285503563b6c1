//! Takes out of a text what differs from run to run: times, ids, secrets, ports, durations.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns in their order, and what is written in place of a match.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(UTC|Z)|\+00:00)?",
            "[time]",
        ),
        (r#"sqlite:[^"]*/"#, "sqlite:[folder]/"),
        (r"(x-timestamp: )\d+", "${1}[timestamp]"),
        (r#""\d{10}""#, r#""[timestamp]""#),
        (r"(token:\d+:)\d+", "$1[ms]"),
        (r#"("(?:revision|alertsRevision)": |\nid: )\d+"#, "$1[revision]"),
        (r#"("version": ")[^"]*\d+\.[^"]*""#, r#"${1}[version]""#),
        (
            r#"("(?:passes|relistDifferences|tasksAlive|alertsEvaluatedSecondsAgo)": )(?:\d+|null)"#,
            "$1[count]",
        ),
        (r"\b(test-[a-z]+)-\d+", "$1-[number]"),
        (r"(127\.0\.0\.1|localhost):\d+", "$1:[port]"),
        (r"\blh[a-z]_[\w-]{20,}", "[secret]"),
        (r"(link|setup)([=#])[\w-]{20,}", "$1$2[secret]"),
        (r"sha256=[0-9a-f]{64}", "sha256=[signature]"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "[id]"),
        (r"\b[0-9a-f]{64}\b", "[hash]"),
        (r"\b[a-z]{1,2}_[0-9A-Za-z]{16,}\b", "[id]"),
        (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "[id]"),
        (r"\b[0-9a-f]{16,40}\b", "[id]"),
        (r#"("+\w*(?:Ms|At)"+: ?)-?\d{3,}"#, r#"$1"[ms]""#),
        (
            r#"("+(?:ageMs|heldMs|heldAtLeastMs|clockOffsetMs|clockErrorMs|waitedMs|closedMs)"+: ?)-?\d+"#,
            r#"$1"[ms]""#,
        ),
        (r"(?s)(\x22answersMs\x22: \[).*?\]", "$1\"[ms]\"]"),
        (r"\b\d+(\.\d+)? (ms|s|m|h)\b", "[duration]"),
    ];
    let compiled = patterns.map(|(pattern, with)| (Regex::new(pattern).unwrap(), with));
    compiled.into_iter().collect()
});

/// A sentence, which is for display and may change.
static SENTENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#": "(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*""#).unwrap());

/// JSON without its sentences.
pub(super) fn without_sentences(json: &str) -> String {
    SENTENCE.replace_all(json, r#": "[text]""#).into_owned()
}

pub(super) fn redacted(text: &str) -> String {
    PATTERNS.iter().fold(text.to_owned(), |text, (pattern, with)| {
        pattern.replace_all(&text, *with).into_owned()
    })
}

#[test]
fn redaction_leaves_what_is_the_same_in_every_run() {
    let text = r#"{"at": "2026-01-02T03:04:05.678Z", "ageMs": 12, "ttlSeconds": 30, "why": "held for 41 m", "state": "healthy"}"#;
    let expected = r#"{"at": "[time]", "ageMs": "[ms]", "ttlSeconds": 30, "why": "held for [duration]", "state": "healthy"}"#;
    assert_eq!(redacted(text), expected);
    let text = r#"{"detail": "Not a \"lock\" at all", "title": "Not Found", "code": "not_found"}"#;
    let expected = r#"{"detail": "[text]", "title": "Not Found", "code": "not_found"}"#;
    assert_eq!(without_sentences(text), expected);
}

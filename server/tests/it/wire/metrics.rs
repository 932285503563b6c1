//! Names, kinds and help texts of the metrics in a scrape.

/// The `# HELP` and `# TYPE` lines of a scrape, sorted.
pub(crate) fn assert_metrics_snapshot(page: &str) {
    let mut lines: Vec<&str> = page.lines().filter(|line| line.starts_with("# ")).collect();
    lines.sort_unstable_by_key(|line| line.split(' ').nth(2));
    super::assert_snapshot("metrics", &lines.join("\n"));
}

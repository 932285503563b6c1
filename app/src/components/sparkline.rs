//! Durations of a backend's last scans as a line; a failed scan is a hatched gap, never zero.

use domain::format;
use leptos::prelude::*;

/// Height of the viewport; the line stays off both edges.
const HEIGHT: f64 = 100.0;
const CLEAR: f64 = 8.0;
const WIDTH: f64 = 1000.0;

#[component]
pub fn Sparkline(answers_ms: Vec<Option<u32>>) -> impl IntoView {
    let title = summary(&answers_ms);
    let gaps: Vec<_> = gaps(&answers_ms)
        .into_iter()
        .map(|(x, width)| {
            view! { <rect class="hatch" x=format!("{}%", format::measure(x)) width=format!("{}%", format::measure(width)) height="100%"></rect> }
                .into_any()
        })
        .collect();
    let lines: Vec<_> = lines(&answers_ms)
        .into_iter()
        .map(|points| view! { <polyline class="ser" points=points></polyline> }.into_any())
        .collect();
    view! {
        <svg class="ch spark" height="16" role="img">
            <title>{title}</title>
            {gaps}
            <svg viewBox="0 0 1000 100" preserveAspectRatio="none" width="100%" height="100%">
                {lines}
            </svg>
        </svg>
    }
}

/// Text alternative of the line.
pub fn summary(answers_ms: &[Option<u32>]) -> String {
    let known: Vec<i64> = answers_ms.iter().flatten().map(|ms| i64::from(*ms)).collect();
    let failed = u64::try_from(answers_ms.len() - known.len()).unwrap_or(0);
    let (Some(fastest), Some(slowest)) = (known.iter().min(), known.iter().max()) else {
        return if failed == 0 {
            "No scan yet.".to_owned()
        } else {
            format!("All {failed} scans failed.")
        };
    };
    let passes = format::counted(u64::try_from(answers_ms.len()).unwrap_or(0), "scan", "scans");
    let range = if fastest == slowest {
        format::latency(*fastest)
    } else {
        format!("{} to {}", format::latency(*fastest), format::latency(*slowest))
    };
    if failed == 0 {
        format!("Last {passes}: {range}.")
    } else {
        format!("Last {passes}: {range}; {failed} failed.")
    }
}

fn x(index: usize, count: usize) -> f64 {
    if count < 2 {
        0.0
    } else {
        index as f64 / (count - 1) as f64 * WIDTH
    }
}

/// Runs of successful scans as `points`, scaled to the slowest. A run of one is a short dash.
fn lines(answers_ms: &[Option<u32>]) -> Vec<String> {
    let count = answers_ms.len();
    let slowest = f64::from(answers_ms.iter().flatten().copied().max().unwrap_or(0).max(1));
    let y = |ms: u32| HEIGHT - CLEAR - f64::from(ms) / slowest * (HEIGHT - 2.0 * CLEAR);
    let indexed: Vec<(usize, Option<u32>)> = answers_ms.iter().copied().enumerate().collect();
    indexed
        .split(|(_, ms)| ms.is_none())
        .filter(|run| !run.is_empty())
        .map(|run| {
            let mut points: Vec<(f64, f64)> = run
                .iter()
                .filter_map(|(index, ms)| ms.map(|ms| (x(*index, count), y(ms))))
                .collect();
            if let [(x, y)] = points[..] {
                points.push((x + 8.0, y));
            }
            points
                .iter()
                .map(|(x, y)| format!("{},{}", format::measure(*x), format::measure(*y)))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

/// Runs of failed scans as start and width in per cent; each extends half a step to both sides.
fn gaps(answers_ms: &[Option<u32>]) -> Vec<(f64, f64)> {
    let count = answers_ms.len();
    let step = if count < 2 {
        100.0
    } else {
        100.0 / (count - 1) as f64
    };
    let round = |at: f64| (at * 10.0).round() / 10.0;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (index, _) in answers_ms.iter().enumerate().filter(|(_, ms)| ms.is_none()) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == index => *end = index,
            _ => runs.push((index, index)),
        }
    }
    runs.into_iter()
        .map(|(first, last)| {
            let from = (first as f64 * step - step / 2.0).max(0.0);
            let to = (last as f64 * step + step / 2.0).min(100.0);
            (round(from), round(to - from))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_scans_break_the_line_and_are_in_the_summary() {
        // Two runs around a gap of two, and their summary.
        let answers = [Some(2), Some(4), None, None, Some(3)];
        assert_eq!(lines(&answers), ["0,50 250,8", "1000,29 1008,29"]);
        assert_eq!(gaps(&answers), [(37.5, 50.0)]);
        assert_eq!(summary(&answers), "Last 5 scans: 2 ms to 4 ms; 2 failed.");
        assert_eq!(summary(&[]), "No scan yet.");
        assert_eq!(summary(&[None, None]), "All 2 scans failed.");
        assert_eq!(
            (lines(&[]).len(), gaps(&[]).len(), lines(&[Some(0)]).len()),
            (0, 0, 1)
        );
    }
}

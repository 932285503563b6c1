//! The number of stored series does not grow with lock names.

use std::sync::Arc;

use domain::history::template::template;
use runtime::telemetry::cardinality::PER_BACKEND_MAX;
use runtime::telemetry::instruments::BackendAttributes;
use runtime::telemetry::{instruments, scrape};

/// In letters alone, so that each name is a template of its own: the worst case.
fn name(mut number: usize) -> String {
    let mut name = String::from("n");
    while number > 0 {
        name.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
        number /= 26;
    }
    name
}

#[test]
fn a_hundred_thousand_names_make_a_hundred_series() {
    // Each acquired, waited for and released once.
    let (meters, of) = (instruments(), BackendAttributes::builtin());
    for number in 0..100_000 {
        let template: Arc<str> = template(name(number).as_bytes()).into();
        meters.acquired(&of, &template, "acquired", 1);
        meters.waited(&of, &template, "acquired", 5);
        meters.record_holds(&of, &template, "released", &[1_000]);
    }
    let page = scrape().unwrap();
    let series = |start: &str| page.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(
        series("distributed_lock_acquire_attempts_total{"),
        PER_BACKEND_MAX + 1
    );
    assert_eq!(
        series("distributed_lock_hold_duration_seconds_count{"),
        PER_BACKEND_MAX + 1
    );
    let other = page.lines().find(|line| {
        line.starts_with("distributed_lock_acquire_attempts_total{") && line.contains("prefix=\"other\"")
    });
    assert!(
        other
            .unwrap()
            .ends_with(&format!(" {}", 100_000 - PER_BACKEND_MAX)),
        "{other:?}"
    );
    assert!(!page.contains("otel_metric_overflow"));
}

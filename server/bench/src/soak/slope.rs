//! Slope of a series of values.

/// Slope per hour of the second values over the first, which are minutes, by least squares. 0 for fewer than two
/// points.
pub(super) fn per_hour(points: &[(f64, f64)]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "one a minute: few")]
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|it| it.0), mean(|it| it.1));
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (x, y) in points {
        covariance += (x - mean_x) * (y - mean_y);
        variance += (x - mean_x) * (x - mean_x);
    }
    if variance > 0.0 {
        60.0 * covariance / variance
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_is_per_hour_and_zero_for_constant_values() {
        // Detects a missed leak and a false one.
        let grows: Vec<(f64, f64)> = (1..=10)
            .map(|it| (f64::from(it), 100.0 + 0.5 * f64::from(it)))
            .collect();
        assert!((per_hour(&grows) - 30.0).abs() < 1e-9);
        let stays: Vec<(f64, f64)> = (1..=10).map(|it| (f64::from(it), 7.0)).collect();
        assert!(per_hour(&stays).abs() < 1e-9);
        assert!(per_hour(&[]).abs() < 1e-9 && per_hour(&[(1.0, 5.0)]).abs() < 1e-9);
    }
}

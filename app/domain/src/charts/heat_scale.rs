//! The heat ramp: six steps of one hue that differ in lightness only.

/// Steps besides the lightest, which means zero.
pub const STEPS: u8 = 5;

/// 0 for zero, 1 to 5 for shares of the largest value; a value above zero is at least 1.
pub fn heat(value: f64, largest: f64) -> u8 {
    if value.is_nan() || value <= 0.0 || largest <= 0.0 {
        return 0;
    }
    (1..=STEPS)
        .find(|step| value / largest <= f64::from(*step) / f64::from(STEPS))
        .unwrap_or(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_the_lightest_and_the_largest_the_darkest() {
        let steps = [0.0, 0.001, 20.0, 20.1, 60.0, 99.0, 100.0, 400.0].map(|value| heat(value, 100.0));
        assert_eq!(steps, [0, 1, 1, 2, 3, 5, 5, 5]);
        assert_eq!([heat(1.0, 0.0), heat(f64::NAN, 1.0), heat(-1.0, 1.0)], [0, 0, 0]);
    }
}

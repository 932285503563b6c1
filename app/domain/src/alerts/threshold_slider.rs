//! The threshold of a preview as a slider over its chart: range, step and number format. Pure
//! arithmetic, without drawing.

use super::condition_kind::Param;
use super::unit::Unit;

/// Approximate number of steps over the height of the chart.
const STEPS: i64 = 100;
const NICE_MS: [i64; 20] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
    300_000, 900_000, 1_800_000,
];
const HOUR_MS: i64 = 3_600_000;

/// Integers are in the unit of the threshold: milliseconds, thousandths, hundredths. The value
/// is a multiple of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThresholdSlider {
    pub min: i64,
    pub max: i64,
    pub step: i64,
    pub value: i64,
    /// Suffix that makes the number a threshold: `m`, `%` or empty.
    pub suffix: &'static str,
    /// Name of the unit for display.
    pub unit_name: &'static str,
    /// Decimal places.
    pub places: usize,
    /// Threshold units per displayed unit.
    size: i64,
}

impl ThresholdSlider {
    /// Slider over a chart with maximum `most`, with headroom above both.
    pub fn new(param: &Param, value: i64, most: i64) -> Self {
        let highest = value.max(most).max(1);
        let padded = highest.saturating_mul(11) / 10 + 1;
        let top = padded.min(param.max.max(highest));
        let step = step_of(param.unit, top);
        let min = value.rem_euclid(step);
        let count = (top - min + step - 1) / step;
        let (size, suffix, unit_name, places) = display_unit(param.unit, step, value);
        Self {
            min,
            max: min + count.max(1) * step,
            step,
            value,
            suffix,
            unit_name,
            places,
            size,
        }
    }

    /// The number as in a form, without suffix: `90`, `12.5`.
    pub fn number(&self, value: i64) -> String {
        let scale = 10_i64.pow(u32::try_from(self.places).unwrap_or(0));
        let value = value * scale / self.size;
        match self.places {
            0 => value.to_string(),
            places => format!("{}.{:0places$}", value / scale, value % scale),
        }
    }
}

/// The threshold for a slider number from a form, clamped to its bounds. `None`: not a number.
pub fn moved_to(param: &Param, number: &str, suffix: &str) -> Option<i64> {
    let value = param.unit.parse(&format!("{}{suffix}", number.trim())).ok()?;
    Some(value.clamp(param.min, param.max))
}

fn step_of(unit: Unit, top: i64) -> i64 {
    let target = (top / STEPS).max(1);
    if unit != Unit::Duration {
        let mut ten = 1;
        while ten * 10 <= target {
            ten *= 10;
        }
        let nice = [5, 2].into_iter().find(|times| ten * times <= target);
        return ten * nice.unwrap_or(1);
    }
    let hours = target / HOUR_MS * HOUR_MS;
    let below = NICE_MS.into_iter().rev().find(|step| *step <= target);
    match (hours, below.unwrap_or(1)) {
        // Whole seconds as soon as ten of them fit.
        (0, 100..1_000) if top >= 10_000 => 1_000,
        (0, below) => below,
        (hours, _) => hours,
    }
}

/// The largest unit in which every step is a whole number, or has the fewest digits.
fn display_unit(unit: Unit, step: i64, value: i64) -> (i64, &'static str, &'static str, usize) {
    let fits = |size: &i64| step % size == 0 && value % size == 0;
    let digits = |sizes: &[i64]| sizes.iter().position(fits).unwrap_or(sizes.len());
    match unit {
        Unit::Duration => {
            let sizes = [
                (HOUR_MS, "h", "hours"),
                (60_000, "m", "minutes"),
                (1_000, "s", "seconds"),
            ];
            let found = sizes.into_iter().find(|(size, ..)| fits(size));
            let (size, suffix, unit_name) = found.unwrap_or((1, "ms", "milliseconds"));
            (size, suffix, unit_name, 0)
        }
        Unit::Count => (1, "", "", 0),
        Unit::Share => (10, "%", "per cent", digits(&[10])),
        Unit::Times => (100, "", "times", digits(&[100, 10])),
    }
}

#[cfg(test)]
mod tests {
    use super::super::condition_kind::ConditionKind;
    use super::*;

    #[test]
    fn slider_values_lie_on_steps_and_survive_a_round_trip() {
        // Fails if a value is off the steps: a browser rounds it, and an untouched slider seems
        // moved.
        for kind in ConditionKind::ALL {
            for param in kind.info().params {
                for value in [param.min, param.default.unwrap_or(param.min), param.max] {
                    for most in [0, 1, value / 3, value, value.saturating_mul(7)] {
                        let line = ThresholdSlider::new(param, value, most);
                        let case = format!("{kind:?} {} {value} {most}: {line:?}", param.name);
                        assert!(line.min <= value && value <= line.max, "{case}");
                        assert_eq!((value - line.min) % line.step, 0, "{case}");
                        assert_eq!((line.max - line.min) % line.step, 0, "{case}");
                        assert!(
                            line.max >= most && (line.max - line.min) / line.step <= 300,
                            "{case}"
                        );
                        for at in [line.min, value, line.min + line.step, line.max] {
                            let read = param.unit.parse(&format!("{}{}", line.number(at), line.suffix));
                            assert_eq!(read, Ok(at), "{case}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn slider_numbers_are_short_and_in_display_units() {
        // Fails if a screen reader reads milliseconds.
        let param = |kind: ConditionKind, name: &str| *kind.param(name).unwrap();
        let held = param(ConditionKind::LongHeld, "times_p95");
        let line = ThresholdSlider::new(&held, 300, 520);
        assert_eq!((line.number(line.value), line.step), ("3.00".to_owned(), 5));
        let waiting = param(ConditionKind::WaiterAge, "longer_than");
        let line = ThresholdSlider::new(&waiting, 60_000, 0);
        assert_eq!((line.number(line.value).as_str(), line.suffix), ("60", "s"));
        let line = ThresholdSlider::new(&waiting, 90_000, 24 * HOUR_MS);
        assert_eq!(
            (line.number(line.value).as_str(), line.unit_name),
            ("90", "seconds")
        );
        let share = param(ConditionKind::Contention, "share");
        let line = ThresholdSlider::new(&share, 500, 1_000);
        assert_eq!((line.number(line.value).as_str(), line.max), ("50", 1_000));
    }

    #[test]
    fn slider_input_is_clamped_to_the_threshold_bounds() {
        // Fails if the lowest position is refused or an invalid number accepted.
        let count = ConditionKind::FencingRejections.param("count").unwrap();
        assert_eq!(moved_to(count, "0", ""), Some(1));
        assert_eq!(moved_to(count, " 7 ", ""), Some(7));
        assert_eq!(moved_to(count, "seven", ""), None);
        let age = ConditionKind::WaiterAge.param("longer_than").unwrap();
        assert_eq!(moved_to(age, "90", "s"), Some(90_000));
        assert_eq!(moved_to(age, "9000", "d"), Some(24 * HOUR_MS));
        assert_eq!(moved_to(age, "90", "\u{202e}"), None);
    }
}

//! One measured figure and its goal.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// No goal: explains another figure.
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub name: String,
    pub measured: f64,
    pub unit: &'static str,
    pub goal: Goal,
    /// The lowest and the highest of several rounds; `measured` is their median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<[f64; 2]>,
}

impl Figure {
    /// The median of the values of several rounds, with the lowest and the highest; for an even number the higher of the two
    /// middle values.
    pub(crate) fn median(
        name: &str,
        values: impl IntoIterator<Item = f64>,
        goal: Goal,
        unit: &'static str,
    ) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let spread = sorted.first().zip(sorted.last());
        Self {
            name: name.to_owned(),
            measured: sorted.get(sorted.len() / 2).copied().unwrap_or(0.0),
            unit,
            goal,
            spread: spread.map(|(low, high)| [*low, *high]),
        }
    }

    pub(crate) fn at_most(name: &str, measured: f64, most: f64, unit: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            measured,
            unit,
            goal: Goal::AtMost(most),
            spread: None,
        }
    }

    pub(crate) fn at_least(name: &str, measured: f64, least: f64, unit: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            measured,
            unit,
            goal: Goal::AtLeast(least),
            spread: None,
        }
    }

    pub(crate) fn plain(name: &str, measured: f64, unit: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            measured,
            unit,
            goal: Goal::None,
            spread: None,
        }
    }

    /// Ratio of measurement and goal.
    fn percent_over(&self, goal: f64) -> String {
        if goal == 0.0 {
            return " ".repeat(7);
        }
        format!("x {:<5.2}", self.measured / goal)
    }

    /// `None`: no goal.
    pub(crate) fn meets_goal(&self) -> Option<bool> {
        match self.goal {
            Goal::AtMost(most) => Some(self.measured <= most),
            Goal::AtLeast(least) => Some(self.measured >= least),
            Goal::None => None,
        }
    }
}

/// Figures of one part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Section {
    pub title: &'static str,
    pub figures: Vec<Figure>,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        self.figures.iter().try_for_each(|figure| writeln!(f, "{figure}"))
    }
}

/// At most two decimals.
fn short(goal: f64) -> String {
    ((goal * 100.0).round() / 100.0).to_string()
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.meets_goal() {
            Some(true) => "met   ",
            Some(false) => "MISSED",
            None => "      ",
        };
        let digits = if self.measured < 10.0 && self.measured.fract() != 0.0 {
            2
        } else {
            0
        };
        write!(f, "{mark}  {:>10.digits$} {:<7}", self.measured, self.unit)?;
        match self.goal {
            Goal::AtMost(goal) => write!(f, " goal <= {:<7} {}", short(goal), self.percent_over(goal))?,
            Goal::AtLeast(goal) => write!(f, " goal >= {:<7} {}", short(goal), self.percent_over(goal))?,
            Goal::None => write!(f, " {:23}", "")?,
        }
        write!(f, "  {}", self.name)?;
        let Some([low, high]) = self.spread else {
            return Ok(());
        };
        write!(f, " ({low:.digits$} to {high:.digits$})")
    }
}

//! Budgets: figures that must not be missed.

use crate::table::{Table, figure};

/// Which side of the limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The figure may not exceed the limit.
    AtMost,
    /// The figure may not fall below the limit.
    AtLeast,
}

/// A measured figure and its limit.
#[derive(Clone, Debug)]
pub struct Budget {
    /// What was measured.
    pub what: String,
    /// What came out.
    pub figure: f64,
    /// Which side of the limit is good.
    pub side: Side,
    /// The limit.
    pub limit: f64,
    /// The unit of both.
    pub unit: &'static str,
}

impl Budget {
    /// A figure that may not exceed its limit.
    pub fn at_most(what: impl Into<String>, figure: f64, limit: f64, unit: &'static str) -> Self {
        Self { what: what.into(), figure, side: Side::AtMost, limit, unit }
    }

    /// A figure that may not fall below its limit.
    pub fn at_least(what: impl Into<String>, figure: f64, limit: f64, unit: &'static str) -> Self {
        Self { what: what.into(), figure, side: Side::AtLeast, limit, unit }
    }

    /// Whether it is kept. What could not be measured (not a number) is missed.
    pub fn is_kept(&self) -> bool {
        match self.side {
            Side::AtMost => self.figure <= self.limit,
            Side::AtLeast => self.figure >= self.limit,
        }
    }

    fn limit(&self) -> String {
        let side = if self.side == Side::AtMost { "at most" } else { "at least" };
        format!("{side} {} {}", figure(self.limit), self.unit)
    }
}

/// All budgets beside their figures.
pub fn table(budgets: &[Budget]) -> Table {
    let mut table = Table::new(&["budget", "limit", "measured", ""]);
    for budget in budgets {
        let measured = format!("{} {}", figure(budget.figure), budget.unit);
        let verdict = if budget.is_kept() { "kept" } else { "MISSED" };
        table.row([&budget.what, &budget.limit(), &measured, verdict]);
    }
    table
}

/// A line for each budget that is missed.
pub fn missed(budgets: &[Budget]) -> Vec<String> {
    let missed = budgets.iter().filter(|budget| !budget.is_kept());
    let line = |budget: &Budget| {
        format!("{}: {} {}, {}", budget.what, figure(budget.figure), budget.unit, budget.limit())
    };
    missed.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_on_the_limit_is_kept_and_one_beyond_is_named() {
        let budgets = [
            Budget::at_most("start", 50.0, 50.0, "ms"),
            Budget::at_most("idle plane", 30.25, 24.0, "KiB"),
            Budget::at_least("writers", 12_000.0, 12_000.0, "1/s"),
            Budget::at_least("writers", 9_999.0, 12_000.0, "1/s"),
            Budget::at_most("not measured", f64::NAN, 1.0, "ms"),
        ];
        let kept: Vec<bool> = budgets.iter().map(Budget::is_kept).collect();
        assert_eq!(kept, [true, false, true, false, false]);
        let lines = missed(&budgets);
        assert_eq!(lines[0], "idle plane: 30.2 KiB, at most 24.0 KiB");
        assert_eq!(lines[1], "writers: 9,999 1/s, at least 12,000 1/s");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn the_table_says_which_are_missed() {
        let shown = table(&[Budget::at_most("a", 1.0, 2.0, "ms"), Budget::at_most("b", 3.0, 2.0, "ms")]);
        let shown = shown.render();
        assert!(shown.contains("| a      | at most 2.00 ms |  1.00 ms |   kept |"), "{shown}");
        assert!(shown.contains("| b      | at most 2.00 ms |  3.00 ms | MISSED |"), "{shown}");
    }
}

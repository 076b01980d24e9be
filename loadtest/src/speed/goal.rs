//! What a figure should be: told with every report, never asserted. Machines differ.

use std::fmt;

use serde::Serialize;

/// A figure and its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Which figure.
    pub name: String,
    /// As measured.
    pub value: f64,
    /// `≤` or `≥`.
    pub sense: &'static str,
    /// What it should be at most, or at least.
    pub bound: f64,
    /// Whether it is.
    pub ok: bool,
}

impl Goal {
    /// The figure should be no more than this.
    pub(super) fn at_most(name: &str, value: f64, bound: f64) -> Self {
        Self { name: name.to_owned(), value, sense: "≤", bound, ok: value <= bound }
    }

    /// The figure should be no less than this.
    pub(super) fn at_least(name: &str, value: f64, bound: f64) -> Self {
        Self { name: name.to_owned(), value, sense: "≥", bound, ok: value >= bound }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = if self.ok { "reached" } else { "missed" };
        let (value, bound) = (short(self.value), short(self.bound));
        write!(f, "target {}: {value} {} {bound} {said}", self.name, self.sense)
    }
}

/// Three decimals of what is small, none of what is large.
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 1000.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// One line each.
pub(super) fn lines(f: &mut fmt::Formatter<'_>, goals: &[Goal]) -> fmt::Result {
    goals.iter().try_for_each(|goal| write!(f, "\n{goal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_itself_is_reached() {
        assert!(Goal::at_most("n", 1.5, 1.5).ok && Goal::at_least("n", 1.5, 1.5).ok);
        assert!(!Goal::at_most("n", 1.51, 1.5).ok && !Goal::at_least("n", 1.49, 1.5).ok);
        assert!(!Goal::at_most("nothing to measure", f64::NAN, 1.0).ok);
        assert_eq!(Goal::at_least("rate", 1234.5, 0.96).to_string(), "target rate: 1234 ≥ 0.96 reached");
    }
}

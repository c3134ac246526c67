//! What the lab promises, and whether it was kept.
//!
//! | promise | within |
//! |---|---|
//! | when a destination is left out, and when it is used again | 1 s or 10 % |
//! | failures that clients see | 5 or 20 % |
//! | 99th percentile of those served | 25 % |

use crate::seen::Figures;

/// One figure, predicted and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// What it is a figure of.
    pub of: Of,
    /// Whose, for what concerns one destination.
    pub destination: Option<String>,
    /// By the lab; `None`: it does not happen.
    pub predicted: Option<f64>,
    /// For real.
    pub measured: Option<f64>,
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// Seconds until a destination is left out.
    Out,
    /// Seconds until it is used again.
    Back,
    /// Requests.
    Failures,
    /// Milliseconds.
    P99,
}

impl Of {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Out, Self::Back, Self::Failures, Self::P99];

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Out => "out after, s",
            Self::Back => "back after, s",
            Self::Failures => "failures",
            Self::P99 => "p99, ms",
        }
    }

    /// How far a prediction may be from a measured value.
    pub fn tolerance(self, measured: f64) -> f64 {
        match self {
            Self::Out | Self::Back => (measured * 0.1).max(1.0),
            Self::Failures => (measured * 0.2).max(5.0),
            Self::P99 => measured * 0.25,
        }
    }
}

impl Promise {
    /// Whether it was kept.
    pub fn is_kept(&self) -> bool {
        match (self.predicted, self.measured) {
            (None, None) => true,
            (Some(predicted), Some(measured)) => (predicted - measured).abs() <= self.of.tolerance(measured),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

/// All promises about one contestant in one script. What happens in neither world is none.
pub fn promises(predicted: &Figures, measured: &Figures) -> Vec<Promise> {
    let overall = |of, predicted, measured| Promise {
        of,
        destination: None,
        predicted: Some(predicted),
        measured: Some(measured),
    };
    let mut all = Vec::new();
    for (one, other) in predicted.absences.iter().zip(&measured.absences) {
        for (of, predicted, measured) in [(Of::Out, one.out, other.out), (Of::Back, one.back, other.back)] {
            if predicted.is_some() || measured.is_some() {
                all.push(Promise { of, destination: Some(one.destination.clone()), predicted, measured });
            }
        }
    }
    all.push(overall(Of::Failures, predicted.failures, measured.failures));
    all.push(overall(Of::P99, predicted.p99, measured.p99));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_kept(of: Of, predicted: Option<f64>, measured: Option<f64>) -> bool {
        Promise { of, destination: None, predicted, measured }.is_kept()
    }

    #[test]
    fn promises_are_kept_up_to_their_bounds_and_not_beyond() {
        assert!(is_kept(Of::Out, Some(1.0), Some(2.0)) && !is_kept(Of::Out, Some(1.0), Some(2.1)));
        assert!(is_kept(Of::Back, Some(22.0), Some(20.0)) && !is_kept(Of::Back, Some(22.1), Some(20.0)));
        assert!(is_kept(Of::Failures, Some(5.0), Some(0.0)) && !is_kept(Of::Failures, Some(79.0), Some(100.0)));
        assert!(is_kept(Of::P99, Some(75.0), Some(100.0)) && !is_kept(Of::P99, Some(126.0), Some(100.0)));
        assert!(is_kept(Of::Out, None, None) && !is_kept(Of::Out, None, Some(0.1)));
    }
}

//! What the lab promises, and whether it was kept.
//!
//! | promise | within |
//! |---|---|
//! | when a destination is left out, and when it is used again | 1 s or 10 % |
//! | failures that clients see | 5 or 20 % |
//! | 99th percentile of those served | 25 % |
//!
//! Of the middle of the lab's runs, or of one of them: those runs differ by the proxy's own draws alone, and the real run is one
//! more draw. Where the lab's runs are alike the second adds nothing; where they differ by more than a promise allows, the middle
//! alone would be broken by chance, whoever is right.

use std::fmt;

use crate::seen::Figures;

/// One figure, predicted and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// What it is a figure of.
    pub of: Of,
    /// Whose, for what concerns one destination.
    pub destination: Option<String>,
    /// By the lab, the middle of its runs; `None`: it does not happen.
    pub predicted: Option<f64>,
    /// By each of those runs.
    pub runs: Vec<Option<f64>>,
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

    /// A value as reports have it.
    pub fn written(self, value: Option<f64>) -> String {
        match (self, value) {
            (_, None) => "never".to_owned(),
            (Self::Out | Self::Back, Some(value)) => format!("{value:.1}"),
            (Self::Failures | Self::P99, Some(value)) => format!("{value:.0}"),
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

/// Whether a promise was kept, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// By the middle of the lab's runs.
    ByTheMiddle,
    /// By one of the runs and not by their middle: a matter of draws.
    ByOneRun,
    /// By none.
    Broken,
}

impl Promise {
    /// Whether it was kept, and by what.
    pub fn kept(&self) -> Kept {
        if self.is_close(self.predicted) {
            Kept::ByTheMiddle
        } else if self.runs.iter().any(|run| self.is_close(*run)) {
            Kept::ByOneRun
        } else {
            Kept::Broken
        }
    }

    /// Whether it was kept.
    pub fn is_kept(&self) -> bool {
        self.kept() != Kept::Broken
    }

    fn is_close(&self, predicted: Option<f64>) -> bool {
        match (predicted, self.measured) {
            (None, None) => true,
            (Some(predicted), Some(measured)) => (predicted - measured).abs() <= self.of.tolerance(measured),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

/// In one line, with the least and the most that the lab's runs say.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value| self.of.written(value);
        let (of, destination) = (self.of.as_str(), self.destination.as_deref().unwrap_or("all"));
        let (predicted, measured) = (number(self.predicted), number(self.measured));
        write!(f, "{of} of {destination}: predicted {predicted}")?;
        let least = self.runs.iter().copied().min_by(by_value).map(number);
        let most = self.runs.iter().copied().max_by(by_value).map(number);
        if let (Some(least), Some(most)) = (least, most) {
            write!(f, " (from {least} to {most} in {} runs)", self.runs.len())?;
        }
        write!(f, ", measured {measured}")
    }
}

/// Never comes after any time.
fn by_value(a: &Option<f64>, b: &Option<f64>) -> std::cmp::Ordering {
    a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY))
}

/// All promises about one contestant in one script: the middle of the lab's runs, those runs, and what was measured. What happens
/// in no world is none.
pub fn promises(predicted: &Figures, runs: &[Figures], measured: &Figures) -> Vec<Promise> {
    let mut all = Vec::new();
    let mut promise = |of, destination: Option<&str>, what: &dyn Fn(&Figures) -> Option<f64>| {
        let runs: Vec<Option<f64>> = runs.iter().map(what).collect();
        let (predicted, measured) = (what(predicted), what(measured));
        if predicted.is_some() || measured.is_some() {
            all.push(Promise { of, destination: destination.map(str::to_owned), predicted, runs, measured });
        }
    };
    for (place, absence) in measured.absences.iter().enumerate() {
        let destination = Some(absence.destination.as_str());
        promise(Of::Out, destination, &|figures| figures.absences.get(place)?.out);
        promise(Of::Back, destination, &|figures| figures.absences.get(place)?.back);
    }
    promise(Of::Failures, None, &|figures| Some(figures.failures));
    promise(Of::P99, None, &|figures| Some(figures.p99));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_kept(of: Of, predicted: Option<f64>, measured: Option<f64>) -> bool {
        Promise { of, destination: None, predicted, runs: Vec::new(), measured }.is_kept()
    }

    #[test]
    fn promises_are_kept_up_to_their_bounds_and_not_beyond() {
        assert!(is_kept(Of::Out, Some(1.0), Some(2.0)) && !is_kept(Of::Out, Some(1.0), Some(2.1)));
        assert!(is_kept(Of::Back, Some(22.0), Some(20.0)) && !is_kept(Of::Back, Some(22.1), Some(20.0)));
        assert!(is_kept(Of::Failures, Some(5.0), Some(0.0)) && !is_kept(Of::Failures, Some(79.0), Some(100.0)));
        assert!(is_kept(Of::P99, Some(75.0), Some(100.0)) && !is_kept(Of::P99, Some(126.0), Some(100.0)));
        assert!(is_kept(Of::Out, None, None) && !is_kept(Of::Out, None, Some(0.1)));
    }

    #[test]
    fn a_promise_is_kept_by_a_run_that_comes_as_close_and_not_by_what_lies_between_runs() {
        let of = |runs: &[Option<f64>], measured| {
            Promise { of: Of::Out, destination: None, predicted: Some(2.0), runs: runs.to_vec(), measured }.kept()
        };
        let runs = [Some(2.0), Some(1.5), Some(6.0)];
        assert_eq!(of(&runs, Some(2.9)), Kept::ByTheMiddle);
        assert_eq!(of(&runs, Some(5.5)), Kept::ByOneRun);
        assert_eq!(of(&runs, Some(4.0)), Kept::Broken);
        assert_eq!((of(&runs, None), of(&[None, Some(2.0)], None)), (Kept::Broken, Kept::ByOneRun));
    }

    #[test]
    fn a_broken_promise_says_how_far_the_runs_go() {
        let runs = vec![Some(2.0), None, Some(1.5)];
        let promise =
            Promise { of: Of::Out, destination: Some("b".into()), predicted: Some(2.0), runs, measured: None };
        assert_eq!(
            promise.to_string(),
            "out after, s of b: predicted 2.0 (from 1.5 to never in 3 runs), measured never"
        );
    }
}

//! Models of other products' rules, one file each, where Lazaret has no policy of the same arithmetic.
//!
//! A model decides for one proxy: it hears what attempts and its own probes came to, and says who is out. Its words go into
//! the health core as values set from outside, so availability, balancing and retry are the production code for it, too.
//! Which of them were held against the product itself, and which are called "model of", says [`crate::policy::Standing`].

pub mod envoy;

pub mod haproxy;

pub mod two_draws;

use model::outcome::Outcome;
use model::time::Timestamp;

/// A model of another product's rule.
pub trait Model {
    /// An attempt at a destination ended, and its request goes on elsewhere or does not.
    fn on_outcome(&mut self, now: Timestamp, destination: usize, outcome: &Outcome, then: Then);

    /// A probe of its own ended.
    fn on_probe(&mut self, now: Timestamp, destination: usize, end: ProbeResult);

    /// When [`Self::on_timeout`] is wanted; `None`: not at all.
    fn poll_timeout(&self) -> Option<Timestamp>;

    /// Some time has come.
    fn on_timeout(&mut self, now: Timestamp);

    /// The next probe to send now; to be asked after each call until there is none.
    fn poll_probe(&mut self) -> Option<usize>;

    /// Whether a destination gets no requests.
    fn is_out(&self, destination: usize) -> bool;
}

/// What becomes of a request after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Another attempt.
    Again,
    /// Its client has the answer.
    Answered,
    /// Its client has none: the connection broke before a response.
    Dropped,
}

/// What a probe came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// As expected.
    Passed,
    /// Not so.
    Failed,
}

#[cfg(test)]
mod tests {
    use model::classify::status_class;
    use model::outcome::OutcomeClass;

    use super::Outcome;

    pub(super) fn end(status: u16) -> Outcome {
        let class = status_class(Some(status));
        Outcome { class, failure: None, status: Some(status), retryable: false, client_gone: false }
    }

    pub(super) fn ok() -> Outcome {
        Outcome { class: OutcomeClass::Ok, ..end(200) }
    }
}

//! Waiting for something to become true, with a bound.

use std::thread;
use std::time::{Duration, Instant};

/// Asks every 5 ms until the answer is `Some`, and gives it back.
///
/// # Panics
///
/// With `what` when there is none within `bound`.
pub fn eventually<T>(what: &str, bound: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {bound:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

//! Requests that wait at their destinations for each other, so that a test knows which of them are in flight at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A place where requests wait until there are so many of them; then all go on, and the next ones gather. Clones are the
/// same place.
#[derive(Clone, Debug)]
pub struct Gathering(Arc<Place>);

impl Gathering {
    /// For `size` requests at a time; at least 1.
    pub fn of(size: usize) -> Self {
        Self(Arc::new(Place { size: size.max(1), came: Mutex::default(), more: Condvar::new() }))
    }

    /// Comes and waits for the others of its group. Whether they came within 10 s.
    #[must_use]
    pub fn wait(&self) -> bool {
        let Place { size, came, more } = &*self.0;
        let mut came = came.lock().unwrap_or_else(PoisonError::into_inner);
        *came += 1;
        let whole = came.next_multiple_of(*size);
        more.notify_all();
        let waited = more.wait_timeout_while(came, BOUND, |came| *came < whole);
        let (came, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *came >= whole
    }
}

impl PartialEq for Gathering {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Gathering {}

#[derive(Debug)]
struct Place {
    size: usize,
    /// Requests that have come so far, those that went on included.
    came: Mutex<usize>,
    more: Condvar,
}

const BOUND: Duration = Duration::from_secs(10);

//! One line a minute of each place in libraries that tell of what peers send.
//!
//! Our own lines are written so that no peer can make many of them; a library's are not: hickory warns of each reply that
//! does not fit its question, and whoever forges replies would fill the disk. What was asked for below `info` is meant to
//! be much, and is left alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Drops what comes from one place of a library within a minute of its last line.
#[derive(Default)]
pub(super) struct Quota {
    /// As many as there are places in the program.
    told: Mutex<HashMap<Identifier, Instant>>,
}

impl Quota {
    fn may_tell(&self, metadata: &Metadata<'_>, now: Instant) -> bool {
        if *metadata.level() > Level::INFO || !is_of_a_library(metadata.target()) {
            return true;
        }
        // Nothing panics half-way through.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let last = told.get(&metadata.callsite());
        let may = last.is_none_or(|last| now.saturating_duration_since(*last) >= PERIOD);
        if may {
            told.insert(metadata.callsite(), now);
        }
        may
    }
}

impl<S: Subscriber> Layer<S> for Quota {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.may_tell(event.metadata(), Instant::now())
    }
}

/// A library's lines have its modules' paths as their target.
fn is_of_a_library(target: &str) -> bool {
    let root = target.split("::").next().unwrap_or(target);
    LIBRARIES.iter().any(|library| root.starts_with(library))
}

/// Those that log on behalf of peers.
const LIBRARIES: [&str; 5] = ["hickory_", "h2", "hyper", "rustls", "tokio_rustls"];
const PERIOD: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    /// Counts what comes through.
    struct Count(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lines(log: impl Fn()) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let subscriber = tracing_subscriber::registry().with(Quota::default()).with(Count(Arc::clone(&count)));
        tracing::subscriber::with_default(subscriber, || (0..1000).for_each(|_| log()));
        count.load(Ordering::Relaxed)
    }

    #[test]
    fn a_thousand_warnings_of_one_place_in_a_library_are_one_line() {
        assert_eq!(lines(|| tracing::warn!(target: "hickory_net::udp", "a forged reply")), 1);
        let two = || {
            tracing::warn!(target: "hickory_net::udp", "one place");
            tracing::error!(target: "h2::proto", "another");
        };
        assert_eq!(lines(two), 2);
    }

    #[test]
    fn our_own_lines_and_those_asked_for_are_all_told() {
        assert_eq!(lines(|| tracing::warn!(target: "upstream", "ours")), 1000);
        assert_eq!(lines(|| tracing::debug!(target: "hickory_net::udp", "asked for")), 1000);
    }

    #[test]
    fn a_minute_later_the_next_line_is_told() {
        let quota = Quota::default();
        let start = Instant::now();
        let told = Arc::new(Mutex::new(Vec::new()));
        struct Ask(Arc<Quota>, Instant, Arc<Mutex<Vec<bool>>>);
        impl<S: Subscriber> Layer<S> for Ask {
            fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
                let after = [0, 59, 60, 61, 120].map(|seconds| self.1 + Duration::from_secs(seconds));
                let answers = after.map(|now| self.0.may_tell(event.metadata(), now));
                self.2.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
            }
        }
        let subscriber = tracing_subscriber::registry().with(Ask(Arc::new(quota), start, Arc::clone(&told)));
        tracing::subscriber::with_default(subscriber, || tracing::warn!(target: "hickory_net", "a forged reply"));
        assert_eq!(*told.lock().unwrap_or_else(PoisonError::into_inner), [true, false, true, false, true]);
    }
}

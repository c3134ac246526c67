//! Deadlines that blame nobody for time in which this process itself stood still.
//!
//! A process that is stopped, whose machine is paused or moved, or that gets no CPU, finds on waking that the time of all
//! whom it waits for is over, and that it has not heard what they said meanwhile: the kernel interrupts the wait for
//! events, so the runtime's timers fire before it has looked at a single socket.
//!
//! ```text
//!   waiting ── due, noticed in time ─────────────────────────────> over
//!      └────── due, noticed late ──> as long again, 1 s at most ──> over
//! ```

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, ready};

use model::time::{Timestamp, made_good};

use crate::Io;

/// A deadline for several steps, one after the other.
pub struct Deadline<I> {
    io: I,
    due: Cell<Timestamp>,
    /// It is put off once.
    is_put_off: Cell<bool>,
}

/// The time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over;

impl<I: Io> Deadline<I> {
    /// One that is due then.
    pub fn new(io: I, due: Timestamp) -> Self {
        Self { io, due: Cell::new(due), is_put_off: Cell::new(false) }
    }

    /// A part of what is left of this one, from now on.
    #[must_use]
    pub fn part(&self, share: u32) -> Self {
        let now = self.io.now();
        Self::new(self.io.clone(), now + self.due.get().since(now) / share.max(1))
    }

    /// What `part` was put off by must not be missing afterwards.
    pub fn follow(&self, part: &Self) {
        self.due.set(self.due.get().max(part.due.get()));
    }

    /// The end of `future`, unless the time is over before.
    pub async fn within<F: Future>(&self, future: F) -> Result<F::Output, Over> {
        let began = self.io.now();
        let mut future = pin!(future);
        let mut asleep = pin!(self.io.sleep_until(self.due.get()));
        poll_fn(|context| {
            loop {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(output));
                }
                ready!(asleep.as_mut().poll(context));
                // A step that began when the time was over has missed nothing.
                let (due, now) = (self.due.get().max(began), self.io.now());
                let Some(more) = made_good(due, now).filter(|_| !self.is_put_off.replace(true)) else {
                    return Poll::Ready(Err(Over));
                };
                self.due.set(now + more);
                asleep.as_mut().reset(self.io.instant(now + more));
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::pending;
    use std::time::Duration;

    use tokio::time::{advance, sleep};

    use super::*;
    use crate::sim::Sim;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_noticed_in_time_is_met_exactly() {
        let sim = Sim::new();
        let deadline = Deadline::new(sim.clone(), Timestamp::from_millis(300));
        assert_eq!(deadline.within(async { 1 }).await, Ok(1));
        assert_eq!(deadline.within(pending::<()>()).await, Err(Over));
        assert_eq!(sim.now(), Timestamp::from_millis(300));
        assert_eq!(deadline.within(pending::<()>()).await, Err(Over));
        assert_eq!(sim.now(), Timestamp::from_millis(300), "a step that begins too late has no time of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_answers_right_after_a_pause_of_the_process_is_heard() {
        let sim = Sim::new();
        let deadline = Deadline::new(sim.clone(), Timestamp::from_millis(300));
        // Both steps of this take longer than the time that is left after the pause.
        let steps = async {
            deadline.within(sleep(Duration::from_millis(20_400))).await?;
            deadline.within(sleep(Duration::from_millis(400))).await
        };
        let mut steps = pin!(steps);
        assert!(poll_fn(|context| Poll::Ready(steps.as_mut().poll(context))).await.is_pending());
        advance(Duration::from_secs(20)).await;
        assert_eq!(steps.await, Ok(()));
        assert_eq!(deadline.within(pending::<()>()).await, Err(Over));
        assert_eq!(sim.now(), Timestamp::from_secs(21), "a second more, and no longer");
    }
}

//! One timer per connection, set lazily.
//!
//! Setting a timer anew costs more than everything else that a fast request spends on time, and almost no timer ever
//! fires. So the runtime's timer stays where it is as long as it fires no later than what is due; when it fires early,
//! it is set to what is due by then. A deadline is met exactly all the same: it can only move the timer nearer.

use std::pin::Pin;
use std::task::{Context, Poll};

use io::Io;
use model::time::{Timestamp, made_good};
use tokio::task::coop::has_budget_remaining;
use tokio::time::Sleep;

/// A timer whose deadline is named by each call.
pub(crate) struct Timer<I> {
    io: I,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When the runtime's timer fires.
    armed: Timestamp,
    /// A deadline that passed while the process stood still, and until when it was put off.
    put_off: (Timestamp, Timestamp),
    /// Whether the task was told to the runtime's timer since it was set.
    is_registered: bool,
}

impl<I: Io> Timer<I> {
    /// One that was never set.
    pub(crate) fn new(io: I) -> Self {
        Self { io, sleep: None, armed: Timestamp::MAX, put_off: NEVER, is_registered: false }
    }

    /// Ready when `due` is past, and a moment later where that is noticed late ([`made_good`]). Otherwise the task is
    /// woken by then; it may be woken earlier. To be called by one task alone.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, due: Timestamp) -> Poll<()> {
        let mut until = if due == self.put_off.0 { self.put_off.1 } else { due };
        // What was asked for when it was past already is not noticed late.
        let mut was_armed = self.sleep.is_some() && self.armed <= until;
        if !was_armed {
            self.arm(until);
        }
        loop {
            let Some(sleep) = &mut self.sleep else { return Poll::Pending };
            let has_fired = if self.is_registered {
                sleep.is_elapsed()
            } else {
                // A task that has used up its turn is put off without being registered.
                self.is_registered = has_budget_remaining();
                sleep.as_mut().poll(context).is_ready()
            };
            if !has_fired {
                return Poll::Pending;
            }
            let now = self.io.now();
            if now >= until {
                let more = made_good(due, now).filter(|_| was_armed && until == due);
                let Some(more) = more else { return Poll::Ready(()) };
                until = now + more;
                self.put_off = (due, until);
            }
            self.arm(until);
            was_armed = false;
        }
    }

    fn arm(&mut self, due: Timestamp) {
        let instant = self.io.instant(due);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(instant),
            None => self.sleep = Some(Box::pin(tokio::time::sleep_until(instant))),
        }
        self.armed = due;
        self.is_registered = false;
    }
}

/// Nothing was put off.
const NEVER: (Timestamp, Timestamp) = (Timestamp::MAX, Timestamp::MAX);

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::time::Duration;

    use io::sim::Sim;
    use tokio::task::coop::consume_budget;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moves_is_met_exactly() {
        let sim = Sim::new();
        let mut timer = Timer::new(sim.clone());
        let at = Timestamp::from_millis;
        poll_fn(|context| timer.poll(context, at(100))).await;
        assert_eq!(sim.now(), at(100));
        // Armed far away, then wanted sooner, then later than what is armed.
        poll_fn(|context| Poll::Ready(timer.poll(context, at(10_000)))).await.is_pending();
        poll_fn(|context| timer.poll(context, at(150))).await;
        assert_eq!(sim.now(), at(150));
        let mut due = at(200);
        tokio::time::sleep(Duration::from_millis(10)).await;
        poll_fn(|context| {
            let fired = timer.poll(context, due);
            due = at(400);
            if fired.is_pending() { timer.poll(context, due) } else { fired }
        })
        .await;
        assert_eq!(sim.now(), at(400));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_was_put_off_is_woken_all_the_same() {
        let sim = Sim::new();
        let mut timer = Timer::new(sim.clone());
        let due = Timestamp::from_millis(100);
        let mut is_first = true;
        poll_fn(|context| {
            if is_first {
                is_first = false;
                while has_budget_remaining() {
                    let _ = pin!(consume_budget()).poll(context);
                }
            }
            timer.poll(context, due)
        })
        .await;
        assert_eq!(sim.now(), due);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_waited_for_while_the_process_stands_still_has_a_second_more_and_no_longer() {
        let sim = Sim::new();
        let mut timer = Timer::new(sim.clone());
        let due = Timestamp::from_millis(100);
        assert!(poll_fn(|context| Poll::Ready(timer.poll(context, due))).await.is_pending());
        tokio::time::advance(Duration::from_secs(20)).await;
        poll_fn(|context| timer.poll(context, due)).await;
        assert_eq!(sim.now(), Timestamp::from_secs(21));
        // What is asked for only after it was over has missed nothing.
        poll_fn(|context| timer.poll(context, Timestamp::from_millis(200))).await;
        assert_eq!(sim.now(), Timestamp::from_secs(21));
    }
}

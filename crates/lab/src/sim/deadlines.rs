//! Deadlines of one kind all lie the same span after what they are for, so they end in the order in which they were set:
//! a queue, with one planned event for its head, in place of an event for each.

use std::collections::VecDeque;

use model::time::Timestamp;

/// Deadlines of one kind.
#[derive(Debug, Default)]
pub struct Deadlines {
    queue: VecDeque<(Timestamp, Mark)>,
    is_planned: bool,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The flight's place.
    pub flight: u32,
    /// The number of the flight or the attempt that it is for.
    pub serial: u32,
}

impl Deadlines {
    /// Sets one. Answers when an event has to be planned for it; `None`: there is one already.
    pub fn set(&mut self, at: Timestamp, mark: Mark) -> Option<Timestamp> {
        self.queue.push_back((at, mark));
        (!std::mem::replace(&mut self.is_planned, true)).then_some(at)
    }

    /// The planned event came: takes the first one that is over and still `stands`.
    pub fn take(&mut self, now: Timestamp, stands: impl Fn(Mark) -> bool) -> Option<Mark> {
        while let Some((at, mark)) = self.queue.front().copied() {
            if !stands(mark) {
                self.queue.pop_front();
                continue;
            }
            if at > now {
                return None;
            }
            self.queue.pop_front();
            return Some(mark);
        }
        None
    }

    /// After all that are over were taken: when the next event has to be planned.
    pub fn rest(&mut self) -> Option<Timestamp> {
        let next = self.queue.front().map(|(at, _)| *at);
        self.is_planned = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_comes_once_and_what_is_gone_never() {
        let mut deadlines = Deadlines::default();
        let mark = |serial| Mark { flight: 0, serial };
        let at = Timestamp::from_millis;
        assert_eq!(deadlines.set(at(10), mark(1)), Some(at(10)));
        assert_eq!(deadlines.set(at(20), mark(2)), None);
        assert_eq!(deadlines.set(at(30), mark(3)), None);
        assert_eq!(deadlines.take(at(10), |mark| mark.serial != 2), Some(mark(1)));
        assert_eq!(deadlines.take(at(10), |mark| mark.serial != 2), None);
        assert_eq!(deadlines.rest(), Some(at(30)));
        assert_eq!(deadlines.take(at(30), |_| true), Some(mark(3)));
        assert_eq!(deadlines.rest(), None);
        assert_eq!(deadlines.set(at(40), mark(4)), Some(at(40)));
    }
}

//! Who waits, in the order of arrival: for requests that no destination can take at once.
//!
//! ```text
//!   enter ──> [ any, any, a, any, b ... ]  at most so many        a free place at a: told is the first `any` or `a`
//!                 ^ leave, from any place                         who leaves has others told in its stead
//! ```
//! Nearly all take any destination, and then the first alone is told of what becomes free. A session that is bound to one
//! destination waits for that, and holds nobody up who would take another.
//!
//! A line knows no time and wakes nobody: whoever keeps it (one per cluster, shared by all workers) does that for those
//! that it names, and each waits for a bounded time. What has to hold is: where a place is free and somebody stands here
//! who may take it, one of them has been told and has not looked since. So who was told and leaves, with or without a
//! place, is followed by [`Line::foremost`].

use std::collections::{BTreeSet, VecDeque};

use model::id::Slot;

/// Those who wait, each with what it is woken by.
#[derive(Clone, Debug)]
pub struct Line<T> {
    waiting: VecDeque<Entry<T>>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    ticket: Ticket,
    /// The only destination that helps.
    wants: Option<Slot>,
    item: T,
}

/// A place in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), next: 0 }
    }
}

impl<T> Line<T> {
    /// Joins at the end; `None` when `most` wait already. `wants`: the only destination that helps.
    pub fn enter(&mut self, most: u32, wants: Option<Slot>, item: T) -> Option<Ticket> {
        if self.waiting.len() >= most as usize {
            return None;
        }
        let ticket = Ticket(self.next);
        // Never ends: 2^64 requests.
        self.next = self.next.wrapping_add(1);
        self.waiting.push_back(Entry { ticket, wants, item });
        Some(ticket)
    }

    /// Whether nobody stands here before whom one that wants this would go: it may look for a place without joining.
    pub fn is_free_for(&self, wants: Option<Slot>) -> bool {
        self.waiting.iter().all(|entry| entry.wants.is_some() && entry.wants != wants)
    }

    /// Leaves, from any place. A ticket that has left already changes nothing.
    pub fn leave(&mut self, ticket: Ticket) {
        if let Some(at) = self.find(ticket) {
            self.waiting.remove(at);
        }
    }

    /// What this one waits for now.
    pub fn wants(&mut self, ticket: Ticket, wants: Option<Slot>) {
        if let Some(entry) = self.find(ticket).and_then(|at| self.waiting.get_mut(at)) {
            entry.wants = wants;
        }
    }

    /// Whether this one is the first of those that take any destination.
    pub fn is_first(&self, ticket: Ticket) -> bool {
        self.waiting.iter().find(|entry| entry.wants.is_none()).is_some_and(|entry| entry.ticket == ticket)
    }

    /// The first that takes a place at this destination.
    pub fn first_for(&mut self, slot: Slot) -> Option<&mut T> {
        let found = self.waiting.iter_mut().find(|entry| entry.wants.is_none_or(|wants| wants == slot));
        found.map(|entry| &mut entry.item)
    }

    /// For each destination the first that would take it, where nobody knows which ones have a place free.
    pub fn foremost(&mut self) -> impl Iterator<Item = (Ticket, &mut T)> {
        let mut wanted = BTreeSet::new();
        let mut is_over = false;
        // Up to the first that takes any, that one included.
        let is_before = move |entry: &&mut Entry<T>| !std::mem::replace(&mut is_over, entry.wants.is_none());
        let before = self.waiting.iter_mut().take_while(is_before);
        let first = before.filter(move |entry| entry.wants.is_none_or(|wants| wanted.insert(wants)));
        first.map(|entry| (entry.ticket, &mut entry.item))
    }

    /// All that take one destination alone.
    pub fn bound(&mut self) -> impl Iterator<Item = &mut T> {
        self.waiting.iter_mut().filter(|entry| entry.wants.is_some()).map(|entry| &mut entry.item)
    }

    /// What this one is woken by.
    pub fn item(&mut self, ticket: Ticket) -> Option<&mut T> {
        let at = self.find(ticket)?;
        self.waiting.get_mut(at).map(|entry| &mut entry.item)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Tickets stand in ascending order.
    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(wants: &[Option<u32>]) -> (Line<usize>, Vec<Ticket>) {
        let mut line = Line::default();
        let enter = |(at, wants): (usize, &Option<u32>)| line.enter(99, wants.map(Slot), at).unwrap();
        let tickets = wants.iter().enumerate().map(enter).collect();
        (line, tickets)
    }

    fn foremost(line: &mut Line<usize>) -> Vec<usize> {
        line.foremost().map(|(_, item)| *item).collect()
    }

    #[test]
    fn they_stand_in_the_order_of_their_arrival() {
        let mut line = Line::default();
        let tickets: Vec<Ticket> = (0..3).map(|n| line.enter(3, None, n).unwrap()).collect();
        assert_eq!(line.enter(3, None, 9), None, "the line is full");
        for (n, &ticket) in tickets.iter().enumerate() {
            assert!(line.is_first(ticket));
            assert_eq!(line.first_for(Slot(7)), Some(&mut { n }));
            line.leave(ticket);
        }
        assert!(line.is_empty());
    }

    #[test]
    fn one_may_leave_from_the_middle_and_its_place_is_free() {
        let (mut line, tickets) = line(&[None, None, None]);
        line.leave(tickets[1]);
        line.leave(tickets[1]);
        assert_eq!(line.len(), 2);
        let last = line.enter(3, None, 7).unwrap();
        line.leave(tickets[0]);
        assert!(line.is_first(tickets[2]) && !line.is_first(last));
        *line.item(last).unwrap() = 8;
        line.leave(tickets[2]);
        assert_eq!(foremost(&mut line), [8]);
    }

    #[test]
    fn a_line_of_no_length_takes_nobody() {
        assert_eq!(Line::default().enter(0, None, ()), None);
    }

    #[test]
    fn a_place_goes_to_the_first_who_may_take_it() {
        let (mut line, tickets) = line(&[Some(1), Some(1), Some(2), None, Some(3), None]);
        let first_for = |line: &mut Line<usize>, slot| line.first_for(Slot(slot)).copied();
        assert_eq!([1, 2, 3].map(|slot| first_for(&mut line, slot)), [Some(0), Some(2), Some(3)]);
        assert_eq!(foremost(&mut line), [0, 2, 3], "the one for 3 comes after one that takes any");
        assert!(line.is_first(tickets[3]) && !line.is_first(tickets[0]));
        line.leave(tickets[3]);
        assert_eq!(first_for(&mut line, 3), Some(4));
        assert_eq!(foremost(&mut line), [0, 2, 4, 5]);
        line.wants(tickets[0], Some(Slot(9)));
        assert_eq!(first_for(&mut line, 1), Some(1));
    }

    #[test]
    fn only_who_wants_what_nobody_here_would_take_may_look_without_joining() {
        let (mut line, tickets) = line(&[Some(1), Some(1), None]);
        assert!(![None, Some(Slot(1)), Some(Slot(2))].iter().any(|wants| line.is_free_for(*wants)));
        line.leave(tickets[2]);
        assert!(line.is_free_for(None) && line.is_free_for(Some(Slot(2))) && !line.is_free_for(Some(Slot(1))));
        assert!(Line::<()>::default().is_free_for(None));
    }

    #[test]
    fn where_all_are_bound_elsewhere_nobody_takes_a_place() {
        let (mut line, tickets) = line(&[Some(1), Some(1)]);
        assert_eq!(line.first_for(Slot(2)), None);
        assert!(!line.is_first(tickets[0]));
        assert_eq!(foremost(&mut line), [0]);
        assert_eq!(line.bound().count(), 2);
    }
}

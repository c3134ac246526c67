//! The memory that running exchanges live in, used again and again.
//!
//! ```text
//!   task of a connection (lives for hours, idle most of the time, small)
//!      └─ a request came ──> seat off the stack ──> turn::serve to its end ──> seat back on the stack
//! ```
//! An exchange holds some kilobytes of state: the attempt, the response, what is sent and what is not. Were it a part of
//! the connection's own future, every idle connection would pay for it. So the exchange is a future of its own, in an
//! allocation of the worker's that the next exchange takes over. One future without end runs them all, one after the
//! other: each comes into being in its place, where one that was made elsewhere would have to be moved there with all its
//! room. Streams of HTTP/2 sit in seats of their own kind ([`crate::h2`]).

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use io::Io;
use upstream::Resolve;

use crate::client::Client;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::turn::{self, After};

/// The seats of one worker that nobody uses, for futures that are made of an `A` and end in a `B`.
pub(crate) struct Seats<A, B>(RefCell<Vec<Seat<A, B>>>);

/// What an exchange starts with.
pub(crate) struct Start<I: Io, R> {
    local: Rc<Local<I, R>>,
    client: Box<Client<I>>,
    work: Box<Workspace>,
    view: Rc<View>,
}

/// What it leaves.
pub(crate) struct End<I: Io> {
    client: Box<Client<I>>,
    after: After,
}

/// One exchange after the other.
pub(crate) struct Seat<A, B> {
    slot: Rc<Slot<A, B>>,
    exchanges: Pin<Box<dyn Future<Output = Infallible>>>,
}

/// What goes into a seat and comes out of it.
struct Slot<A, B> {
    start: Cell<Option<A>>,
    end: Cell<Option<B>>,
}

impl<A, B> Seat<A, B> {
    /// The next exchange begins. The one before has ended.
    pub(crate) fn start(&self, with: A) {
        self.slot.start.set(Some(with));
    }

    /// Runs it. Once it has ended, or before there was one, nothing is ever ready.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<B> {
        match self.exchanges.as_mut().poll(context) {
            Poll::Ready(never) => match never {},
            Poll::Pending => self.slot.end.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl<A, B> Default for Seats<A, B> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<A: 'static, B: 'static> Seats<A, B> {
    /// A seat, used before or new: `make` makes what is to sit there, the same for all of these seats.
    pub(crate) fn take<F, M>(&self, make: M) -> Seat<A, B>
    where
        F: Future<Output = B> + 'static,
        M: Fn(A) -> F + 'static,
    {
        let used = self.0.borrow_mut().pop();
        used.unwrap_or_else(|| {
            let slot = Rc::new(Slot { start: Cell::new(None), end: Cell::new(None) });
            Seat { exchanges: Box::pin(run(Rc::clone(&slot), make)), slot }
        })
    }

    /// Gives back a seat whose exchange has ended.
    pub(crate) fn give_back(&self, seat: Seat<A, B>) {
        let mut idle = self.0.borrow_mut();
        if idle.len() < IDLE {
            idle.push(seat);
        }
    }
}

/// Serves the request whose head lies in `work`, which it gives back to the worker.
pub(crate) async fn serve<I: Io, R: Resolve>(
    local: &Rc<Local<I, R>>,
    client: Box<Client<I>>,
    work: Box<Workspace>,
    view: &Rc<View>,
) -> (Box<Client<I>>, After) {
    let mut seat = local.seats.take(exchange::<I, R>);
    seat.start(Start { local: Rc::clone(local), client, work, view: Rc::clone(view) });
    let End { client, after } = poll_fn(|context| seat.poll(context)).await;
    local.seats.give_back(seat);
    (client, after)
}

async fn exchange<I: Io, R: Resolve>(start: Start<I, R>) -> End<I> {
    let Start { local, mut client, mut work, view } = start;
    let after = turn::serve(&local, &mut client, &mut work, &view).await;
    local.give_back(work);
    End { client, after }
}

/// All exchanges of one seat.
async fn run<A, B, F: Future<Output = B>>(slot: Rc<Slot<A, B>>, make: impl Fn(A) -> F) -> Infallible {
    loop {
        // Who starts the next one polls, too.
        let with = poll_fn(|_| slot.start.take().map_or(Poll::Pending, Poll::Ready)).await;
        slot.end.set(Some(make(with).await));
    }
}

/// So many are kept for the next ones; what a burst needs beyond goes back to the system.
const IDLE: usize = 256;

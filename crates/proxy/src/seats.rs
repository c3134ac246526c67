//! The memory that running exchanges live in, used again and again.
//!
//! ```text
//!   task of a connection (lives for hours, idle most of the time, small)
//!      └─ a request came ──> seat off the stack ──> turn::serve to its end ──> seat back on the stack
//! ```
//! An exchange holds some kilobytes of state: the attempt, the response, what is sent and what is not. Were it a part of
//! the connection's own future, every idle connection would pay for it. So the exchange is a future of its own, in an
//! allocation of the worker's that the next exchange takes over. Streams of HTTP/2 sit in seats of their own kind
//! ([`crate::h2`]).

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use io::Io;
use upstream::Resolve;

use crate::client::Client;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::turn::{self, After};

/// The seats of one worker that nobody uses, for futures that are made of an `A` and end in a `B`.
pub(crate) struct Seats<A, B>(RefCell<Vec<Box<dyn Seat<A, B>>>>);

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
pub(crate) trait Seat<A, B> {
    /// The next exchange begins; one that has not come to its end is dropped.
    fn start(&mut self, with: A);

    /// Runs it. Once it has ended, or before there was one, nothing is ever ready.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<B>;
}

impl<A, B> Default for Seats<A, B> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<A: 'static, B: 'static> Seats<A, B> {
    /// A seat, used before or new: `make` makes what is to sit there, the same for all of these seats.
    pub(crate) fn take<F, M>(&self, make: M) -> Box<dyn Seat<A, B>>
    where
        F: Future<Output = B> + 'static,
        M: Fn(A) -> F + 'static,
    {
        let used = self.0.borrow_mut().pop();
        used.unwrap_or_else(|| Box::new(Reused { future: Box::pin(None), make }))
    }

    /// Gives back a seat whose exchange has ended.
    pub(crate) fn give_back(&self, seat: Box<dyn Seat<A, B>>) {
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

/// A place for futures of one kind.
struct Reused<F, M> {
    future: Pin<Box<Option<F>>>,
    make: M,
}

impl<A, F: Future, M: Fn(A) -> F> Seat<A, F::Output> for Reused<F, M> {
    fn start(&mut self, with: A) {
        self.future.set(Some((self.make)(with)));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = self.future.as_mut().as_pin_mut() else { return Poll::Pending };
        let end = ready!(future.poll(context));
        self.future.set(None);
        Poll::Ready(end)
    }
}

/// So many are kept for the next ones; what a burst needs beyond goes back to the system.
const IDLE: usize = 256;

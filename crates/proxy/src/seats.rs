//! The memory that running exchanges live in, used again and again.
//!
//! ```text
//!   task of a connection (lives for hours, idle most of the time, small)
//!      └─ a request came ──> seat off the stack ──> turn::serve to its end ──> seat back on the stack
//! ```
//! An exchange holds some kilobytes of state: the attempt, the response, what is sent and what is not. Were it a part of
//! the connection's own future, every idle connection would pay for it. So the exchange is a future of its own, in an
//! allocation of the worker's that the next exchange takes over.

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

/// The seats of one worker that nobody uses.
pub(crate) struct Seats<I: Io, R>(RefCell<Vec<Box<dyn Seat<I, R>>>>);

/// What an exchange starts with.
struct Start<I: Io, R> {
    local: Rc<Local<I, R>>,
    client: Box<Client<I>>,
    work: Box<Workspace>,
    view: Rc<View>,
}

/// What it leaves.
struct End<I: Io> {
    client: Box<Client<I>>,
    after: After,
}

/// One exchange after the other.
trait Seat<I: Io, R> {
    /// The next exchange begins; one that has not come to its end is dropped.
    fn start(&mut self, with: Start<I, R>);

    /// Runs it. Once it has ended, or before there was one, nothing is ever ready.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End<I>>;
}

impl<I: Io, R> Default for Seats<I, R> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

/// Serves the request whose head lies in `work`, which it gives back to the worker.
pub(crate) async fn serve<I: Io, R: Resolve>(
    local: &Rc<Local<I, R>>,
    client: Box<Client<I>>,
    work: Box<Workspace>,
    view: &Rc<View>,
) -> (Box<Client<I>>, After) {
    let Seats(idle) = &local.seats;
    let used = idle.borrow_mut().pop();
    let mut seat = used.unwrap_or_else(|| Box::new(Reused { future: Box::pin(None), make: exchange::<I, R> }));
    seat.start(Start { local: Rc::clone(local), client, work, view: Rc::clone(view) });
    let End { client, after } = poll_fn(|context| seat.poll(context)).await;
    let mut idle = idle.borrow_mut();
    if idle.len() < IDLE {
        idle.push(seat);
    }
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

impl<I, R, F, M> Seat<I, R> for Reused<F, M>
where
    I: Io,
    F: Future<Output = End<I>>,
    M: Fn(Start<I, R>) -> F,
{
    fn start(&mut self, with: Start<I, R>) {
        self.future.set(Some((self.make)(with)));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End<I>> {
        let Some(future) = self.future.as_mut().as_pin_mut() else { return Poll::Pending };
        let end = ready!(future.poll(context));
        self.future.set(None);
        Poll::Ready(end)
    }
}

/// So many are kept for the next ones; what a burst needs beyond goes back to the system.
const IDLE: usize = 64;

//! A worker's pipes: large bodies between plain connections go through one without being copied.
//!
//! A pipe is lent to a body and comes back empty; one that still holds bytes then (the body broke off) is closed. Their
//! number is bounded; a body that gets none is read and written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ::io::Io;
use ::io::real::Pipe;

/// The pipes of one worker.
#[derive(Default)]
pub(crate) struct Pipes {
    idle: RefCell<Vec<Pipe>>,
    /// Those that are lent.
    lent: Cell<usize>,
}

/// A pipe for the life of one body.
pub(crate) struct Lent {
    pipes: Rc<Pipes>,
    /// There until it is dropped.
    pipe: Option<Pipe>,
}

impl Pipes {
    /// A pipe, if there is one to be had.
    pub(crate) fn lend(self: &Rc<Self>, io: &impl Io) -> Option<Lent> {
        if self.lent.get() >= MOST {
            return None;
        }
        let idle = self.idle.borrow_mut().pop();
        let pipe = idle.or_else(|| io.pipe().ok())?;
        self.lent.set(self.lent.get() + 1);
        Some(Lent { pipes: Rc::clone(self), pipe: Some(pipe) })
    }
}

impl Lent {
    /// The pipe.
    pub(crate) fn pipe(&mut self) -> Option<&mut Pipe> {
        self.pipe.as_mut()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pipes.lent.set(self.pipes.lent.get().saturating_sub(1));
        let Some(pipe) = self.pipe.take().filter(|pipe| pipe.held() == 0) else { return };
        let mut idle = self.pipes.idle.borrow_mut();
        if idle.len() < IDLE {
            idle.push(pipe);
        }
    }
}

/// From so many bytes on a pipe costs less than copying.
pub(crate) const LARGE: u64 = 64 * 1024;
/// Lent at once, in each worker. More bodies than that are copied.
const MOST: usize = 128;
/// Kept when nobody needs them.
const IDLE: usize = 32;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ::io::real::Real;
    use ::io::sim::Sim;

    use super::*;

    #[test]
    fn pipes_are_lent_up_to_a_bound_and_few_are_kept() {
        let (pipes, io) = (Rc::new(Pipes::default()), Real::new());
        let lent: Vec<_> = (0..MOST).map(|_| pipes.lend(&io).unwrap()).collect();
        assert!(pipes.lend(&io).is_none());
        drop(lent);
        assert_eq!((pipes.lent.get(), pipes.idle.borrow().len()), (0, IDLE));
        assert!(pipes.lend(&io).is_some());
    }

    #[tokio::test]
    async fn a_network_in_memory_has_none() {
        assert!(Rc::new(Pipes::default()).lend(&Sim::new()).is_none());
    }
}

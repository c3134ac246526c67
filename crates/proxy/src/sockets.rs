//! Which listening sockets there are, and which worker accepts on which.
//!
//! ```text
//!   inherited, by address ──┐                    ┌── worker 0: 0, n, 2n ...      more sockets than workers: several each
//!   or bound, one a worker ─┴─> sockets 0 .. k ──┤
//!                                                └── worker i: i mod k           fewer: some share one, and its queue
//! ```
//! An inherited socket is never bound again and never closed: connections may wait in it. A socket added to those of an
//! address would be harmless, but the next process would have to take it, too; so their number stays what it was.

use std::net::SocketAddr;

use ::io::{Io, Share};
use model::listener::Listener;

use crate::workers::StartError;

/// All sockets of all listeners, before there are threads: what can fail is done.
pub struct Sockets<I: Io> {
    pub(crate) bound: Vec<Bound<I>>,
    /// Those that no listener has asked for.
    unclaimed: Vec<I::Bound>,
}

/// A listener's sockets.
pub(crate) struct Bound<I: Io> {
    pub(crate) config: Listener,
    /// With the port that was found.
    pub(crate) address: SocketAddr,
    /// Each socket once.
    pub(crate) kept: Vec<I::Bound>,
    /// What each worker accepts on; descriptors of their own.
    pub(crate) shares: Vec<Vec<I::Bound>>,
}

impl<I: Io> Sockets<I> {
    /// Takes what is inherited by the address it is bound to, and binds the rest: `workers` sockets per listener. Where
    /// the configuration leaves the port to the system, a listener takes over what is inherited under its IP address
    /// and not claimed by port.
    pub fn bind(io: &I, listeners: &[Listener], inherited: Vec<I::Bound>, workers: usize) -> Result<Self, StartError> {
        let mut unclaimed = inherited;
        let (fixed, found): (Vec<_>, Vec<_>) = listeners.iter().partition(|listener| listener.address.port() != 0);
        let mut bound = bind_all(io, fixed, &mut unclaimed, workers)?;
        bound.extend(bind_all(io, found, &mut unclaimed, workers)?);
        Ok(Self { bound, unclaimed })
    }

    /// Where the inherited sockets are bound that no listener asks for. They are closed with this value; a connection
    /// that waits in one is then reset, unless another process has it, too.
    pub fn unclaimed(&self, io: &I) -> Vec<SocketAddr> {
        self.unclaimed.iter().filter_map(|bound| io.bound_addr(bound).ok()).collect()
    }
}

/// Sockets for all of `listeners`: out of `inherited` where they are bound to the address, else new ones.
pub(crate) fn bind_all<'l, I: Io>(
    io: &I,
    listeners: impl IntoIterator<Item = &'l Listener>,
    inherited: &mut Vec<I::Bound>,
    workers: usize,
) -> Result<Vec<Bound<I>>, StartError> {
    let mut all = Vec::new();
    for config in listeners {
        let failed = |source| StartError::Bind { listener: config.id.clone(), address: config.address, source };
        let taken = claim(io, config.address, inherited);
        let kept = if taken.is_empty() { bind(io, config.address, workers).map_err(failed)? } else { taken };
        let address = match kept.first() {
            Some(first) => io.bound_addr(first).map_err(failed)?,
            None => config.address,
        };
        let shares = share(io, &kept, workers).map_err(failed)?;
        all.push(Bound { config: config.clone(), address, kept, shares });
    }
    Ok(all)
}

/// Takes out of `inherited` what is bound to `wanted`. With port 0 in it: all of the first port that is found.
fn claim<I: Io>(io: &I, wanted: SocketAddr, inherited: &mut Vec<I::Bound>) -> Vec<I::Bound> {
    let address = |bound: &I::Bound| io.bound_addr(bound).ok();
    let is_like = |at: &SocketAddr| at.ip() == wanted.ip() && (wanted.port() == 0 || at.port() == wanted.port());
    let Some(found) = inherited.iter().filter_map(address).find(is_like) else { return Vec::new() };
    let (taken, rest) = std::mem::take(inherited).into_iter().partition(|bound| address(bound) == Some(found));
    *inherited = rest;
    taken
}

fn bind<I: Io>(io: &I, mut address: SocketAddr, count: usize) -> std::io::Result<Vec<I::Bound>> {
    let mut sockets = Vec::with_capacity(count);
    for number in 0..count {
        let share = if number == 0 { Share::First } else { Share::Join };
        let socket = io.bind(address, share)?;
        if number == 0 {
            address = io.bound_addr(&socket)?;
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Descriptors for each worker, so that every socket has one who accepts and every worker something to accept on.
fn share<I: Io>(io: &I, sockets: &[I::Bound], workers: usize) -> std::io::Result<Vec<Vec<I::Bound>>> {
    let mut shares = Vec::with_capacity(workers);
    for worker in 0..workers {
        let is_his =
            |number: usize| number % workers == worker || (!sockets.is_empty() && worker % sockets.len() == number);
        let his = sockets.iter().enumerate().filter(|(number, _)| is_his(*number));
        shares.push(his.map(|(_, socket)| io.share_bound(socket)).collect::<std::io::Result<Vec<_>>>()?);
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ::io::sim::Sim;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_socket_has_an_acceptor_and_every_worker_a_socket() {
        let io = Sim::new();
        for (sockets, workers, expected) in
            [(4, 4, vec![1; 4]), (4, 2, vec![2; 2]), (5, 2, vec![3, 2]), (1, 3, vec![1; 3]), (2, 5, vec![1; 5])]
        {
            let kept = bind(&io, "127.0.0.1:0".parse().unwrap(), sockets).unwrap();
            let shares = share(&io, &kept, workers).unwrap();
            assert_eq!(
                shares.iter().map(Vec::len).collect::<Vec<_>>(),
                expected,
                "{sockets} sockets, {workers} workers"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn inherited_sockets_are_found_by_their_address() {
        let io = Sim::new();
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let mut inherited = bind(&io, at("127.0.0.1:80"), 2).unwrap();
        inherited.extend(bind(&io, at("127.0.0.2:80"), 1).unwrap());
        assert!(claim(&io, at("127.0.0.1:81"), &mut inherited).is_empty());
        assert_eq!(claim(&io, at("127.0.0.1:80"), &mut inherited).len(), 2);
        assert_eq!(claim(&io, at("127.0.0.2:0"), &mut inherited).len(), 1);
        assert!(inherited.is_empty());
    }
}

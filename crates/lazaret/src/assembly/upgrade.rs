//! Handing over to a successor, and what is left to do afterwards.
//!
//! ```text
//!   serving ── HandOver ──> offers ──ready──> suspends probes ──serving──> old ── last exchange, grace, or End ──> over
//!      ^                       │                     │
//!      └── successor gone ─────┴─────────────────────┘
//! ```
//! An old generation answers nobody who asks about health: its control API has ended, its nodes are not reported.

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use io::Io;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::supervisor::{POLL, Supervisor};
use crate::inheritance::hand_over::{Generation, Goods, Hold, Successor};
use crate::running::{HandOverError, Order, ReloadError};

/// Old processes that may finish at the same time.
const OLD: usize = 2;

/// Whether a stop was asked for while something else was going on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    None,
    Stop,
}

impl Supervisor {
    /// Hands over to the process at the other end of `stream`. When it fails, everything is as before.
    pub(super) async fn hand_over(
        &mut self,
        stream: UnixStream,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> (Result<Successor, HandOverError>, Wish) {
        let mut wish = Wish::None;
        let handed = self.conversation(stream, orders, &mut wish).await;
        (handed, wish)
    }

    async fn conversation(
        &mut self,
        stream: UnixStream,
        orders: &mut mpsc::UnboundedReceiver<Order>,
        wish: &mut Wish,
    ) -> Result<Successor, HandOverError> {
        let successor = Successor::new(stream);
        let hold = successor.hold()?;
        let goods = self.goods()?;
        let io = self.io;
        let offered = move || successor.offer(&goods, || io.now());
        let successor = self.meanwhile(offered, &hold, orders, wish).await?;
        let saved = self.monitor.suspend().await.map_err(|_| HandOverError::Stopping)?;
        match self.meanwhile(move || successor.give(&saved), &hold, orders, wish).await {
            Ok(successor) => Ok(successor),
            Err(error) => {
                // Only a monitor that has ended cannot; then there is nothing to probe.
                let _ = self.monitor.resume().await;
                Err(error)
            }
        }
    }

    /// Does something that blocks on a thread of its own, and listens to others meanwhile.
    async fn meanwhile<T: Send + 'static>(
        &mut self,
        blocks: impl FnOnce() -> std::io::Result<T> + Send + 'static,
        hold: &Hold,
        orders: &mut mpsc::UnboundedReceiver<Order>,
        wish: &mut Wish,
    ) -> Result<T, HandOverError> {
        let mut task = tokio::task::spawn_blocking(blocks);
        let mut is_owned = true;
        loop {
            tokio::select! {
                done = &mut task => return match done {
                    Ok(done) => Ok(done?),
                    Err(error) => Err(HandOverError::Successor(error.to_string())),
                },
                order = orders.recv(), if is_owned => match order {
                    Some(Order::Stop) => {
                        *wish = Wish::Stop;
                        hold.hang_up();
                    }
                    Some(Order::Reload(reply) | Order::Reconfigure(_, reply)) => {
                        let _ = reply.send(Err(ReloadError::Busy));
                    }
                    Some(Order::HandOver(_, reply)) => {
                        let _ = reply.send(Err(HandOverError::Busy));
                    }
                    Some(order @ (Order::SetHealth(..) | Order::ReopenLogs)) => self.obey(order).await,
                    None => {
                        is_owned = false;
                        hold.hang_up();
                    }
                },
                Some(command) = self.commands.recv() => command.busy(),
            }
        }
    }

    fn goods(&mut self) -> std::io::Result<Goods> {
        self.generations.retain(Generation::is_alive);
        let sockets: std::io::Result<Vec<_>> = self.workers.sockets().map(|(_, socket)| socket.try_clone()).collect();
        // This one is about to be the newest old generation: of the others only so many may stay.
        let newest = self.generations.iter().rev().take(OLD - 1).rev();
        let generations: std::io::Result<Vec<_>> = newest.map(Generation::share).collect();
        Ok(Goods { sockets: sockets?, control: self.control_sockets.share()?, generations: generations? })
    }

    /// The life of an old generation: nothing is accepted, what is in flight ends.
    pub(super) async fn finish(&mut self, successor: Successor, orders: &mut mpsc::UnboundedReceiver<Order>) {
        self.control_sockets.hand_over();
        if let Some(stop) = self.control_stop.take() {
            let _ = stop.send(());
        }
        let n_surplus = (self.generations.len() + 1).saturating_sub(OLD);
        self.generations.iter().take(n_surplus).for_each(Generation::end);
        self.generations.clear();
        let drain = self.reloads.config().drain;
        self.workers.drain(proxy::Drain::at_leisure(drain.upgrade_grace));
        let hold = successor.hold().ok();
        let told = tokio::task::spawn_blocking(move || successor.ends_us());
        self.outlive(drain.grace, told, orders).await;
        // Who listens for the end need not any more; the runtime would wait for it.
        if let Some(hold) = hold {
            hold.hang_up();
        }
    }

    async fn outlive(
        &mut self,
        grace: Duration,
        mut told: JoinHandle<bool>,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) {
        let mut is_listening = true;
        while !self.workers.is_finished() {
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                told = &mut told, if is_listening => {
                    if told.is_ok_and(|ends| ends) {
                        return;
                    }
                    is_listening = false;
                }
                order = orders.recv() => match order {
                    // In a hurry now.
                    Some(Order::Stop) => self.workers.drain(proxy::Drain::within(grace)),
                    Some(order) => drop(order),
                    None => return,
                },
            }
        }
    }

    /// Whether another process serves in this one's place.
    pub(super) fn note_handed_over(&self) {
        self.is_handed_over.store(true, Ordering::Release);
    }
}

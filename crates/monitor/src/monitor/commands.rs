//! What others ask of the monitor, one thing after the other.

use ::io::Io;
use bridge::Reach;
use health::Input;
use upstream::Resolve;

use super::{Monitor, Probing, Turn, not_sent};
use crate::handle::Command;

impl<I: Io, R: Resolve> Monitor<I, R> {
    /// Does what is asked. `None`: nobody is left who could ask.
    pub(super) fn obey(&mut self, command: Option<Command>) -> Turn {
        let now = self.io.now();
        // The answer comes last: who asked may rely on what was done. A reply that nobody waits for is dropped.
        match command {
            None => return Turn::Over,
            // Commands are heard after the first turn's work.
            Some(Command::Begun(reply)) => {
                let _ = reply.send(());
            }
            Some(Command::Configure { config, reply }) => match self.check(now, &config) {
                Ok(()) => {
                    self.park(now, config, reply);
                }
                Err(error) => {
                    self.carry_out();
                    let _ = reply.send(Err(error));
                }
            },
            Some(Command::Refused { summary, reply }) => {
                self.core.handle(now, Input::ConfigRefused { summary });
                self.carry_out();
                let _ = reply.send(());
            }
            Some(Command::SetHealth { set, reply }) => {
                self.core.handle(now, Input::HealthSet(set));
                self.carry_out();
                let _ = reply.send(());
            }
            Some(Command::Drain(reply)) => {
                self.core.handle(now, Input::DrainStarted);
                self.carry_out();
                let _ = reply.send(());
            }
            Some(Command::Suspend(reply)) => {
                self.probing = Probing::Suspended;
                for ticket in self.probes.cancel_all() {
                    self.core.handle(now, not_sent(ticket));
                }
                // What was seen so far goes along.
                self.drain(Reach::All);
                self.carry_out();
                let _ = reply.send(self.core.core().save());
            }
            Some(Command::Resume(reply)) => {
                self.probing = Probing::On;
                let _ = reply.send(());
            }
            Some(Command::Record { instance, saved_at_unix_ms, reply }) => {
                let _ = reply.send(self.record(now, instance, saved_at_unix_ms));
            }
            Some(Command::SpoolTo { spool, reply }) => {
                self.core.spool(spool.as_ref().map(|spool| spool.author().clone()));
                self.spool = spool;
                let _ = reply.send(());
            }
            Some(Command::Shutdown(reply)) => {
                self.core.cut();
                self.spool_pieces();
                let _ = reply.send(());
                return Turn::Over;
            }
        }
        Turn::On
    }
}

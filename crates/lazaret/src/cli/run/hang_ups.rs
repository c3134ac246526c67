//! Who reads the configuration again on SIGHUP, when an upgrade is under way or done.
//!
//! ```text
//!   Alone ── begins ──> UnderWay ──┬─ fails ──> Alone          SIGHUP meanwhile: read here, then
//!     │                    │       └─ done ───> HandedOver     SIGHUP meanwhile: read there, then
//!     └ SIGHUP: read here  └ SIGHUP: later       └ SIGHUP: read there
//! ```
//! The new process may have read its configuration just before the one that SIGHUP is about was put there. So the signal
//! is passed on to it; read twice, a configuration changes nothing.

use std::sync::{Mutex, PoisonError};

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// What this process has been told so far.
#[derive(Default)]
pub(super) struct HangUps(Mutex<State>);

#[derive(Default)]
struct State {
    /// A second upgrade fails while the first is under way.
    upgrades: u32,
    is_hung_up: bool,
    successor: Option<Pid>,
}

/// Where the configuration is to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Here,
    /// In the process that serves in this one's place. It is a child that nobody waits for, so the number stays its own.
    There(Pid),
}

/// Whether a child has ended. It is not waited for by that, so that its number stays its own; and a signal to it would be taken.
pub(super) fn has_ended(child: Pid) -> bool {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(child), look).is_ok_and(|status| status != WaitStatus::StillAlive)
}

impl HangUps {
    /// SIGHUP. `None`: when the upgrade is over.
    pub(super) fn hung_up(&self) -> Option<Read> {
        self.with(|state| {
            state.is_hung_up = true;
            state.due()
        })
    }

    /// An upgrade begins.
    pub(super) fn begins(&self) {
        self.with(|state| state.upgrades += 1);
    }

    /// It has ended, with a process that serves in this one's place or without one; what is due now.
    pub(super) fn ends(&self, successor: Option<Pid>) -> Option<Read> {
        self.with(|state| {
            state.upgrades = state.upgrades.saturating_sub(1);
            state.successor = successor.or(state.successor);
            state.due()
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn due(&mut self) -> Option<Read> {
        if self.upgrades > 0 || !std::mem::take(&mut self.is_hung_up) {
            return None;
        }
        Some(self.successor.map_or(Read::Here, Read::There))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    const NEW: Pid = Pid::from_raw(7);

    #[test]
    fn without_an_upgrade_the_configuration_is_read_at_once() {
        let hang_ups = HangUps::default();
        assert_eq!(hang_ups.hung_up(), Some(Read::Here));
        assert_eq!(hang_ups.hung_up(), Some(Read::Here));
    }

    #[test]
    fn what_comes_in_an_upgrade_that_fails_is_done_afterwards_once() {
        let hang_ups = HangUps::default();
        hang_ups.begins();
        assert_eq!((hang_ups.hung_up(), hang_ups.hung_up()), (None, None));
        assert_eq!(hang_ups.ends(None), Some(Read::Here));
        hang_ups.begins();
        assert_eq!(hang_ups.ends(None), None, "nothing was asked for in this one");
    }

    #[test]
    fn what_comes_in_an_upgrade_or_after_it_goes_to_who_serves() {
        let hang_ups = HangUps::default();
        hang_ups.begins();
        assert_eq!(hang_ups.hung_up(), None);
        // A second one meanwhile is refused.
        hang_ups.begins();
        assert_eq!(hang_ups.ends(None), None);
        assert_eq!(hang_ups.ends(Some(NEW)), Some(Read::There(NEW)));
        assert_eq!(hang_ups.hung_up(), Some(Read::There(NEW)));
    }

    #[test]
    fn a_successor_that_has_ended_is_known_for_it_and_keeps_its_number() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert!(!has_ended(pid));
        drop(child.stdin.take());
        let until = Instant::now() + Duration::from_secs(20);
        while !has_ended(pid) {
            assert!(Instant::now() < until, "its input has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(has_ended(pid), "it was only looked at");
        assert!(child.wait().unwrap().success());
    }
}

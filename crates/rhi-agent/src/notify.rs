//! What the service manager is told (sd_notify(3)). Without one, every call does nothing.

use std::time::Duration;

use sd_notify::NotifyState;

/// The start is complete.
pub fn ready() {
    send(&[NotifyState::Ready]);
}

/// A reload begins; [`ready`] ends it.
pub fn reloading() {
    // systemd wants to know when the reload began, so that it can tell the READY that follows from an older one.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// A planned stop begins.
pub fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// One line for `systemctl status`.
pub fn status(line: &str) {
    send(&[NotifyState::Status(line)]);
}

/// The driver is alive.
pub fn alive() {
    send(&[NotifyState::Watchdog]);
}

/// How often [`alive`] is due: half of what the service manager waits for. `None`: it does not wait.
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2).filter(|interval| !interval.is_zero())
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(target: "rhi_agent", %error, "the service manager cannot be told");
    }
}

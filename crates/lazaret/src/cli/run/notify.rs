//! What the service manager is told (sd_notify(3)). Without one nobody listens, and nothing is sent.

use sd_notify::NotifyState;

/// It serves.
pub(super) fn ready() {
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// It serves in place of the process that the manager knows.
pub(super) fn took_over() {
    let _ = sd_notify::notify(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// An upgrade begins; [`ready`] or [`took_over`] ends it.
pub(super) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        let _ = sd_notify::notify(&[NotifyState::Reloading, now]);
    }
}

/// A planned stop begins.
pub(super) fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}

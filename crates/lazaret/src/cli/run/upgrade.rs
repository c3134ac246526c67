//! SIGUSR2: this very program is started once more, from the file that is there now, and takes over.
//!
//! The two speak over a socket pair that the new process finds as its standard input: nobody else has an end of it. The
//! new one has the same arguments, working folder, user and (under a service manager) control group.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lazaret::running::{HandOverError, Running, Upgrader};

use nix::unistd::Pid;

use super::hang_ups::HangUps;
use super::{notify, read_again};

/// Starts a successor and hands over, on a thread of its own: further signals are heard meanwhile.
pub(super) fn begin(running: &Running, hang_ups: &Arc<HangUps>) {
    let (upgrader, reloader, theirs) = (running.upgrader(), running.reloader(), Arc::clone(hang_ups));
    hang_ups.begins();
    let spawned = thread::Builder::new().name("upgrade".to_owned()).spawn(move || {
        notify::reloading();
        let successor = match upgrade(&upgrader) {
            Ok(successor) => Some(successor),
            Err(error) => {
                upgrader.note_failed(&error);
                tracing::error!(target: "lazaret", %error, "no upgrade, this process goes on");
                notify::ready();
                None
            }
        };
        if let Some(read) = theirs.ends(successor) {
            read_again(read, reloader);
        }
    });
    if let Err(error) = spawned {
        tracing::error!(target: "lazaret", %error, "no thread for an upgrade");
        if let Some(read) = hang_ups.ends(None) {
            read_again(read, running.reloader());
        }
    }
}

/// The process that serves now.
fn upgrade(upgrader: &Upgrader) -> io::Result<Pid> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut successor = start(theirs)?;
    tracing::info!(target: "lazaret", pid = successor.id(), "a new process is to take over");
    match upgrader.hand_over(ours) {
        Ok(()) => {
            tracing::info!(target: "lazaret", pid = successor.id(), "the new process serves, this one finishes");
            i32::try_from(successor.id()).map(Pid::from_raw).map_err(io::Error::other)
        }
        Err(error) => {
            let said = match error {
                HandOverError::Ended => end_of(&mut successor).map(|status| format!("{error}: {status}")),
                HandOverError::Successor(_) | HandOverError::Busy | HandOverError::Stopping => None,
            };
            // One that has ended already cannot be killed, and is waited for all the same.
            let _ = successor.kill();
            let _ = successor.wait();
            Err(io::Error::other(said.unwrap_or_else(|| error.to_string())))
        }
    }
}

/// What a process ended with that has closed its end of the stream; `None` when it does not end for all that.
fn end_of(successor: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + LAST_STEPS;
    loop {
        match successor.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(PAUSE),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// This program once more, by the name it was started with: that file may be another one by now.
fn start(stream: UnixStream) -> io::Result<Child> {
    let mut arguments = std::env::args_os();
    let program = arguments.next().ok_or_else(|| io::Error::other("the program's own name is not known"))?;
    let mine = OsString::from(format!("--{TAKE_OVER}"));
    Command::new(program)
        .args(arguments.filter(|argument| *argument != mine))
        .arg(&mine)
        // They name descriptors of this process.
        .env_remove("LISTEN_FDS")
        .env_remove("LISTEN_PID")
        .env_remove("LISTEN_FDNAMES")
        .stdin(Stdio::from(OwnedFd::from(stream)))
        .spawn()
}

/// The way to the process that started this one and hands over: standard input.
pub(super) fn predecessor() -> io::Result<UnixStream> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // The stream's end must be seen when this process ends, and by nobody it starts.
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    Ok(stream)
}

/// A process that has closed the stream has only to end.
const LAST_STEPS: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// The option by which the new process knows.
pub(super) const TAKE_OVER: &str = "take-over";

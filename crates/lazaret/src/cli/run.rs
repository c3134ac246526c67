//! `lazaret run`: serve until told to stop.
//!
//! SIGHUP reads the configuration again (all or nothing) and reopens logs, SIGUSR1 reopens logs, SIGUSR2 lets a new process
//! of the same program take over (and one that comes meanwhile is for whoever serves then), SIGTERM and SIGINT begin a planned stop; a second one ends at once.

mod hang_ups;
mod notify;
mod upgrade;

use std::sync::Arc;
use std::thread;

use lazaret::running::{Reloader, Running};
use lazaret::{Inheritance, Lazaret};
use nix::sys::signal::Signal::SIGHUP;
use nix::sys::signal::kill;
use telemetry::logs::{LogFormat, LogOptions, Logs};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::hang_ups::{HangUps, Read, has_ended};
use super::exit::Exit;
use super::{ConfigArguments, no_start};

/// What `run` is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t = FormatWord::Text)]
    log_format: FormatWord,
    /// Which log lines: `info`, `debug`, `info,health=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
    /// Take over from the process that started this one; it gives its end of a socket as standard input.
    #[arg(long = upgrade::TAKE_OVER, hide = true)]
    take_over: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FormatWord {
    Text,
    Json,
}

/// Serves; returns when the last exchange has ended.
pub(super) fn run(arguments: &Arguments) -> Exit {
    let format = match arguments.log_format {
        FormatWord::Text => LogFormat::Text,
        FormatWord::Json => LogFormat::Json,
    };
    let options = LogOptions { format, filter: Some(arguments.log.clone()), ..LogOptions::default() };
    let logs = match telemetry::logs::start(&options) {
        Ok(logs) => logs,
        Err(error) => return failed(&error),
    };
    if let Err(error) = ::io::real::raise_descriptor_limit() {
        tracing::warn!(target: "lazaret", %error, "the limit of descriptors is not known");
    }
    let predecessor = match arguments.take_over.then(upgrade::predecessor).transpose() {
        Ok(predecessor) => predecessor,
        Err(error) => return failed(&error),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    // Before the configuration is read: a SIGHUP that comes early must not end who is to take over, and is for what is read now.
    let hang_up = match runtime.block_on(async { signal(SignalKind::hangup()) }) {
        Ok(hang_up) => hang_up,
        Err(error) => return failed(&error),
    };
    let compat = arguments.config.compat.map(Into::into);
    let lazaret = match Lazaret::load(&arguments.config.path(), compat) {
        Ok(lazaret) => lazaret,
        Err(error) => {
            if let Some(predecessor) = &predecessor {
                Inheritance::decline(predecessor, &error);
            }
            return no_start(&error);
        }
    };
    for warning in &lazaret.loaded().warnings {
        tracing::warn!(target: "config", "{warning}");
    }
    // The others are caught before anything serves: one that comes early must not kill it.
    let signals = match runtime.block_on(async { Signals::catch(hang_up) }) {
        Ok(signals) => signals,
        Err(error) => return failed(&error),
    };
    let inheritance = match predecessor.map_or_else(Inheritance::from_manager, Inheritance::from_predecessor) {
        Ok(inheritance) => inheritance,
        Err(error) => return failed(&error),
    };
    match lazaret.start_with(inheritance) {
        Ok(running) => {
            if arguments.take_over {
                notify::took_over();
            } else {
                notify::ready();
            }
            runtime.block_on(serve(running, signals, &logs))
        }
        Err(error) => no_start(&error),
    }
}

struct Signals {
    hang_up: Signal,
    reopen: Signal,
    upgrade: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn catch(hang_up: Signal) -> std::io::Result<Self> {
        // A log or a recording that may not grow (RLIMIT_FSIZE) is an error of that write, and no end of the process: where
        // the signal is caught the write says so itself. It stays caught, though nobody listens.
        drop(signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32))?);
        Ok(Self {
            hang_up,
            reopen: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

async fn serve(running: Running, mut signals: Signals, logs: &Logs) -> Exit {
    let mut is_stopping = false;
    let hang_ups = Arc::new(HangUps::default());
    let mut poll = tokio::time::interval(std::time::Duration::from_millis(50));
    loop {
        tokio::select! {
            _ = signals.hang_up.recv() => {
                logs.reopen();
                running.reopen_logs();
                match hang_ups.hung_up() {
                    Some(read) => read_again(read, running.reloader()),
                    None => tracing::info!(
                        target: "lazaret",
                        "an upgrade is under way: who serves after it reads the configuration again"
                    ),
                }
            }
            _ = signals.reopen.recv() => {
                logs.reopen();
                running.reopen_logs();
            }
            _ = signals.upgrade.recv() => if !is_stopping && !running.is_handed_over() { upgrade::begin(&running, &hang_ups) },
            _ = signals.terminate.recv() => if is_stopping { return Exit::Failed } else { is_stopping = stop(&running) },
            _ = signals.interrupt.recv() => if is_stopping { return Exit::Failed } else { is_stopping = stop(&running) },
            _ = poll.tick() => if running.is_over() {
                return if is_stopping || running.is_handed_over() { Exit::Done } else { Exit::Failed };
            },
        }
    }
}

/// Begins the planned stop; true, for the caller's flag.
fn stop(running: &Running) -> bool {
    tracing::info!(target: "lazaret", "stopping");
    // The manager knows another process by then.
    if !running.is_handed_over() {
        notify::stopping();
    }
    running.begin_stop();
    true
}

/// Has the configuration read again by who serves.
fn read_again(read: Read, reloader: Reloader) {
    match read {
        Read::Here => reload(reloader),
        Read::There(pid) if has_ended(pid) => tracing::error!(
            target: "lazaret", %pid,
            "the process that took over has ended, another one may serve: send it the SIGHUP that this one has got"
        ),
        Read::There(pid) => match kill(pid, SIGHUP) {
            Ok(()) => {
                tracing::info!(target: "lazaret", %pid, "the process that serves is told to read the configuration again")
            }
            Err(error) => {
                tracing::error!(target: "lazaret", %pid, %error, "the process that serves does not hear of the SIGHUP")
            }
        },
    }
}

/// Reloads on a thread of its own, so that further signals are heard meanwhile.
fn reload(reloader: Reloader) {
    let spawned = thread::Builder::new().name("reload".to_owned()).spawn(move || match reloader.reload() {
        // The journal has said so, in a line of its own; the whole report is told here.
        Ok(summary) => tracing::debug!(target: "lazaret", summary, "reloaded"),
        Err(error) => tracing::error!(target: "lazaret", %error, "configuration refused, the one before stays"),
    });
    if let Err(error) = spawned {
        tracing::error!(target: "lazaret", %error, "no thread for a reload");
    }
}

fn failed(error: &dyn std::error::Error) -> Exit {
    super::complain(error);
    Exit::Failed
}

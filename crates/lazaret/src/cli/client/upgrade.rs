//! `lazaret upgrade`: a new process takes over from the one that serves.
//!
//! ```text
//!   ask who serves ──> SIGUSR2 to it ──> ask again ──another instance──> done
//!                                          ^  │ the same ──one more failed upgrade──> failed, and why
//!                                          └──┘
//! ```

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use control::routes::process::ProcessDocument;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::cli::exit::Exit;

use super::http::Client;
use super::target::Target;
use super::{Common, Failure, conclude, fetch, print};

/// What `upgrade` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    common: Common,
}

/// What an upgrade came to.
#[derive(Serialize)]
struct UpgradeDocument {
    /// Who served.
    before: ProcessDocument,
    /// Who serves.
    after: ProcessDocument,
}

/// Starts an upgrade and waits for its verdict. Fails when the process before goes on.
pub(in crate::cli) fn run(arguments: &Arguments) -> Exit {
    conclude(async || {
        let target = arguments.common.target.for_reading()?;
        if !is_of_this_machine(&target) {
            return Err(Failure::failed(format!(
                "{} may be another machine: a signal reaches this one alone",
                Client::new(target)
            )));
        }
        let client = Client::new(target);
        let before: ProcessDocument = fetch(&client, PAGE).await?;
        signal(&before)?;
        let after = verdict(&client, &before).await?;
        print(arguments.common.format, &UpgradeDocument { before, after }, render);
        Ok(Exit::Done)
    })
}

/// Waits until another process answers, or the one before says why none does.
async fn verdict(client: &Client, before: &ProcessDocument) -> Result<ProcessDocument, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        // Between the two processes nobody may answer for a moment.
        let failure = match fetch(client, PAGE).await {
            Ok(now) => match judge(before, now) {
                Some(verdict) => return verdict,
                None => Failure::failed(format!("process {} still serves; its log says why", before.pid)),
            },
            Err(failure) => failure,
        };
        if Instant::now() >= until {
            return Err(failure);
        }
        sleep(PAUSE).await;
    }
}

/// What an answer says of the upgrade; `None`: nothing yet.
fn judge(before: &ProcessDocument, now: ProcessDocument) -> Option<Result<ProcessDocument, Failure>> {
    if now.instance != before.instance {
        return Some(Ok(now));
    }
    (now.failed_upgrades > before.failed_upgrades).then(|| {
        let why = now.last_failed_upgrade.unwrap_or_default();
        Err(Failure::failed(format!("no upgrade, process {} goes on: {why}", before.pid)))
    })
}

/// SIGUSR2 ends a process that does not expect it, so the number must be that of a lazaret: in a container it counts
/// otherwise.
fn signal(process: &ProcessDocument) -> Result<(), Failure> {
    let pid = process.pid;
    let name = |of: &str| fs::read_to_string(format!("/proc/{of}/comm")).ok();
    if name(&pid.to_string()).is_none_or(|found| Some(found) != name("self")) {
        return Err(Failure::failed(format!("process {pid} is no lazaret here: is it in a container?")));
    }
    let number = i32::try_from(pid).map_err(|_| Failure::failed(format!("{pid} is no process")))?;
    kill(Pid::from_raw(number), Signal::SIGUSR2).map_err(|error| {
        let mend = if error == Errno::EPERM { "; be the user that it runs as, or root" } else { "" };
        Failure::failed(format!("process {pid}: {error}{mend}"))
    })
}

fn is_of_this_machine(target: &Target) -> bool {
    match target {
        Target::Unix(_) => true,
        Target::Tcp(authority) => {
            let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback() || ip.is_unspecified())
        }
    }
}

fn render(document: &UpgradeDocument) -> String {
    format!("process {} serves in place of {}\n", document.after.pid, document.before.pid)
}

const PAGE: &str = "/api/process";
const PAUSE: Duration = Duration::from_millis(100);
/// A new process reads its configuration and asks for names before it takes over. The one before gives it a minute, and
/// then says why it goes on itself.
const PATIENCE: Duration = Duration::from_secs(70);

#[cfg(test)]
mod tests {
    use super::*;

    fn process(instance: &str, failed_upgrades: u64) -> ProcessDocument {
        let last_failed_upgrade = (failed_upgrades > 0).then(|| "it ended".to_owned());
        ProcessDocument { instance: instance.to_owned(), pid: 7, failed_upgrades, last_failed_upgrade }
    }

    #[test]
    fn another_instance_is_success_and_one_more_failed_upgrade_is_none() {
        let before = process("a", 1);
        assert_eq!(judge(&before, process("a", 1)), None);
        assert_eq!(judge(&before, process("b", 0)), Some(Ok(process("b", 0))));
        let failure = Failure { text: "no upgrade, process 7 goes on: it ended".to_owned(), exit: Exit::Failed };
        assert_eq!(judge(&before, process("a", 2)), Some(Err(failure)));
    }

    #[test]
    fn only_processes_of_this_machine_are_sent_a_signal() {
        for (authority, expected) in [
            ("127.0.0.1:9090", true),
            ("[::1]:9090", true),
            ("localhost:1", true),
            ("0.0.0.0:1", true),
            ("10.0.0.5:1", false),
        ] {
            assert_eq!(is_of_this_machine(&Target::Tcp(authority.to_owned())), expected, "{authority}");
        }
        let nobody = ProcessDocument { pid: 1, ..process("a", 0) };
        assert!(signal(&nobody).is_err(), "process 1 is no test");
    }
}

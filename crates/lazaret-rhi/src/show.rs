//! `status`, `explain` and `reload`: what the running daemon says.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

use apisix::rhi::{RhiStatus, UpstreamStatus, VipStatus};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::cli::{Cli, Format};
use crate::client::{NoAnswer, ask};
use crate::file::NoConfig;
use crate::{Exit, complain, file, print};

/// Where the daemon listens when neither the command line nor a readable file says so.
const DEFAULT_SOCKET: &str = "/run/lazaret-rhi/status.sock";

/// Every VIP, one line each.
pub(crate) fn status(cli: &Cli) -> Exit {
    show::<RhiStatus>(cli, "/status", |status| {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "interface {} ({}), control API {}, last cycle {}, {} changes refused by the kernel{}",
            status.interface,
            if status.interface_present { "present" } else { "missing" },
            status.control_url,
            status.last_cycle.as_deref().unwrap_or("none yet"),
            status.failed_changes,
            if status.config_stale { ", CONFIGURATION STALE: the file was refused" } else { "" },
        );
        for vip in &status.vips {
            out.push_str(&vip_line(vip));
        }
        out
    })
}

/// One VIP with its upstreams.
pub(crate) fn explain(cli: &Cli, vip: IpAddr) -> Exit {
    show::<VipStatus>(cli, &format!("/vips/{vip}"), |vip| {
        let mut out = vip_line(vip);
        let _ = writeln!(out, "  condition {} over:", vip.condition);
        for upstream in &vip.upstreams {
            out.push_str(&upstream_line(upstream));
        }
        out
    })
}

/// Has the file read again.
pub(crate) fn reload(cli: &Cli) -> Exit {
    let place = Place::of(cli);
    match ask(&place.socket, Method::POST, "/reload") {
        Ok(_) => {
            print("reloaded");
            Exit::Done
        }
        Err(NoAnswer::Refused(StatusCode::UNPROCESSABLE_ENTITY, why)) => {
            complain(why);
            Exit::ConfigRefused
        }
        Err(no_answer) => refused(no_answer, place.no_config.as_ref()),
    }
}

fn show<T: serde::de::DeserializeOwned>(cli: &Cli, path: &str, text: impl FnOnce(&T) -> String) -> Exit {
    let place = Place::of(cli);
    match ask(&place.socket, Method::GET, path) {
        Ok(body) => match (cli.format, read::<T>(&body)) {
            (Format::Json, _) => {
                print(&String::from_utf8_lossy(&body));
                Exit::Done
            }
            (Format::Text, Ok(document)) => {
                print(&text(&document));
                Exit::Done
            }
            (Format::Text, Err(error)) => {
                complain(format_args!("the daemon's answer cannot be read: {error}"));
                Exit::Failed
            }
        },
        Err(no_answer) => refused(no_answer, place.no_config.as_ref()),
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, serde_json::Error> {
    serde_json::from_slice(body)
}

/// Says why there is no answer. Nobody at the default socket, and a file that may name another one but is refused: then
/// the file is what is wrong.
fn refused(no_answer: NoAnswer, no_config: Option<&NoConfig>) -> Exit {
    match (no_answer, no_config) {
        (NoAnswer::Unreachable(_), Some(refused @ NoConfig::Refused(_))) => {
            complain(refused.drawn());
            Exit::ConfigRefused
        }
        (NoAnswer::Unreachable(why), no_config) => {
            if let Some(unreadable) = no_config {
                complain(unreadable.line());
            }
            complain(format_args!("the daemon does not answer: {why}"));
            Exit::Unreachable
        }
        (NoAnswer::Refused(status, why), _) => {
            complain(format_args!("{status}: {why}"));
            Exit::Failed
        }
    }
}

/// Where the daemon is asked.
struct Place {
    socket: PathBuf,
    /// Why the file does not say.
    no_config: Option<NoConfig>,
}

impl Place {
    fn of(cli: &Cli) -> Self {
        if let Some(socket) = &cli.socket {
            return Self { socket: socket.clone(), no_config: None };
        }
        match file::load(&cli.config) {
            Ok(loaded) => Self { socket: loaded.config.status_socket, no_config: None },
            // Asking a daemon must not depend on a file that may be broken just now.
            Err(no_config) => Self { socket: PathBuf::from(DEFAULT_SOCKET), no_config: Some(no_config) },
        }
    }
}

fn vip_line(vip: &VipStatus) -> String {
    let state = match (vip.wanted, vip.announced) {
        (None, true) => "on the interface, not decided yet",
        (None, false) => "not on the interface, not decided yet",
        (Some(true), true) => "announced",
        (Some(false), false) => "withdrawn",
        (Some(true), false) => "TO BE ANNOUNCED, not on the interface",
        (Some(false), true) => "TO BE WITHDRAWN, still on the interface",
    };
    let mut out = format!("{}  {state}  because {}", vip.address, vip.reason);
    if let Some(since) = &vip.since {
        let _ = write!(out, "  since {since}");
    }
    if let Some(error) = &vip.error {
        let _ = write!(out, "  ({error})");
    }
    if !vip.description.is_empty() {
        let _ = write!(out, "  {}", vip.description);
    }
    out.push('\n');
    out
}

fn upstream_line(upstream: &UpstreamStatus) -> String {
    let mut out = format!(
        "    {}: {}, {} of {} nodes healthy, polled {}",
        upstream.name,
        upstream.result,
        upstream.healthy,
        upstream.nodes,
        upstream.polled.as_deref().unwrap_or("not yet"),
    );
    if upstream.failed_polls > 0 {
        let _ = write!(out, ", {} failed polls in a row", upstream.failed_polls);
    }
    if let Some(error) = &upstream.error {
        let _ = write!(out, " ({error})");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn unreachable() -> NoAnswer {
        NoAnswer::Unreachable("nobody".to_owned())
    }

    fn refused_file() -> NoConfig {
        match config::load_rhi("rhi.yaml", b"vips: 7\n") {
            Ok(_) => panic!("a number is no list of VIPs"),
            Err(report) => NoConfig::Refused(report),
        }
    }

    #[test]
    fn a_refused_file_is_what_is_wrong_where_nobody_answers() {
        assert_eq!(refused(unreachable(), Some(&refused_file())), Exit::ConfigRefused);
        assert_eq!(refused(unreachable(), None), Exit::Unreachable);
        assert_eq!(refused(unreachable(), Some(&NoConfig::Unreadable("no such file".to_owned()))), Exit::Unreachable);
    }

    #[test]
    fn a_daemon_that_refuses_is_heard_whatever_the_file_says() {
        let answer = NoAnswer::Refused(StatusCode::NOT_FOUND, "no such VIP".to_owned());
        assert_eq!(refused(answer, Some(&refused_file())), Exit::Failed);
    }

    #[test]
    fn the_default_socket_is_asked_when_the_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rhi.yaml");
        std::fs::write(&file, "vips: 7\n").unwrap();
        let line = |more: &[&str]| {
            let file = file.display().to_string();
            let words = ["lazaret-rhi", "-c", &file].iter().chain(more).map(ToString::to_string).collect::<Vec<_>>();
            Place::of(&<Cli as clap::Parser>::parse_from(words))
        };
        let place = line(&["status"]);
        assert_eq!(place.socket, PathBuf::from(DEFAULT_SOCKET));
        assert!(matches!(place.no_config, Some(NoConfig::Refused(_))));
        let place = line(&["--socket", "/x", "status"]);
        assert_eq!(place.socket, PathBuf::from("/x"));
        assert!(place.no_config.is_none());
    }
}

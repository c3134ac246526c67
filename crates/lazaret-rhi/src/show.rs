//! `status`, `explain` and `reload`: what the running daemon says.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

use apisix::rhi::{RhiStatus, UpstreamStatus, VipStatus};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::cli::{Cli, Format};
use crate::client::{NoAnswer, ask};
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
    match ask(&socket(cli), Method::POST, "/reload") {
        Ok(_) => {
            print("reloaded");
            Exit::Done
        }
        Err(NoAnswer::Refused(StatusCode::UNPROCESSABLE_ENTITY, why)) => {
            complain(why);
            Exit::ConfigRefused
        }
        Err(no_answer) => refused(no_answer),
    }
}

fn show<T: serde::de::DeserializeOwned>(cli: &Cli, path: &str, text: impl FnOnce(&T) -> String) -> Exit {
    match ask(&socket(cli), Method::GET, path) {
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
        Err(no_answer) => refused(no_answer),
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, serde_json::Error> {
    serde_json::from_slice(body)
}

fn refused(no_answer: NoAnswer) -> Exit {
    match no_answer {
        NoAnswer::Unreachable(why) => {
            complain(format_args!("the daemon does not answer: {why}"));
            Exit::Unreachable
        }
        NoAnswer::Refused(status, why) => {
            complain(format_args!("{status}: {why}"));
            Exit::Failed
        }
    }
}

fn socket(cli: &Cli) -> PathBuf {
    if let Some(socket) = &cli.socket {
        return socket.clone();
    }
    // Asking a daemon must not depend on a file that may be broken just now.
    file::load(&cli.config).map_or_else(|_| PathBuf::from(DEFAULT_SOCKET), |(config, _)| config.status_socket)
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

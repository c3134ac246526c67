//! `control`: where the control API listens and who may change things.

use std::net::{Ipv4Addr, SocketAddr};

use model::config::{Control, ControlSocket};

use crate::defaults::{CONTROL_ADDRESS, CONTROL_SOCKET};
use crate::raw::section::{Reading, Section};

/// What holds without the block.
pub fn default() -> Control {
    Control {
        address: CONTROL_ADDRESS.parse().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 9090))),
        socket: ControlSocket::Default(CONTROL_SOCKET.into()),
        users: Vec::new(),
        token_file: None,
    }
}

/// Resolves the block.
pub fn resolve(r: &mut Reading<'_>, mut s: Section<'_>) -> Control {
    let default = default();
    let address = s.take(r, "address").and_then(|field| field.socket_address(r)).unwrap_or(default.address);
    let socket = socket(r, &mut s).unwrap_or(ControlSocket::Off);
    let mut users = Vec::new();
    if let Some(field) = s.take(r, "users") {
        for item in field.list(r) {
            users.extend(item.text(r).map(str::to_owned));
        }
    }
    let token_file = s.take(r, "token_file").and_then(|field| field.file(r));
    s.not_yet(r, &[("rhi_socket", "RHI facts on the dashboard")]);
    s.finish(r);
    Control { address, socket, users, token_file }
}

/// Where the API is, of a file that may be wrong elsewhere; `None` when it is wrong here. Users are left out.
pub fn places(r: &mut Reading<'_>, mut s: Section<'_>) -> Option<Control> {
    let mut control = default();
    if let Some(field) = s.take(r, "address") {
        control.address = field.socket_address(r)?;
    }
    control.socket = socket(r, &mut s)?;
    if let Some(field) = s.take(r, "token_file") {
        control.token_file = Some(field.file(r)?);
    }
    s.ignore_rest();
    Some(control)
}

fn socket(r: &mut Reading<'_>, s: &mut Section<'_>) -> Option<ControlSocket> {
    match s.take_raw(r, "socket", "socket") {
        None => Some(default().socket),
        Some(field) if field.node.is_null() || field.node.scalar() == Some("off") => Some(ControlSocket::Off),
        Some(field) => field.file(r).map(ControlSocket::Path),
    }
}

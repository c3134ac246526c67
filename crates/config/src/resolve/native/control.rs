//! `control`: where the control API listens and who may change things.

use std::net::{Ipv4Addr, SocketAddr};

use model::config::{Control, ControlSocket};

use crate::defaults::{CONTROL_ADDRESS, CONTROL_SOCKET};
use crate::raw::section::{Field, Reading, Section};

/// What holds without the block.
pub fn default() -> Control {
    Control {
        address: CONTROL_ADDRESS.parse().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 9090))),
        names: Vec::new(),
        socket: ControlSocket::Default(CONTROL_SOCKET.into()),
        users: Vec::new(),
        token_file: None,
    }
}

/// Resolves the block.
pub fn resolve(r: &mut Reading<'_>, mut s: Section<'_>) -> Control {
    let default = default();
    let address = s.take(r, "address").and_then(|field| field.socket_address(r)).unwrap_or(default.address);
    let names = s.take(r, "names").map_or_else(Vec::new, |field| names(r, &field));
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
    Control { address, names, socket, users, token_file }
}

fn names(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for item in field.list(r) {
        match item.text(r) {
            Some(name) if is_name(name) => names.push(name.to_ascii_lowercase()),
            Some(name) => {
                item.refuse(r, format!("`{name}` is no host name"), "expected a name without port, as lb1.example.org")
            }
            None => {}
        }
    }
    names
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
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

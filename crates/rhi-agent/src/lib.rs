//! The shell around the core of `lazaret-rhi`: polls, netlink, the status socket, the lock and the service manager.
//!
//! Read in this order: [`clock`], [`poll`] (asks the control API), [`netlink`] (reads and changes addresses, watches for
//! changes of others), [`lock`] and [`capabilities`] (what stops the start), [`socket`] (what people ask), [`notify`]
//! (what systemd is told), and last [`driver`], which joins them around the core.
#![forbid(unsafe_code)]

pub mod clock;

pub mod poll;

pub mod netlink;

pub mod capabilities;
pub mod lock;

pub mod socket;

pub mod logs;
pub mod notify;

pub mod driver;

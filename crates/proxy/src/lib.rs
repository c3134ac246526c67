//! The proxy: traffic threads that carry requests from clients to destinations.
//!
//! ```text
//!   Workers ──> worker (thread, runtime) ──> listener ──> connection (task) ──> turn (one exchange)
//!                                                                                │ exchange::Exchange decides
//!                              leg, pool <── attempt ── await_head ── upload     │
//!                                            forward ── download                 │
//!                                            answer ─── respond                  └─> sharing ──> board; record ──> log
//!                                            switch ─── tunnel
//! ```
//! Read in that order; between listener and connection stands `entry`: PROXY header, access list, TLS. The machine in
//! `exchange` decides; what stands here moves bytes and watches the clock. A worker shares nothing with the others but
//! the board, the counts of clients where they are limited, and certificates: an exchange is driven by one task on one
//! thread, from its first byte to its last, and both of its connections with it.
//!
//! Buffers: each thread reads into one buffer, so a connection that waits holds none; an exchange takes a workspace and a
//! seat (the memory of its future) from the thread's stacks and gives them back, so nothing is allocated in steady state.
#![forbid(unsafe_code)]

mod workers;

mod sockets;

mod worker;

mod local;

mod accepting;
mod faults;
mod listener;

mod connection;

mod entry;

mod ahead;
mod handshake;
mod wire;

mod tls;

mod client;
mod presence;
mod queue;
mod seats;
mod timer;
mod transfer;
mod waiting;

mod drive;

mod turn;

mod relay;

mod h2;

mod buffering;
mod leg;
mod pipes;
mod upload;
mod wall;

mod await_head;
mod awake;
mod download;
mod front;

mod tunnel;

mod respond;

mod changes;
mod client_address;
mod limits;
mod request_id;
mod sharing;
mod sums;

mod access_log;
mod record;

pub use faults::Faults;
pub use sockets::Sockets;
pub use tls::{ListenerFault, Prepared, Refreshed, ServerTls};
pub use worker::Drain;
pub use workers::{Context, Listeners, StartError, Workers};

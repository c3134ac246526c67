//! Polls, netlink and the status socket of `lazaret-rhi`.

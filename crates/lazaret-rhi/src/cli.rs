//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Takes VIPs off an interface when nothing healthy stands behind them, and puts them back when it does, so that the
/// routing daemon stops or resumes announcing them.
#[derive(Debug, Parser)]
#[command(name = "lazaret-rhi", version, propagate_version = true)]
pub(crate) struct Cli {
    /// Configuration file.
    #[arg(short, long, global = true, value_name = "FILE", default_value = "/etc/rhi/rhi.yaml")]
    pub(crate) config: PathBuf,
    /// Status socket of the running daemon; as the configuration says unless given.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// How facts are printed.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run in the foreground until SIGTERM.
    Run,
    /// Check a configuration file and print what it comes to, with every default filled in.
    Check {
        /// The file; the one of --config unless given.
        file: Option<PathBuf>,
    },
    /// Print what the running daemon decided about every VIP.
    Status,
    /// Explain the decision about one VIP.
    Explain {
        /// Its address.
        vip: IpAddr,
    },
    /// Have the running daemon read its file again.
    Reload,
}

/// How facts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

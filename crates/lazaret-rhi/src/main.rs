//! The program `lazaret-rhi`: Route Health Injection for one interface.
//!
//! It reads its file, hands everything to `rhi-agent`, and speaks to a running daemon over the status socket. Exit codes:
//! 0 done, 1 failed while running, 2 usage, 3 configuration refused, 4 the daemon does not answer.
#![forbid(unsafe_code)]

mod cli;

mod file;
mod places;

mod check;
mod run;

mod client;
mod show;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit = match &cli.command {
        Command::Run => run::run(&cli.config),
        Command::Check { file } => check::check(file.as_ref().unwrap_or(&cli.config), cli.format),
        Command::Status => show::status(&cli),
        Command::Explain { vip } => show::explain(&cli, *vip),
        Command::Reload => show::reload(&cli),
    };
    ExitCode::from(exit as u8)
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done = 0,
    Failed = 1,
    ConfigRefused = 3,
    Unreachable = 4,
}

/// One line on standard error.
#[allow(clippy::print_stderr)]
fn complain(line: impl std::fmt::Display) {
    eprintln!("lazaret-rhi: {line}");
}

/// Text on standard output; a reader that has gone ends the program as it ends others.
#[allow(clippy::print_stdout)]
fn print(text: &str) {
    println!("{}", text.trim_end());
}

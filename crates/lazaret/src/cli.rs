//! The command line: what there is to say, and what answers it.

mod check;
mod client;
mod demo;
mod exit;
mod lab;
mod run;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use lazaret::Error;
use model::cluster::Compat;

use self::exit::{EXIT_CODES, Exit};

/// Health-first L7 load balancer.
#[derive(Parser)]
#[command(name = "lazaret", version, about, long_about = None, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve.
    Run(run::Arguments),
    /// Read a configuration and print what it means, every default filled in.
    Check(check::Arguments),
    /// Show misbehaving destinations and what the proxy makes of them; needs no configuration.
    Demo(demo::Arguments),
    /// Try policies on scripted traffic and faults, in virtual time.
    Lab(lab::Arguments),
    /// Show who is healthy and who serves.
    Status(client::status::Arguments),
    /// Tell why destinations are in or out.
    Explain(client::explain::Arguments),
    /// Print what happened; with `--format json` a document a line.
    Journal(client::journal::Arguments),
    /// Save what the health core was told of late.
    Record(client::record::Arguments),
    /// Read the configuration again, all or nothing.
    Reload(client::reload::Arguments),
    /// Let a new process of the program that is there now take over, and wait until it does.
    Upgrade(client::upgrade::Arguments),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

/// Where the configuration is.
#[derive(clap::Args)]
struct ConfigArguments {
    /// Configuration file [default: ./lazaret.yaml, then /etc/lazaret/lazaret.yaml]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Overrides `compat` of every cluster.
    #[arg(long, value_enum)]
    compat: Option<CompatWord>,
}

#[derive(Clone, Copy, ValueEnum)]
enum CompatWord {
    None,
    Yarp,
    Nginx,
}

impl From<CompatWord> for Compat {
    fn from(word: CompatWord) -> Self {
        match word {
            CompatWord::None => Self::None,
            CompatWord::Yarp => Self::Yarp,
            CompatWord::Nginx => Self::Nginx,
        }
    }
}

impl ConfigArguments {
    fn path(&self) -> PathBuf {
        let candidates = ["lazaret.yaml", "/etc/lazaret/lazaret.yaml"].map(PathBuf::from);
        let first = self.config.clone().or_else(|| candidates.iter().find(|path| path.exists()).cloned());
        // When there is none, the error about the first place tells where a file is looked for.
        first.unwrap_or_else(|| PathBuf::from("lazaret.yaml"))
    }
}

/// Reads the command line and does what it says.
pub(crate) fn main() -> ExitCode {
    let exit = match Line::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Status(arguments) => client::status::run(&arguments),
        Command::Explain(arguments) => client::explain::run(&arguments),
        Command::Journal(arguments) => client::journal::run(&arguments),
        Command::Record(arguments) => client::record::run(&arguments),
        Command::Reload(arguments) => client::reload::run(&arguments),
        Command::Upgrade(arguments) => client::upgrade::run(&arguments),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Line::command(), "lazaret", &mut std::io::stdout());
            Exit::Done
        }
        Command::Man => match clap_mangen::Man::new(Line::command()).render(&mut std::io::stdout()) {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        },
    };
    exit.into()
}

/// Tells why nothing can be served. `check` and `run` end alike: what `check` finds refuses the configuration at a start, too.
fn no_start(error: &Error) -> Exit {
    match error {
        Error::Config(report) => {
            complain(&config::render(&report.source, &report.diagnostics, style()));
            Exit::Refused
        }
        Error::Pipeline(_) | Error::Monitor(_) | Error::Control(_) | Error::Write(_) | Error::Start { .. } => {
            complain(error);
            Exit::Failed
        }
    }
}

/// Colours, when somebody looks at a terminal.
fn style() -> config::Style {
    if std::io::stderr().is_terminal() { config::Style::Coloured } else { config::Style::Plain }
}

/// Writes to standard error, for people.
fn complain(text: &(impl std::fmt::Display + ?Sized)) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes to standard output; a reader that has gone (`| head`) is no failure.
fn say(text: &str) {
    let _ = write!(std::io::stdout(), "{text}");
}

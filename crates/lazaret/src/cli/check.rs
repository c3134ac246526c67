//! `lazaret check`: what a configuration means, every default filled in.

use std::path::PathBuf;
use std::process::ExitCode;

use lazaret::{Error, Lazaret};

use super::client::FormatWord;
use super::{ConfigArguments, complain, refused, say};

/// What `check` is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Configuration file, as with --config.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    format: FormatWord,
}

/// Prints the effective configuration; exit code 3 when it is refused.
pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let path = arguments.file.clone().unwrap_or_else(|| arguments.config.path());
    let compat = arguments.config.compat.map(Into::into);
    let lazaret = match Lazaret::load(&path, compat) {
        Ok(lazaret) => lazaret,
        Err(Error::Config(report)) => {
            if arguments.format == FormatWord::Json {
                say(&format!("{}\n", config::check::refused_json(&report)));
            }
            return refused(&report);
        }
        Err(error) => {
            complain(&error);
            return ExitCode::FAILURE;
        }
    };
    let warnings = match lazaret.check_files() {
        Ok(warnings) => warnings,
        Err(Error::Config(report)) => {
            if arguments.format == FormatWord::Json {
                say(&format!("{}\n", config::check::refused_json(&report)));
            }
            return refused(&report);
        }
        Err(error) => {
            complain(&error);
            return ExitCode::from(3);
        }
    };
    for warning in &warnings {
        complain(&format!("warning: {warning}"));
    }
    let loaded = lazaret.loaded();
    match arguments.format {
        FormatWord::Text => {
            say(&config::check::text(loaded));
            let style = super::style();
            complain_unless_empty(&config::render(&loaded.source, &loaded.warnings, style));
        }
        FormatWord::Json => say(&format!("{}\n", config::check::json(loaded))),
    }
    ExitCode::SUCCESS
}

fn complain_unless_empty(text: &str) {
    if !text.is_empty() {
        complain(text);
    }
}

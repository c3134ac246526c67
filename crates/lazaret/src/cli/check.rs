//! `lazaret check`: what a configuration means, every default filled in.

use std::path::{Path, PathBuf};

use lazaret::{Error, Lazaret};

use super::client::FormatWord;
use super::exit::Exit;
use super::{ConfigArguments, complain, no_start, say};

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

/// Prints the effective configuration, or why it is refused.
pub(super) fn run(arguments: &Arguments) -> Exit {
    let path = arguments.file.clone().unwrap_or_else(|| arguments.config.path());
    let (lazaret, warnings) = match load(&path, arguments) {
        Ok(checked) => checked,
        Err(error) => {
            if let (Error::Config(report), FormatWord::Json) = (&error, arguments.format) {
                say(&format!("{}\n", config::check::refused_json(report)));
            }
            return no_start(&error);
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
    Exit::Done
}

/// The configuration, and what is worth a word about the files it names.
fn load(path: &Path, arguments: &Arguments) -> Result<(Lazaret, Vec<String>), Error> {
    let lazaret = Lazaret::load(path, arguments.config.compat.map(Into::into))?;
    let warnings = lazaret.check_files()?;
    Ok((lazaret, warnings))
}

fn complain_unless_empty(text: &str) {
    if !text.is_empty() {
        complain(text);
    }
}

//! `lazaret lab replay`: a recording of a real process, run again.

use std::path::PathBuf;

use ::lab::policy::{Policy, split};
use ::lab::replay::question::{self, Answer, QuestionError};
use ::lab::replay::text;
use control::document::Clock;
use health::Registry;
use recorder::{Recording, ReplayError};

use super::Refused;
use crate::cli::client::FormatWord;
use crate::cli::say;

/// What `replay` is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A file of `lazaret record save`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What these would have done with the same inputs, in place of running it again: names, passive:NAME, native:BLOCK; with
    /// commas between.
    #[arg(long, value_name = "NAMES")]
    policies: Option<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    format: FormatWord,
}

/// What came of it.
pub(super) enum Outcome {
    /// What was recorded came again, or nothing was compared.
    Same,
    /// Something else came.
    Different,
}

/// Runs it; exit code 3 for a file that is refused.
pub(super) fn run(arguments: &Arguments) -> Result<Outcome, Refused> {
    let shown = arguments.file.display();
    let refused = |why: &dyn std::fmt::Display| Refused::File(format!("{shown}: {why}"));
    let bytes = files::read_given(&arguments.file, FILE_BYTES).map_err(|error| refused(&error))?;
    let recording = Recording::read(&bytes).map_err(|error| refused(&error))?;
    let unix_ms = i64::try_from(recording.header.saved_at_unix_ms).unwrap_or_default();
    let wall = jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default();
    let clock = Clock { now: recording.header.saved_at, wall };
    let wall = |at| clock.text(at);
    if let Some(names) = &arguments.policies {
        let answers = answers(&recording, names)?;
        say(&match arguments.format {
            FormatWord::Text => text::answers(&answers),
            FormatWord::Json => text::answers_json(&recording, &answers, &wall),
        });
        return Ok(Outcome::Same);
    }
    let rerun = recording.rerun(Registry::default()).map_err(|error: ReplayError| refused(&error))?;
    say(&match arguments.format {
        FormatWord::Text => text::rerun(&recording, &rerun, &wall),
        FormatWord::Json => text::json(&recording, &rerun, &wall),
    });
    Ok(if rerun.difference.is_none() { Outcome::Same } else { Outcome::Different })
}

fn answers(recording: &Recording, names: &str) -> Result<Vec<Answer>, Refused> {
    let ask = |name: &str| {
        let policy = Policy::find(name).map_err(|error| Refused::Usage(error.to_string()))?;
        question::ask(recording, &policy).map_err(|error| match error {
            QuestionError::Policy(error) => Refused::Usage(error.to_string()),
            QuestionError::Replay(error) => Refused::File(error.to_string()),
        })
    };
    split(names).into_iter().map(ask).collect()
}

/// The largest ring is 1 GiB.
const FILE_BYTES: usize = 2 << 30;

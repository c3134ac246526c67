//! `lazaret lab replay`: a recording of a real process, run again.

mod read;

use std::path::{Path, PathBuf};

use ::lab::policy::{Policy, split};
use ::lab::replay::question::{self, Answer, QuestionError};
use ::lab::replay::text;
use ::lab::report::replay::Asked;
use control::document::Clock;
use health::Registry;
use recorder::{Recording, ReplayError};

use super::Refused;
use crate::cli::client::FormatWord;
use crate::cli::say;
use read::{Read, Shape, read};

/// What `replay` is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A file of `lazaret record save`, or a folder that `recorder.folder` names: also while it is written to.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only what the process of this name recorded: a folder holds the recordings of several.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// What these would have done with the same inputs, in place of running it again: names, passive:NAME, native:BLOCK; with
    /// commas between.
    #[arg(long, value_name = "NAMES")]
    policies: Option<String>,
    /// Write a page as well: beside what was what would have been, and the failures that would have been left.
    #[arg(long, value_name = "FILE", requires = "policies")]
    report: Option<PathBuf>,
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

/// Runs it, unless the file is refused.
pub(super) fn run(arguments: &Arguments) -> Result<Outcome, Refused> {
    let read = read(&arguments.file, arguments.instance.as_deref())?;
    match &arguments.policies {
        None => rerun(arguments, &read),
        Some(names) => ask(arguments, &read, names),
    }
}

/// The same once more: what came then has to come now.
fn rerun(arguments: &Arguments, read: &Read) -> Result<Outcome, Refused> {
    let (mut texts, mut documents, mut outcome) = (Vec::new(), Vec::new(), Outcome::Same);
    for recording in &read.recordings {
        let refused = |error: ReplayError| Refused::File(format!("{}: {error}", arguments.file.display()));
        let rerun = recording.rerun(Registry::default()).map_err(refused)?;
        let clock = clock(recording);
        let wall = |at| clock.text(at);
        if rerun.difference.is_some() {
            outcome = Outcome::Different;
        }
        match arguments.format {
            FormatWord::Text => texts.push(text::rerun(recording, &rerun, &wall)),
            FormatWord::Json => documents.push(text::json(recording, &rerun, &wall)),
        }
    }
    say(&match arguments.format {
        FormatWord::Text => texts.join("\n"),
        FormatWord::Json => read.document(documents),
    });
    Ok(outcome)
}

/// What others would have made of it.
fn ask(arguments: &Arguments, read: &Read, names: &str) -> Result<Outcome, Refused> {
    let (mut shown, mut documents) = (String::new(), Vec::new());
    let answered: Result<Vec<_>, Refused> =
        read.recordings.iter().map(|recording| Ok((recording, answers(recording, names)?))).collect();
    let answered = answered?;
    if let Some(path) = &arguments.report {
        report(path, &answered)?;
    }
    for (recording, answers) in &answered {
        let clock = clock(recording);
        let wall = |at| clock.text(at);
        match arguments.format {
            FormatWord::Text => {
                if read.shape == Shape::Many {
                    shown += &text::head(recording, recording.header.saved_at, &wall);
                }
                shown += &text::answers(answers);
            }
            FormatWord::Json => documents.push(text::answers_json(recording, answers, &wall)),
        }
    }
    say(&match arguments.format {
        FormatWord::Text => shown + text::NOTE,
        FormatWord::Json => read.document(documents),
    });
    Ok(Outcome::Same)
}

fn report(path: &Path, answered: &[(&Recording, Vec<Answer>)]) -> Result<(), Refused> {
    let walls: Vec<_> = answered
        .iter()
        .map(|(recording, _)| {
            let clock = clock(recording);
            move |at| clock.text(at)
        })
        .collect();
    let asked: Vec<Asked<'_>> =
        (answered.iter().zip(&walls)).map(|((recording, answers), wall)| Asked { recording, answers, wall }).collect();
    super::write(path, &::lab::report::replay::render(&asked))
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

/// Times of a recording as those of the wall.
fn clock(recording: &Recording) -> Clock {
    let unix_ms = i64::try_from(recording.header.saved_at_unix_ms).unwrap_or_default();
    Clock { now: recording.header.saved_at, wall: jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default() }
}

//! Commands that talk to a running process over its control API: `status`, `explain`, `journal`, `record`, `reload`,
//! `upgrade`.
//!
//! Each command is three steps: find the API ([`target`]), ask it ([`http`]), render the document (a pure function from
//! document to text, tested by its text). `--format json` prints the API's own documents.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) mod status;

pub(super) mod explain;

pub(super) mod journal;

pub(super) mod record;

pub(super) mod reload;

pub(super) mod upgrade;

mod http;
mod table;
mod target;
mod words;

use http::{Answer, Client};
use target::TargetArguments;

use super::exit::Exit;

/// How facts are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatWord {
    /// For people.
    #[default]
    Text,
    /// For programs, as JSON.
    Json,
}

/// What all commands but `reload` are told.
#[derive(clap::Args)]
pub(super) struct Common {
    #[command(flatten)]
    target: TargetArguments,
    /// How facts are printed.
    #[arg(long, value_enum, default_value_t = FormatWord::Text)]
    format: FormatWord,
}

/// Why a command fails: the words, and how it ends.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    text: String,
    exit: Exit,
}

impl Failure {
    /// It was tried and failed.
    fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit: Exit::Failed }
    }

    /// The configuration is refused.
    fn refused(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit: Exit::Refused }
    }

    /// Nobody answers.
    fn unreachable(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit: Exit::Unreachable }
    }
}

/// Runs a command that talks to the API, and tells why it failed.
fn conclude(command: impl AsyncFnOnce() -> Result<Exit, Failure>) -> Exit {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(command()),
        Err(error) => Err(Failure::failed(error.to_string())),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            remark(failure.text.trim_end());
            failure.exit
        }
    }
}

/// Tells something besides the answer.
fn remark(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "lazaret: {text}");
}

/// A document of the API, or its error in words.
async fn fetch<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, Failure> {
    let answer = client.ask("GET", path, None).await?;
    if answer.status != 200 {
        return Err(Failure::failed(error_text(&answer)));
    }
    serde_json::from_str(&answer.text)
        .map_err(|error| Failure::failed(format!("the answer of {client} is unreadable: {error}")))
}

/// `error_msg` of an answer, or its status when it has none.
fn error_text(answer: &Answer) -> String {
    let parsed: Result<apisix::error::ErrorBody, _> = serde_json::from_str(&answer.text);
    parsed.map_or_else(|_| format!("the control API answered {}", answer.status), |body| body.error_msg)
}

/// Prints a document in the form asked for. `false`: standard output is closed, and there is no point in going on.
fn print<T: Serialize>(format: FormatWord, document: &T, render: impl FnOnce(&T) -> String) -> bool {
    let text = match format {
        FormatWord::Text => render(document),
        // Documents have text keys and finite numbers alone, so that they always print.
        FormatWord::Json => serde_json::to_string_pretty(document).unwrap_or_default() + "\n",
    };
    write_out(&text)
}

fn write_out(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

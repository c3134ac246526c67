//! Inputs and steps of the machine in a word each.

use exchange::step::{Connection, Content};
use exchange::{Input, Replay, Step};
use model::outcome::{FailureKind, Progress};

use super::failed;

/// A destination's head came.
pub fn head(status: u16) -> Input {
    Input::ResponseHead { status, retry_after: false, body_replayable: Replay::Possible, content: Content::Message }
}

/// The head of a stream of events came.
pub fn events(status: u16) -> Input {
    Input::ResponseHead { status, retry_after: false, body_replayable: Replay::Possible, content: Content::Events }
}

/// An attempt ended without an answer.
pub fn ended(progress: Progress, failure: FailureKind) -> Input {
    Input::AttemptEnded { end: failed(progress, failure), body_replayable: Replay::Possible }
}

/// A step in a word.
pub fn word(step: &Step) -> String {
    match step {
        Step::Gather => "gather".to_owned(),
        Step::Wait { until, wants: None } => format!("wait until {}", until.as_nanos() / 1_000_000),
        Step::Wait { until, wants: Some(slot) } => {
            format!("wait until {} for {}", until.as_nanos() / 1_000_000, slot.0)
        }
        Step::Connect(attempt) => match attempt.connection {
            Connection::Any => format!("connect {}", attempt.destination.0),
            Connection::Fresh => format!("connect {} fresh", attempt.destination.0),
        },
        Step::HoldThenConnect(attempt) => format!("hold, connect {}", attempt.destination.0),
        Step::Forward => "forward".to_owned(),
        Step::AnswerHeld => "held".to_owned(),
        Step::Answer(answer) => format!("{} {}", answer.status, answer.reason.details()),
        Step::Done => "done".to_owned(),
    }
}

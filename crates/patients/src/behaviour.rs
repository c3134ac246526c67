//! The ways to misbehave, and their words in scripts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::script::{parse_span, print_span};

/// What a patient does with connections and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// `serve 5ms`: answers 200 after this time; a patient that works does its work.
    Serve(Duration),
    /// `fail 503`: answers with this status at once.
    Fail(u16),
    /// `die`: the listener is closed and every connection reset, as if the process had been killed.
    Die,
    /// `refuse`: the listener is closed; what runs is finished, then its connection is closed, and so are idle ones.
    Refuse,
    /// `hang`: takes connections and requests and never answers them, also later.
    Hang,
    /// `pause`: like a stop-the-world collection. Nothing moves; once it is over, requests that waited are answered.
    Pause,
    /// `slow 100ms`: a head at once, then the body in ten pieces, each after this time.
    SlowBody(Duration),
    /// `cut`: a head that announces more than comes, then the connection is reset.
    CutBody,
    /// `garbage`: bytes that are not HTTP.
    Garbage,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self::Serve(Duration::ZERO)
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serve(latency) => write!(f, "serve {}", print_span(*latency)),
            Self::Fail(status) => write!(f, "fail {status}"),
            Self::Die => f.write_str("die"),
            Self::Refuse => f.write_str("refuse"),
            Self::Hang => f.write_str("hang"),
            Self::Pause => f.write_str("pause"),
            Self::SlowBody(each) => write!(f, "slow {}", print_span(*each)),
            Self::CutBody => f.write_str("cut"),
            Self::Garbage => f.write_str("garbage"),
        }
    }
}

/// Words that stand for no behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBehaviour(pub String);

impl fmt::Display for UnknownBehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}: expected serve TIME, fail STATUS, die, refuse, hang, pause, slow TIME, cut or garbage, with a TIME like 5ms or 2s",
            self.0
        )
    }
}

impl std::error::Error for UnknownBehaviour {}

impl FromStr for Behaviour {
    type Err = UnknownBehaviour;

    fn from_str(text: &str) -> Result<Self, UnknownBehaviour> {
        let unknown = || UnknownBehaviour(text.to_owned());
        let span = |word: &str| parse_span(word).ok_or_else(unknown);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["serve"] => Ok(Self::default()),
            ["serve", latency] => Ok(Self::Serve(span(latency)?)),
            ["fail", status] => match status.parse() {
                Ok(status @ 200..=599) => Ok(Self::Fail(status)),
                Ok(_) | Err(_) => Err(unknown()),
            },
            ["die"] => Ok(Self::Die),
            ["refuse"] => Ok(Self::Refuse),
            ["hang"] => Ok(Self::Hang),
            ["pause"] => Ok(Self::Pause),
            ["slow", each] => Ok(Self::SlowBody(span(each)?)),
            ["cut"] => Ok(Self::CutBody),
            ["garbage"] => Ok(Self::Garbage),
            _ => Err(unknown()),
        }
    }
}

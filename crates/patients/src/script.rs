//! Scripts: what a patient does when. `0s serve 5ms; 10s die; 25s serve 5ms`.

use std::str::FromStr;
use std::time::Duration;

use crate::behaviour::{Behaviour, UnknownBehaviour};

/// Changes of behaviour, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script(pub Vec<Step>);

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time since the script began.
    pub at: Duration,
    /// From then on.
    pub behaviour: Behaviour,
}

impl FromStr for Script {
    type Err = UnknownBehaviour;

    /// `TIME behaviour` separated by `;`.
    fn from_str(text: &str) -> Result<Self, UnknownBehaviour> {
        let steps = text.split(';').map(str::trim).filter(|step| !step.is_empty()).map(parse_step);
        let mut steps = steps.collect::<Result<Vec<_>, _>>()?;
        steps.sort_by_key(|step| step.at);
        Ok(Self(steps))
    }
}

fn parse_step(text: &str) -> Result<Step, UnknownBehaviour> {
    let unknown = || UnknownBehaviour(text.to_owned());
    let (at, behaviour) = text.split_once(' ').ok_or_else(unknown)?;
    Ok(Step { at: parse_span(at).ok_or_else(unknown)?, behaviour: behaviour.parse()? })
}

/// A whole number of `ms` or `s`.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    if let Some(number) = text.strip_suffix("ms") {
        number.parse().ok().map(Duration::from_millis)
    } else {
        text.strip_suffix('s')?.parse().ok().map(Duration::from_secs)
    }
}

pub(crate) fn print_span(span: Duration) -> String {
    format!("{}ms", span.as_millis())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_script_is_read_in_the_order_of_its_times() {
        let script: Script = "10s die; 0s serve 5ms;500ms fail 503".parse().unwrap();
        let step = |millis, behaviour| Step { at: Duration::from_millis(millis), behaviour };
        let serve = Behaviour::Serve(Duration::from_millis(5));
        assert_eq!(script.0, [step(0, serve), step(500, Behaviour::Fail(503)), step(10_000, Behaviour::Die)]);
    }

    #[test]
    fn behaviours_read_back_what_they_print_and_refuse_the_rest() {
        for text in ["serve 5ms", "fail 503", "die", "refuse", "hang", "pause", "slow 100ms", "cut", "garbage"] {
            assert_eq!(text.parse::<Behaviour>().unwrap().to_string(), text);
        }
        for text in ["", "serve 5", "fail 99", "fail", "die now", "slow", "sleep"] {
            assert!(text.parse::<Behaviour>().is_err(), "{text}");
        }
        assert!("die".parse::<Script>().is_err());
        assert!("x die".parse::<Script>().is_err());
    }
}

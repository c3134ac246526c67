//! Spans and rates as a scenario writes them.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};

/// A span of time in the native format: `300ms`, `10s`, `2m`, `4h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        config::timespan::parse(&text).map(Self).map_err(|error| D::Error::custom(format!("{text}: {error}")))
    }
}

/// So many in a second: `60/s`, `1/m`, `5/h`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_rate(&text)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("{text}: a rate looks like 60/s, 1/m or 5/h")))
    }
}

fn parse_rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/')?;
    let number: f64 = number.trim().parse().ok()?;
    let seconds = match unit.trim() {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    (number.is_finite() && number > 0.0).then_some(number / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_positive_number_over_a_unit() {
        assert_eq!(parse_rate("60/s"), Some(60.0));
        assert_eq!(parse_rate("3 / m"), Some(0.05));
        assert_eq!(parse_rate("0/s").or(parse_rate("-1/s")).or(parse_rate("5")).or(parse_rate("1/d")), None);
    }
}

//! Spans of time as people and .NET write them.
//!
//! | format | accepted | refused |
//! |---|---|---|
//! | native | `250ms`, `5s`, `1m30s`, `1.5h`, `00:00:10` | a number without a unit (zero needs none) |
//! | rhi.yaml | the same, and a bare number is seconds | |
//! | YARP | .NET's constant format `[-][d.]hh:mm[:ss[.fffffff]]`; a bare whole number is days | `24:00:00` (hours end at 23) |

use std::fmt;
use std::time::Duration;

/// Why a text is no span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSpanError {
    /// A number without a unit.
    NoUnit,
    /// A unit that does not exist, or none where one is needed.
    Unit,
    /// Units do not come from large to small, each once.
    Order,
    /// Below zero.
    Negative,
    /// Hours beyond 23, minutes or seconds beyond 59.
    Range,
    /// Longer than can be counted.
    TooLong,
    /// Anything else.
    Syntax,
}

impl fmt::Display for TimeSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "a duration needs a unit: 250ms, 5s, 1m30s, 2h",
            Self::Unit => "units are ms, s, m, h and d (and us, ns)",
            Self::Order => "units come from large to small, each once: 1h30m",
            Self::Negative => "a duration is not negative",
            Self::Range => "in hh:mm:ss hours end at 23, minutes and seconds at 59; days stand in front: 1.00:00:00",
            Self::TooLong => "that is longer than 500 years",
            Self::Syntax => "a duration looks like 250ms, 5s, 1m30s or 00:00:10",
        })
    }
}

impl std::error::Error for TimeSpanError {}

/// Parses a native span.
pub fn parse(text: &str) -> Result<Duration, TimeSpanError> {
    let text = text.trim();
    if text.contains(':') {
        let span = parse_dotnet(text)?;
        return span.to_duration().ok_or(TimeSpanError::Negative);
    }
    if text.starts_with('-') {
        return Err(TimeSpanError::Negative);
    }
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(TimeSpanError::NoUnit);
    }
    let (mut rest, mut total, mut last) = (text, 0u128, u128::MAX);
    if rest.is_empty() {
        return Err(TimeSpanError::Syntax);
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(letters);
        if number.is_empty() {
            return Err(TimeSpanError::Syntax);
        }
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos).ok_or(TimeSpanError::Unit)?;
        if unit >= last {
            return Err(TimeSpanError::Order);
        }
        last = unit;
        total = total.checked_add(decimal(number, unit)?).ok_or(TimeSpanError::TooLong)?;
        rest = tail;
    }
    from_nanos(total)
}

/// Parses a span of rhi.yaml: native, or a bare number of seconds.
pub fn parse_seconds(text: &str) -> Result<Duration, TimeSpanError> {
    let trimmed = text.trim();
    match parse(trimmed) {
        Err(TimeSpanError::NoUnit) => from_nanos(decimal(trimmed, SECOND)?),
        other => other,
    }
}

/// A .NET TimeSpan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotNetSpan {
    /// Units of 100 ns, below zero for negative spans.
    pub ticks: i128,
    /// Whether it was written as a bare number, which means days.
    pub form: DotNetForm,
}

/// How a .NET span was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DotNetForm {
    /// With colons.
    Clock,
    /// A bare whole number of days.
    BareDays,
}

impl DotNetSpan {
    /// `None` for negative spans.
    pub fn to_duration(self) -> Option<Duration> {
        let ticks = u64::try_from(self.ticks).ok()?;
        let nanos = u32::try_from(ticks % TICKS_PER_SECOND).ok()?.checked_mul(100)?;
        Some(Duration::new(ticks / TICKS_PER_SECOND, nanos))
    }
}

/// Parses .NET's constant format. Parts may have one digit; blanks around count for nothing.
pub fn parse_dotnet(text: &str) -> Result<DotNetSpan, TimeSpanError> {
    let text = text.trim();
    let (sign, body) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    if !body.contains(':') {
        let days = part(body, 8, MAX_DAYS)?;
        return Ok(DotNetSpan { ticks: sign * days * DAY_TICKS, form: DotNetForm::BareDays });
    }
    let mut parts = body.split(':');
    let (first, minutes, seconds) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next());
    if parts.next().is_some() {
        return Err(TimeSpanError::Syntax);
    }
    let (days, hours) = first.split_once('.').map_or(("0", first), |(days, hours)| (days, hours));
    let (seconds, fraction) = match seconds {
        None => ("0", "0"),
        Some(text) => text.split_once('.').unwrap_or((text, "0")),
    };
    let mut ticks = part(days, 8, MAX_DAYS)? * DAY_TICKS;
    ticks += part(hours, 2, 23)? * 3_600 * SECOND_TICKS;
    ticks += part(minutes, 2, 59)? * 60 * SECOND_TICKS;
    ticks += part(seconds, 2, 59)? * SECOND_TICKS;
    let padded = format!("{fraction:0<7}");
    ticks += if fraction.is_empty() { return Err(TimeSpanError::Syntax) } else { part(&padded, 7, 9_999_999)? };
    if ticks > i128::from(i64::MAX) {
        return Err(TimeSpanError::TooLong);
    }
    Ok(DotNetSpan { ticks: sign * ticks, form: DotNetForm::Clock })
}

/// Writes a span natively: `1m30s`; zero is `0s`. [`parse`] reads it back to the nanosecond.
pub fn format(span: Duration) -> String {
    let mut rest = span.as_nanos();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (name, nanos) in UNITS {
        let count = rest / nanos;
        if count > 0 {
            out.push_str(&format!("{count}{name}"));
            rest %= nanos;
        }
    }
    out
}

fn part(text: &str, digits: usize, max: i128) -> Result<i128, TimeSpanError> {
    if text.is_empty() || text.len() > digits || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(TimeSpanError::Syntax);
    }
    let value: i128 = text.parse().map_err(|_| TimeSpanError::Syntax)?;
    if value > max { Err(TimeSpanError::Range) } else { Ok(value) }
}

/// `number` (with a point at most) times `unit` nanoseconds.
fn decimal(number: &str, unit: u128) -> Result<u128, TimeSpanError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return Err(TimeSpanError::Syntax);
    }
    let whole: u64 = whole.parse().map_err(|_| TimeSpanError::TooLong)?;
    let digits: u128 = fraction.parse().map_err(|_| TimeSpanError::Syntax)?;
    let scale = 10u128.pow(u32::try_from(fraction.len()).unwrap_or(9));
    Ok(u128::from(whole) * unit + digits * unit / scale)
}

fn from_nanos(nanos: u128) -> Result<Duration, TimeSpanError> {
    u64::try_from(nanos)
        .ok()
        .filter(|&nanos| nanos <= MAX_NANOS)
        .map(Duration::from_nanos)
        .ok_or(TimeSpanError::TooLong)
}

const SECOND: u128 = 1_000_000_000;
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
/// 500 years: what the monotonic clock can count.
const MAX_NANOS: u64 = 500 * 365 * 86_400 * 1_000_000_000;
const TICKS_PER_SECOND: u64 = 10_000_000;
const SECOND_TICKS: i128 = 10_000_000;
const DAY_TICKS: i128 = 86_400 * SECOND_TICKS;
const MAX_DAYS: i128 = 10_675_199;

#[cfg(test)]
mod tests;

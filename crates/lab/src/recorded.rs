//! An access log of Lazaret as a script of arrivals: when each request came, and its method.

use std::time::Duration;

use model::request::Method;
use serde::Deserialize;

/// The requests of a log, in order of their times since the first one.
pub fn read(text: &str) -> Result<Vec<(Duration, Method)>, String> {
    let mut requests: Vec<(u64, Method)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let entry: Entry = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        let at = millis(&entry.at).ok_or_else(|| format!("line {number}: `at` looks like 2026-01-31T10:00:00.123Z"))?;
        requests.push((at, Method::from_bytes(entry.method.as_bytes())));
    }
    requests.sort_by_key(|(at, _)| *at);
    let first = requests.first().map_or(0, |(at, _)| *at);
    if requests.is_empty() {
        return Err("there is no request in it".into());
    }
    Ok(requests.into_iter().map(|(at, method)| (Duration::from_millis(at - first), method)).collect())
}

/// What matters of a line.
#[derive(Deserialize)]
struct Entry {
    at: String,
    method: String,
}

/// Milliseconds since 1970 of an RFC 3339 time in UTC.
fn millis(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970-03-01 of the proleptic Gregorian calendar, with March as the first month.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1;
    let since = days.checked_sub(719_468)?;
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some(((since * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + fraction.parse::<u64>().ok()?)
}

fn numbers(text: &str, by: char) -> Option<[u64; 3]> {
    let parts: Vec<u64> = text.split(by).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_counted_from_the_first_request_over_the_end_of_a_month() {
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("2026-11-30T01:02:03.5Z"), Some(1_796_000_523_500));
        let log = "{\"at\":\"2024-02-29T23:59:59.900Z\",\"method\":\"GET\",\"status\":200}\n\n\
                   {\"at\":\"2024-03-01T00:00:00.100Z\",\"method\":\"POST\"}\n";
        let requests = read(log).unwrap();
        assert_eq!(requests, [(Duration::ZERO, Method::Get), (Duration::from_millis(200), Method::Post)]);
        assert!(read("").is_err());
        assert!(read("{\"at\":\"yesterday\",\"method\":\"GET\"}").unwrap_err().starts_with("line 1"));
    }
}

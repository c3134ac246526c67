//! Query parameters and path segments, with errors in words.

use std::time::Duration;

use axum::http::{StatusCode, Uri};

use super::Failure;

/// The parameters of a query, decoded. Of a name given twice the first counts.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Those of a request; names outside of `known` are refused, so that a misspelt one is not taken for absent.
    pub(super) fn read(uri: &Uri, known: &[&str]) -> Result<Self, Failure> {
        let mut parameters = Vec::new();
        for pair in uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| decode(&text.replace('+', " "));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                return Err(bad(format!("unknown parameter {name}; there are: {}", known.join(", "))));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.text(name)
            .map(|text| text.parse().map_err(|_| bad(format!("{name} is a whole number, not `{text}`"))))
            .transpose()
    }

    /// A span such as `20s` or `500ms`, `most` at most.
    pub(super) fn span(&self, name: &str, most: Duration) -> Result<Option<Duration>, Failure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let span = span(text).ok_or_else(|| bad(format!("{name} is a time such as 20s or 500ms, not `{text}`")))?;
        if span > most {
            return Err(bad(format!("{name} is {} s at most", most.as_secs())));
        }
        Ok(Some(span))
    }
}

/// Decodes one percent-encoded segment.
pub(super) fn decode(segment: &str) -> Result<String, Failure> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(bad(format!("`{segment}` has a % without two hexadecimal digits")));
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| bad(format!("`{segment}` is no UTF-8")))
}

/// The segments of a request's path below `prefix`, decoded one by one: an encoded slash is part of its segment.
pub(super) fn segments(uri: &Uri, prefix: &str) -> Result<Vec<String>, Failure> {
    let below = uri.path().strip_prefix(prefix).unwrap_or("");
    below.split('/').map(decode).collect()
}

fn span(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|one: char| !one.is_ascii_digit())?);
    let number: u64 = digits.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => None,
    }
}

fn bad(text: String) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn segments_keep_their_encoded_slashes() {
        let uri: Uri = "/api/destinations/cluster1/cluster1%2Fdestination1?x=1".parse().unwrap();
        assert_eq!(segments(&uri, "/api/destinations/").unwrap(), ["cluster1", "cluster1/destination1"]);
        assert!(decode("%2").is_err() && decode("%zz").is_err() && decode("%ff").is_err());
    }

    #[test]
    fn spans_have_a_unit() {
        assert_eq!(span("20s"), Some(Duration::from_secs(20)));
        assert_eq!(span("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(span("1m"), Some(Duration::from_secs(60)));
        for text in ["", "20", "s", "-1s", "1.5s", "2h"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn unknown_and_unreadable_parameters_are_named() {
        let read = |query: &str| Parameters::read(&format!("/x?{query}").parse().unwrap(), &["after", "cluster"]);
        assert!(read("aftr=1").is_err());
        let parameters = read("after=x&cluster=a%2Fb+c").unwrap();
        assert!(parameters.number("after").is_err());
        assert_eq!(parameters.text("cluster"), Some("a/b c"));
    }
}

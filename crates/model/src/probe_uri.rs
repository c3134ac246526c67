//! Where a probe goes: the destination's base URL joined with the check's path and query.
//!
//! `base` is the destination's `health` URL when it has one, else its address. Its path comes first, less its closing
//! slash when the check has a path; its own query is dropped. Path and query of the check are taken as parts, so a `?`
//! within the path and a `#` within the query are data and travel percent-encoded. Source: the YARP documentation
//! (active health checks) and YARP's probing request factory.

use crate::active::ProbeRequest;
use crate::address::Url;

/// Why no probe of this check can be made: its path does not begin with `/` or its query not with `?`. Only a YARP file
/// gets that far; YARP takes it, and every probe fails.
pub fn fault(request: &ProbeRequest) -> Option<&'static str> {
    let lacks = |part: &Option<String>, first| part.as_deref().is_some_and(|p| !p.is_empty() && !p.starts_with(first));
    if lacks(&request.path, '/') {
        Some("the path does not begin with /")
    } else if lacks(&request.query, '?') {
        Some("the query does not begin with ?")
    } else {
        None
    }
}

/// The request target of a probe (RFC 9112 3.2.1): path and query. Empty, which is no target, when there is a [`fault`].
pub fn target(base: &Url, request: &ProbeRequest) -> String {
    if fault(request).is_some() {
        return String::new();
    }
    let mut target = String::with_capacity(base.path.len() + 32);
    match &request.path {
        None => target.push_str(&base.path),
        Some(path) => {
            target.push_str(base.path.strip_suffix('/').unwrap_or(&base.path));
            encode(&mut target, path, is_path);
        }
    }
    if target.is_empty() {
        target.push('/');
    }
    if let Some(query) = request.query.as_deref().filter(|query| !matches!(*query, "" | "?")) {
        target.push('?');
        encode(&mut target, query.strip_prefix('?').unwrap_or(query), is_query);
    }
    target
}

/// The whole URL of a probe, as `check` prints it.
pub fn url(base: &Url, request: &ProbeRequest) -> String {
    format!("{}://{}{}", base.scheme.as_str(), base.authority(), target(base, request))
}

/// The Host of a probe: the check's own, else the destination's, else the authority of `base`.
pub fn host(base: &Url, destination_host: Option<&str>, request: &ProbeRequest) -> String {
    match request.host.as_deref().or(destination_host) {
        Some(host) => host.to_owned(),
        None => base.authority(),
    }
}

/// Appends `part` with everything encoded that may not stand there; what is encoded already stays.
fn encode(target: &mut String, part: &str, may_stand: fn(u8) -> bool) {
    let bytes = part.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let is_triplet = byte == b'%'
            && matches!(bytes.get(at + 1..at + 3), Some([a, b]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
        if may_stand(byte) || is_triplet {
            target.push(char::from(byte));
        } else {
            target.push('%');
            for digit in [byte >> 4, byte & 15] {
                target.push(char::from(b"0123456789ABCDEF".get(usize::from(digit)).copied().unwrap_or(b'0')));
            }
        }
    }
}

/// RFC 3986 3.3: pchar and the slash.
fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte)
}

/// RFC 3986 3.4.
fn is_query(byte: u8) -> bool {
    is_path(byte) || byte == b'?'
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::active::StatusRange;

    fn request(path: Option<&str>, query: Option<&str>, host: Option<&str>) -> ProbeRequest {
        ProbeRequest {
            method: "GET".to_owned(),
            path: path.map(str::to_owned),
            query: query.map(str::to_owned),
            host: host.map(str::to_owned),
            headers: Vec::new(),
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        }
    }

    #[test]
    fn base_path_and_query_join_as_in_yarp() {
        let (address, api) = ("https://localhost:10000/", "https://localhost:10000/api");
        let (health, deep) = ("https://localhost:20000/", "https://localhost:20000/api");
        for (row, address, health, path, query, expected) in [
            ("P1", address, None, None, None, "https://localhost:10000/"),
            ("P2", address, Some(health), None, None, "https://localhost:20000/"),
            ("P3", address, None, Some("/api/health/"), None, "https://localhost:10000/api/health/"),
            ("P4", address, Some(health), Some("/api/health/"), None, "https://localhost:20000/api/health/"),
            ("P5", api, Some(health), Some("/health/"), None, "https://localhost:20000/health/"),
            ("P6", address, Some(deep), Some("/health/"), None, "https://localhost:20000/api/health/"),
            ("P7", address, None, None, Some("?key=value"), "https://localhost:10000/?key=value"),
            ("P8", address, Some(health), None, Some("?key=value"), "https://localhost:20000/?key=value"),
            (
                "P9",
                address,
                Some(deep),
                Some("/health/"),
                Some("?key=value"),
                "https://localhost:20000/api/health/?key=value",
            ),
            (
                "P10",
                address,
                Some(deep),
                Some("/health?foo=bar"),
                Some("?key=value"),
                "https://localhost:20000/api/health%3Ffoo=bar?key=value",
            ),
            ("P15", address, Some("http://h:1/x?y=1"), Some("/z"), None, "http://h:1/x/z"),
            ("base as it is", "http://h/a/b", None, None, None, "http://h/a/b"),
            ("one slash removed", "http://h/a//", None, Some("/b"), None, "http://h/a//b"),
            ("fragment in a query", "http://h/", None, None, Some("?a=#b?c"), "http://h/?a=%23b?c"),
            ("blanks and letters", "http://h/", None, Some("/ä b%20c%zz"), None, "http://h/%C3%A4%20b%20c%25zz"),
            ("empty query", "http://h/", None, Some("/a"), Some("?"), "http://h/a"),
        ] {
            let base = Url::parse(health.unwrap_or(address)).unwrap();
            assert_eq!(url(&base, &request(path, query, None)), expected, "{row}");
        }
    }

    #[test]
    fn a_part_without_its_first_character_has_no_target() {
        let base = Url::parse("http://h/api").unwrap();
        for (row, path, query) in [("P13", Some("health"), None), ("P14", None, Some("a=b")), ("P14", None, Some("/a"))]
        {
            assert!(fault(&request(path, query, None)).is_some(), "{row}");
            assert_eq!(target(&base, &request(path, query, None)), "", "{row}");
        }
        assert_eq!(fault(&request(Some("/a"), Some("?b"), None)), None);
    }

    #[test]
    fn the_host_is_the_checks_then_the_destinations_then_the_authority() {
        let base = Url::parse("http://h:81/").unwrap();
        // P17
        assert_eq!(host(&base, Some("svc.local"), &request(None, None, None)), "svc.local");
        assert_eq!(host(&base, None, &request(None, None, None)), "h:81");
        assert_eq!(host(&base, Some("svc.local"), &request(None, None, Some("check.local"))), "check.local");
    }
}

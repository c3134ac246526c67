//! What is measured: one kind of work after the other, each with its messages, its pace and its peers.

use std::time::Duration;

use crate::engine::Pace;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A small GET over kept connections.
    Small,
    /// The same, every exchange logged.
    Logged,
    /// A POST of 1 kB.
    Post,
    /// An answer of 10 kB.
    TenKilobytes,
    /// An answer of 1 MiB.
    Mebibyte,
    /// An answer of 100 MiB.
    HundredMebibytes,
    /// A small GET at so many a second.
    Paced(u32),
    /// A small GET over kept TLS connections.
    Tls,
    /// A TLS connection for each request, no session resumed.
    TlsNew,
    /// HTTP/2 over TLS to HTTP/1.1 destinations.
    Http2,
    /// gRPC unary calls to HTTP/2 destinations.
    Grpc,
    /// A small GET among 1 000 routes, 100 clusters of 100 destinations.
    Routes,
    /// A small GET with two workers on both cores.
    Workers,
}

/// The messages of a work.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    pub(crate) request: Vec<u8>,
    /// Head of the answer; its body is `body` bytes of filler.
    pub(crate) head: Vec<u8>,
    pub(crate) body: usize,
}

/// What clients connect by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Plain TCP, connections kept.
    Plain,
    /// TLS, connections kept.
    Tls,
    /// TLS, one request per connection.
    TlsOnce,
    /// HTTP/2 over TLS, connections kept; one request on each is what it can do.
    Http2,
}

/// Which of a peer's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Plain, no log.
    Plain,
    /// Plain, logged.
    Logged,
    /// TLS with HTTP/1.1 and HTTP/2.
    Tls,
    /// Plain, with buffers for large bodies.
    Large,
    /// gRPC over cleartext HTTP/2.
    Grpc,
}

impl Work {
    /// All, in the order of the report.
    pub(crate) const ALL: [Self; 15] = [
        Self::Small,
        Self::Logged,
        Self::Post,
        Self::TenKilobytes,
        Self::Mebibyte,
        Self::HundredMebibytes,
        Self::Paced(10_000),
        Self::Paced(20_000),
        Self::Paced(40_000),
        Self::Tls,
        Self::TlsNew,
        Self::Http2,
        Self::Grpc,
        Self::Routes,
        Self::Workers,
    ];

    /// As it is asked for.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Small => "small".to_owned(),
            Self::Logged => "logged".to_owned(),
            Self::Post => "post".to_owned(),
            Self::TenKilobytes => "10kB".to_owned(),
            Self::Mebibyte => "1MiB".to_owned(),
            Self::HundredMebibytes => "100MiB".to_owned(),
            Self::Paced(rate) => format!("{}k/s", rate / 1000),
            Self::Tls => "tls".to_owned(),
            Self::TlsNew => "tls-new".to_owned(),
            Self::Http2 => "h2".to_owned(),
            Self::Grpc => "grpc".to_owned(),
            Self::Routes => "routes".to_owned(),
            Self::Workers => "workers".to_owned(),
        }
    }

    /// For people.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Small => "Small GET, connections kept".to_owned(),
            Self::Logged => "The same with the access log on".to_owned(),
            Self::Post => "POST of 1 kB".to_owned(),
            Self::TenKilobytes => "Answer of 10 kB".to_owned(),
            Self::Mebibyte => "Answer of 1 MiB".to_owned(),
            Self::HundredMebibytes => "Answer of 100 MiB".to_owned(),
            Self::Paced(rate) => format!("Small GET at {rate} a second (Poisson)"),
            Self::Tls => "Small GET over kept TLS connections (TLS 1.3, ECDSA P-256)".to_owned(),
            Self::TlsNew => "One TLS connection per request, no resumption (TLS 1.3, ECDSA P-256)".to_owned(),
            Self::Http2 => "HTTP/2 over TLS to HTTP/1.1 destinations (h2load, 16 connections of 10 streams)".to_owned(),
            Self::Grpc => {
                "gRPC unary to HTTP/2 destinations (h2load, cleartext, 16 connections of 10 streams)".to_owned()
            }
            Self::Routes => "Small GET among 1 000 routes, 100 clusters of 100 destinations".to_owned(),
            Self::Workers => "Small GET, two workers on both cores, which the load shares".to_owned(),
        }
    }

    /// The work of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.name() == name)
    }

    /// Who takes part.
    pub(crate) fn peers(self) -> &'static [&'static str] {
        match self {
            Self::Small => &["tcp-copy", "nginx", "haproxy", "lazaret", "pingora", "envoy", "caddy"],
            Self::Logged => &["nginx", "lazaret"],
            Self::Post | Self::TenKilobytes | Self::Paced(_) => &["nginx", "haproxy", "lazaret"],
            Self::Mebibyte | Self::HundredMebibytes => &["tcp-copy", "nginx", "haproxy", "lazaret"],
            Self::Tls | Self::TlsNew => &["nginx", "haproxy", "lazaret"],
            Self::Http2 => &["nginx", "haproxy", "lazaret", "envoy"],
            Self::Grpc => &["nginx", "lazaret", "envoy"],
            Self::Routes => &["lazaret", "lazaret-routes"],
            Self::Workers => &["nginx", "nginx-two", "lazaret", "lazaret-two"],
        }
    }

    /// Whose figures the others are divided by.
    pub(crate) fn base(self) -> &'static str {
        if matches!(self, Self::Routes | Self::Workers) { "lazaret" } else { "nginx" }
    }

    pub(crate) fn port(self) -> Port {
        match self {
            Self::Logged => Port::Logged,
            Self::Mebibyte | Self::HundredMebibytes => Port::Large,
            Self::Tls | Self::TlsNew | Self::Http2 => Port::Tls,
            Self::Grpc => Port::Grpc,
            Self::Small | Self::Post | Self::TenKilobytes | Self::Paced(_) | Self::Routes | Self::Workers => {
                Port::Plain
            }
        }
    }

    pub(crate) fn transport(self) -> Transport {
        if self == Self::Tls {
            Transport::Tls
        } else if self == Self::TlsNew {
            Transport::TlsOnce
        } else {
            Transport::Plain
        }
    }

    pub(crate) fn pace(self) -> Pace {
        if let Self::Paced(rate) = self { Pace::Poisson { rate: f64::from(rate) } } else { Pace::Closed }
    }

    /// Client connections.
    pub(crate) fn connections(self, asked: usize) -> usize {
        if self == Self::HundredMebibytes {
            4
        } else if self == Self::Mebibyte {
            16
        } else {
            asked
        }
    }

    /// Length of a round.
    pub(crate) fn length(self, asked: Duration) -> Duration {
        if self == Self::HundredMebibytes { asked.max(Duration::from_secs(3)) } else { asked }
    }

    /// Whether h2load makes the load.
    pub(crate) fn is_external(self) -> bool {
        matches!(self, Self::Http2 | Self::Grpc)
    }

    pub(crate) fn messages(self) -> Messages {
        let body = if self == Self::TenKilobytes {
            10_000
        } else if self == Self::Mebibyte {
            1 << 20
        } else if self == Self::HundredMebibytes {
            100 << 20
        } else {
            256
        };
        let request = if self == Self::Post {
            let head = request("POST", "Content-Type: application/json\r\nContent-Length: 1000\r\n");
            [head.as_bytes(), &[b'{'; 1000]].concat()
        } else if self == Self::TlsNew {
            request("GET", "Connection: close\r\n").into_bytes()
        } else {
            request("GET", "").into_bytes()
        };
        Messages { request, head: head(body).into_bytes(), body }
    }
}

/// About 330 bytes, as a browser sends them.
fn request(method: &str, more: &str) -> String {
    format!(
        "{method} /assets/articles/2024/overview?page=3 HTTP/1.1\r\n\
         Host: www.example.test\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
         Accept-Language: en-US,en;q=0.5\r\n\
         Accept-Encoding: gzip, deflate, br\r\n\
         Cookie: theme=dark; id=2f1c9a7be0\r\n{more}\r\n"
    )
}

/// 6 fields.
fn head(body: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\n\
         Content-Type: text/html; charset=utf-8\r\n\
         Content-Length: {body}\r\n\
         Cache-Control: max-age=60\r\n\
         ETag: \"5f3a-62c1\"\r\n\
         Date: Sun, 29 Nov 2026 12:00:00 GMT\r\n\
         Server: destination\r\n\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_found_by_its_name() {
        assert!(Work::ALL.into_iter().all(|work| Work::of(&work.name()) == Some(work)));
    }
}

//! Who the client is, behind proxies that are trusted.
//!
//! The list of addresses grows to the right, each proxy adding the peer it saw. So it is read from the right for as long
//! as the hop that wrote an entry is trusted; the first address that is not is the client. What stands left of it was
//! written by the client itself.

use std::net::IpAddr;

use http1::fields::Known;
use http1::forward::Trust;
use http1::request::Request;
use model::listener::Listener;

/// Whether the peer is a trusted proxy.
pub(crate) fn trust(listener: &Listener, peer: IpAddr) -> Trust {
    if listener.trusted_proxies.iter().any(|net| net.contains(&peer)) { Trust::Trusted } else { Trust::Untrusted }
}

/// The client's address: of `X-Forwarded-For`, else of `Forwarded`, as far as those who wrote it are trusted.
pub(crate) fn client(listener: &Listener, peer: IpAddr, request: &Request<'_>) -> IpAddr {
    if trust(listener, peer) == Trust::Untrusted {
        return peer;
    }
    let lines: Vec<&[u8]> = request.values(Known::ForwardedFor).collect();
    if !lines.is_empty() {
        return walk(listener, peer, lines.iter().rev().flat_map(|line| line.rsplit(|&b| b == b',')));
    }
    let lines: Vec<&[u8]> = request.values(Known::Forwarded).collect();
    let elements = lines.iter().rev().flat_map(|line| line.rsplit(|&b| b == b','));
    walk(listener, peer, elements.map(for_parameter))
}

fn walk<'a>(listener: &Listener, peer: IpAddr, hops: impl Iterator<Item = &'a [u8]>) -> IpAddr {
    let mut client = peer;
    for hop in hops {
        if trust(listener, client) == Trust::Untrusted {
            break;
        }
        let Some(address) = address(hop) else { break };
        client = address;
    }
    client
}

/// The value of `for=` in one element of `Forwarded` (RFC 7239 4).
fn for_parameter(element: &[u8]) -> &[u8] {
    let pairs = element.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    let mut values = pairs.filter_map(|pair| {
        let (name, value) = pair.split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    });
    values.next().unwrap_or_default()
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`, quoted or not.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim().trim_matches('"');
    let host = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => host,
            _ => text,
        },
    };
    host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http1::limits::HeadLimits;
    use http1::request::RequestHead;
    use model::id::ListenerId;
    use model::listener::SelfCheck;
    use model::timeouts::ClientLimits;

    use super::*;

    fn client_of(peer: &str, fields: &str) -> String {
        let listener = Listener {
            id: ListenerId::from("web"),
            address: "127.0.0.1:0".parse().unwrap(),
            limits: ClientLimits::NATIVE,
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            self_check: SelfCheck::Off,
            entry: Default::default(),
            tls: None,
            http2: Default::default(),
        };
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        head.parse(text.as_bytes(), &HeadLimits::of_client(&listener.limits)).unwrap();
        client(&listener, peer.parse().unwrap(), &head.view(text.as_bytes())).to_string()
    }

    #[test]
    fn the_first_address_from_the_right_that_is_not_trusted_is_the_client() {
        for (peer, fields, expected) in [
            ("192.0.2.9", "X-Forwarded-For: 1.1.1.1\r\n", "192.0.2.9"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "X-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1"),
            ("10.0.0.1", "X-Forwarded-For: 6.6.6.6, 1.1.1.1, 10.0.0.2\r\n", "1.1.1.1"),
            ("10.0.0.1", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 1.1.1.1,10.0.0.2\r\n", "1.1.1.1"),
            ("10.0.0.1", "X-Forwarded-For: 1.1.1.1, nonsense\r\n", "10.0.0.1"),
            ("10.0.0.1", "X-Forwarded-For: ::ffff:1.1.1.1\r\n", "1.1.1.1"),
            ("fd00::1", "X-Forwarded-For: [2001:db8::1]:80\r\n", "2001:db8::1"),
            ("10.0.0.1", "Forwarded: for=6.6.6.6, For=\"[2001:db8::1]:80\";proto=http\r\n", "2001:db8::1"),
            ("10.0.0.1", "Connection: X-Forwarded-For\r\nX-Forwarded-For: 1.1.1.1\r\n", "10.0.0.1"),
        ] {
            assert_eq!(client_of(peer, fields), expected, "{peer} {fields}");
        }
    }
}

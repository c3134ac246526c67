//! Destinations that switch protocols, and clients that have made them.

use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment};

use super::Proxy;

/// A request that may become a tunnel.
pub const OFFER: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\n";
/// What a destination switches with.
pub const SWITCH: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-B: c\r\n\r\n";

/// Switches every request, then does this.
pub fn switching(acts: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => [vec![Act::Send(SWITCH.to_vec())], acts.clone()].concat(),
    })
}

/// A client with a tunnel.
pub fn switched(proxy: &Proxy) -> Client {
    let mut client = proxy.client();
    client.send(OFFER);
    let response = client.response();
    assert_eq!(response.status(), 101);
    client
}

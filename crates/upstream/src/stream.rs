//! A connection to a destination: plain, or under TLS.

use io::MaybeTls;
use tokio_rustls::client::TlsStream;

/// A connection to a destination.
pub type Stream<S> = MaybeTls<S, TlsStream<S>>;

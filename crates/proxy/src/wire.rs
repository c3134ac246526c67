//! A client's connection as the rest of the proxy sees it, whether or not TLS lies between.

use io::MaybeTls;
use tokio_rustls::server::TlsStream;

use crate::ahead::Ahead;

/// A client's connection. What was read before its handshake is read again below its TLS.
pub(crate) type Wire<S> = MaybeTls<S, TlsStream<Ahead<S>>>;

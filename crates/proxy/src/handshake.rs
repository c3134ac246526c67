//! The TLS handshake of one connection, and why it failed.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use ::io::Io;
use model::time::Timestamp;
use rustls::{Error, HandshakeKind};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::ahead::Ahead;
use crate::local::Local;
use crate::timer::Timer;
use crate::tls::Secured;

/// What a handshake comes to.
pub(crate) enum Shaken<S> {
    /// TLS is spoken.
    Done(Box<TlsStream<Ahead<S>>>),
    /// The client speaks, and it is plain HTTP by its first byte. Nothing was sent.
    Plain(Ahead<S>),
    /// It failed; the word says why, what the library said follows.
    Failed(&'static str, Option<io::Error>),
}

/// Shakes hands by `due`. What it begins with it goes by to its end, whatever is reloaded meanwhile.
pub(crate) async fn shake<I: Io, R>(
    local: &Local<I, R>,
    secured: &Secured,
    mut stream: Ahead<I::Stream>,
    timer: &mut Timer<I>,
    due: Timestamp,
) -> Shaken<I::Stream> {
    if let Err((reason, error)) = first_byte(local, &mut stream, timer, due).await {
        return Shaken::Failed(reason, error);
    }
    if stream.left().first().is_some_and(u8::is_ascii_uppercase) {
        return Shaken::Plain(stream);
    }
    let mut accept = pin!(TlsAcceptor::from(secured.config()).accept(stream));
    let shaken = poll_fn(|context| match accept.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => timer.poll(context, due).map(|()| None),
    });
    match shaken.await {
        Some(Ok(stream)) => Shaken::Done(Box::new(stream)),
        Some(Err(error)) => Shaken::Failed(reason(&error), Some(error)),
        None => Shaken::Failed(TIMEOUT, None),
    }
}

/// How a handshake that was done went.
pub(crate) fn kind<S>(stream: &TlsStream<S>) -> &'static str {
    match stream.get_ref().1.handshake_kind() {
        Some(HandshakeKind::Resumed) => "resumed",
        Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) | None => "full",
    }
}

async fn first_byte<I: Io, R>(
    local: &Local<I, R>,
    stream: &mut Ahead<I::Stream>,
    timer: &mut Timer<I>,
    due: Timestamp,
) -> Result<(), (&'static str, Option<io::Error>)> {
    poll_fn(|context| {
        if !stream.left().is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = local.scratch.borrow_mut();
        match stream.poll_more(context, &mut scratch) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err((GONE, None))),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err((GONE, Some(error)))),
            Poll::Pending => {
                drop(scratch);
                timer.poll(context, due).map(|()| Err((TIMEOUT, None)))
            }
        }
    })
    .await
}

/// The word for a failed handshake.
fn reason(error: &io::Error) -> &'static str {
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else { return GONE };
    #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is another crate's and may grow")]
    match error {
        Error::NoApplicationProtocol => "no-application-protocol",
        Error::PeerIncompatible(_) => "nothing-in-common",
        Error::NoCertificatesPresented => "no-client-certificate",
        Error::InvalidCertificate(_) => "bad-client-certificate",
        // The client does not like us: our certificate, in most cases.
        Error::AlertReceived(_) => "client-alert",
        _ => "protocol",
    }
}

const GONE: &str = "client-gone";
pub(crate) const TIMEOUT: &str = "tls-handshake-timeout";

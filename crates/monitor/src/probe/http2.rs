//! One request over HTTP/2, for HTTP probes of that version and for `grpc`: on a connection of its own, as all probes.
//!
//! The connection's task lives as long as the probe does.

use std::future::poll_fn;
use std::rc::Rc;

use ::io::Io;
use ::io::deadline::Deadline;
use bytes::Bytes;
use health::ProbeOrder;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};
use model::outcome::FailureKind;
use tokio::sync::Notify;
use upstream::h2::{Call, Connection, End, Head, Piece};
use upstream::{Connector, Resolve, Stream};

use super::message::Invalid;
use super::{ProbeEnd, ProbeMessage};

/// The HTTP probe over `stream`, which speaks HTTP/2.
pub(super) async fn probe<I: Io, R: Resolve>(
    connector: &Connector<I, R>,
    order: &ProbeOrder,
    message: &ProbeMessage,
    stream: Stream<I::Stream>,
    deadline: &Deadline<I>,
) -> ProbeEnd {
    let Ok(request) = request(order, message) else {
        // Ours, and yet a failure: nobody may pass for healthy because nothing could be sent.
        return ProbeEnd::failed(FailureKind::Protocol, None);
    };
    let expected = order.request.expect_body.as_deref();
    let mut answer = match deadline.within(ask(connector, stream, request, Bytes::new())).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => return ProbeEnd::failed(failure, None),
        Err(_) => return ProbeEnd::failed(FailureKind::HeadTimeout, None),
    };
    let status = answer.status;
    if !order.request.expect_statuses.iter().any(|range| range.contains(status)) {
        return ProbeEnd::failed(FailureKind::Status, Some(status));
    }
    let Some(expected) = expected else { return ProbeEnd::passed(Some(status)) };
    match deadline.within(answer.find(expected.as_bytes())).await {
        Ok(Ok(())) => ProbeEnd::passed(Some(status)),
        Ok(Err(failure)) => ProbeEnd::failed(failure, Some(status)),
        Err(_) => ProbeEnd::failed(FailureKind::BodyTimeout, Some(status)),
    }
}

/// Sends one request and waits for the head of its response.
pub(super) async fn ask<I: Io, R: Resolve>(
    connector: &Connector<I, R>,
    stream: Stream<I::Stream>,
    request: Request<()>,
    mut body: Bytes,
) -> Result<Answer, FailureKind> {
    let started = Connection::start(stream, Rc::new(Notify::new()), connector.io().now()).await;
    let connection = started.map_err(|_| FailureKind::Reset)?;
    let place = connection.place().ok_or(FailureKind::Reset)?;
    let end = if body.is_empty() { End::Here } else { End::Later };
    let mut call = place.send(request, end).map_err(|failure| failure.kind)?;
    let head = poll_fn(|context| {
        // What the destination does not take shows in its answer.
        let _ = call.poll_send(context, &mut body, End::Here);
        loop {
            match std::task::ready!(call.poll_head(context)) {
                Ok(Head::Interim(_)) => {}
                Ok(Head::Final(head)) => return std::task::Poll::Ready(Ok(head)),
                Err(failure) => return std::task::Poll::Ready(Err(failure.kind)),
            }
        }
    })
    .await?;
    let (parts, ()) = head.into_parts();
    Ok(Answer { status: parts.status.as_u16(), fields: parts.headers, trailers: None, call, _connection: connection })
}

/// A response whose head has come.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: HeaderMap,
    /// Known when the body is over.
    pub(super) trailers: Option<HeaderMap>,
    call: Call,
    _connection: Rc<Connection>,
}

impl Answer {
    /// The next part of the content; `None`: it is over.
    pub(super) async fn more(&mut self) -> Result<Option<Bytes>, FailureKind> {
        match poll_fn(|context| self.call.poll_piece(context)).await {
            None => Ok(None),
            Some(Ok(Piece::Data(data))) => {
                self.call.release(data.len());
                Ok(Some(data))
            }
            Some(Ok(Piece::Trailers(trailers))) => {
                self.trailers = Some(trailers);
                Ok(None)
            }
            Some(Err(failure)) => Err(failure),
        }
    }

    /// Reads the body until `expected` stands in it.
    async fn find(&mut self, expected: &[u8]) -> Result<(), FailureKind> {
        let mut content = Vec::new();
        loop {
            if super::http::contains(&content, expected) {
                return Ok(());
            }
            if content.len() >= super::http::BODY {
                return Err(FailureKind::Body);
            }
            let Some(part) = self.more().await? else { return Err(FailureKind::Body) };
            content.extend_from_slice(&part);
            content.truncate(super::http::BODY);
        }
    }
}

/// The probe's message as HTTP/2 has it: Host is `:authority`, fields of the connection have no place (RFC 9113 8.2.2).
fn request(order: &ProbeOrder, message: &ProbeMessage) -> Result<Request<()>, Invalid> {
    let fields = message.fields()?;
    let mut request = head(order, message.method.as_str(), &message.host, &message.target)?;
    for (name, value) in fields {
        let name = http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| Invalid)?;
        let value = HeaderValue::from_str(value).map_err(|_| Invalid)?;
        if !CONNECTION.contains(&name.as_str()) {
            request.headers_mut().append(name, value);
        }
    }
    Ok(request)
}

/// A request without fields.
pub(super) fn head(order: &ProbeOrder, method: &str, host: &str, target: &str) -> Result<Request<()>, Invalid> {
    let uri = Uri::builder().scheme(order.base.scheme.as_str()).authority(host).path_and_query(target);
    let mut request = Request::new(());
    *request.uri_mut() = uri.build().map_err(|_| Invalid)?;
    *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|_| Invalid)?;
    *request.version_mut() = Version::HTTP_2;
    Ok(request)
}

/// Fields that belong to an HTTP/1.1 connection.
const CONNECTION: [&str; 5] = ["keep-alive", "proxy-connection", "te", "upgrade", "connection"];

//! The gRPC probe: one call of `grpc.health.v1.Health/Check` over HTTP/2.
//!
//! The two messages are written and read by hand: a request with one text (field 1, the service) and an answer with one
//! number (field 1, 1 for SERVING). Passed is a call that ends with status 0 and says SERVING.
//!
//! | what came | reason |
//! |---|---|
//! | an HTTP status other than 200, or a gRPC status other than 0 | status |
//! | NOT_SERVING, UNKNOWN, SERVICE_UNKNOWN | body |
//! | no gRPC: another content type, no gRPC status, no such message; not HTTP/2 | protocol |
//!
//! Sources: the gRPC health checking protocol, gRPC over HTTP/2, the encoding of protocol buffers.

use ::io::Io;
use ::io::deadline::Deadline;
use bytes::{BufMut, Bytes, BytesMut};
use health::ProbeOrder;
use http::header::{CONTENT_TYPE, HeaderName, TE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use model::outcome::FailureKind;
use model::probe_uri;
use upstream::{Connector, Resolve, Target};

use super::ProbeEnd;
use super::http2::{Answer, ask, head};
use super::message::{self, Invalid};

pub(super) async fn probe<I: Io, R: Resolve>(
    connector: &Connector<I, R>,
    order: &ProbeOrder,
    deadline: &Deadline<I>,
) -> ProbeEnd {
    let Ok(request) = request(order) else {
        return ProbeEnd::failed(FailureKind::Protocol, None);
    };
    let target = Target::of(&order.base, &order.tls, order.http, &order.outbound);
    let stream = match connector.connect_within(target, deadline).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(target: "monitor", destination = %order.destination, %error, "probe could not connect");
            return ProbeEnd::failed(error.kind, None);
        }
    };
    let service = order.request.service.as_deref().unwrap_or_default();
    let mut answer = match deadline.within(ask(connector, stream, request, question(service))).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => return ProbeEnd::failed(failure, None),
        Err(_) => return ProbeEnd::failed(FailureKind::HeadTimeout, None),
    };
    let status = Some(answer.status);
    match deadline.within(judge(&mut answer)).await {
        Ok(Ok(())) => ProbeEnd::passed(status),
        Ok(Err(failure)) => ProbeEnd::failed(failure, status),
        Err(_) => ProbeEnd::failed(FailureKind::BodyTimeout, status),
    }
}

fn request(order: &ProbeOrder) -> Result<Request<()>, Invalid> {
    let host = probe_uri::host(&order.base, order.host.as_deref(), &order.request);
    let mut request = head(order, "POST", &host, CHECK)?;
    let fields = request.headers_mut();
    for (name, value) in &order.request.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Invalid)?;
        if !message::is_own(name.as_str()) {
            fields.append(name, HeaderValue::from_str(value).map_err(|_| Invalid)?);
        }
    }
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    fields.insert(TE, HeaderValue::from_static("trailers"));
    fields.entry(USER_AGENT).or_insert(HeaderValue::from_static(message::USER_AGENT));
    let patience = format!("{}m", order.timeout.as_millis().clamp(1, LONGEST));
    fields.insert(TIMEOUT, HeaderValue::from_str(&patience).map_err(|_| Invalid)?);
    Ok(request)
}

/// The request's message, behind its five bytes: not compressed, so long.
fn question(service: &str) -> Bytes {
    let mut text = BytesMut::new();
    if !service.is_empty() {
        text.put_u8(SERVICE_FIELD);
        let mut left = service.len();
        while left >= 0x80 {
            text.put_u8(u8::try_from(left & 0x7f).unwrap_or_default() | 0x80);
            left >>= 7;
        }
        text.put_u8(u8::try_from(left).unwrap_or_default());
        text.put_slice(service.as_bytes());
    }
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
    message.put_slice(&text);
    message.freeze()
}

async fn judge(answer: &mut Answer) -> Result<(), FailureKind> {
    if answer.status != 200 {
        return Err(FailureKind::Status);
    }
    let kind = answer.fields.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !kind.starts_with(b"application/grpc") {
        return Err(FailureKind::Protocol);
    }
    let mut message = Vec::new();
    while let Some(part) = answer.more().await? {
        message.extend_from_slice(&part);
        if message.len() > MESSAGE {
            return Err(FailureKind::Protocol);
        }
    }
    // A call that fails at once has its status in the head (Trailers-Only).
    let status = answer.trailers.as_ref().and_then(status_of).or_else(|| status_of(&answer.fields));
    match status.ok_or(FailureKind::Protocol)? {
        b"0" => {}
        _ => return Err(FailureKind::Status),
    }
    match serving(&message).ok_or(FailureKind::Protocol)? {
        SERVING => Ok(()),
        _ => Err(FailureKind::Body),
    }
}

fn status_of(fields: &HeaderMap) -> Option<&[u8]> {
    fields.get(STATUS).map(HeaderValue::as_bytes)
}

/// What the answer says; 0 when it says nothing (a default value is not sent). `None`: no such message.
fn serving(message: &[u8]) -> Option<u64> {
    let (prefix, text) = message.split_at_checked(5)?;
    let [compressed, length @ ..] = prefix else { return None };
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    let mut text = text.get(..length).filter(|_| *compressed == 0)?;
    let mut said = 0;
    while !text.is_empty() {
        let key = number(&mut text)?;
        match key & 7 {
            0 => {
                let value = number(&mut text)?;
                if key >> 3 == 1 {
                    said = value;
                }
            }
            1 => text = text.get(8..)?,
            2 => {
                let length = usize::try_from(number(&mut text)?).ok()?;
                text = text.get(length..)?;
            }
            5 => text = text.get(4..)?,
            _ => return None,
        }
    }
    Some(said)
}

/// The next number: seven bits a byte, the lowest first.
fn number(text: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = text.split_first()?;
        *text = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

const CHECK: &str = "/grpc.health.v1.Health/Check";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// `grpc-timeout` has eight digits at most.
const LONGEST: u128 = 99_999_999;
/// Field 1, a text.
const SERVICE_FIELD: u8 = 0x0a;
const SERVING: u64 = 1;
/// An answer has a few bytes.
const MESSAGE: usize = 4096;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_question_names_the_service() {
        assert_eq!(question("").as_ref(), [0, 0, 0, 0, 0]);
        assert_eq!(question("a.B").as_ref(), b"\x00\x00\x00\x00\x05\x0a\x03a.B");
        let long = "x".repeat(300);
        assert_eq!(question(&long).get(..8).unwrap(), [0, 0, 0, 1, 0x2f, 0x0a, 0xac, 0x02]);
    }

    #[test]
    fn the_answer_is_read_with_fields_that_are_not_known() {
        let message = |text: &[u8]| [&[0, 0, 0, 0, u8::try_from(text.len()).unwrap()], text].concat();
        assert_eq!(serving(&message(&[0x08, 1])), Some(1));
        assert_eq!(serving(&message(&[0x08, 2])), Some(2));
        assert_eq!(serving(&message(&[])), Some(0));
        assert_eq!(serving(&message(&[0x12, 2, 9, 9, 0x08, 1, 0x1d, 1, 2, 3, 4])), Some(1));
    }

    #[test]
    fn what_is_no_such_message_is_not_read_as_one() {
        for bad in [
            &[][..],
            &[0, 0, 0, 0],
            &[1, 0, 0, 0, 2, 0x08, 1],
            &[0, 0, 0, 0, 9, 0x08, 1],
            &[0, 0, 0, 0, 2, 0x08, 0x80],
            &[0, 0, 0, 0, 2, 0x12, 9],
            &[0, 0, 0, 0, 2, 0x0b, 9],
        ] {
            assert_eq!(serving(bad), None, "{bad:?}");
        }
        let endless = [&[0, 0, 0, 0, 12, 0x08][..], &[0xff; 11]].concat();
        assert_eq!(serving(&endless), None);
    }
}

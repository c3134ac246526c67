//! Heads that a route changes: the target, the fields of transforms, a request's id.
//!
//! Where a route asks for nothing of this, none of it runs. Where it does, the fields that would have gone on are put
//! into a list, the transforms are applied to it in their order, and what is left is written. Framing, hop-by-hop fields
//! and `Host` are never in the list: they are written by the rules of [`crate::forward`], which no transform can bend.

use std::borrow::Cow;
use std::net::SocketAddr;

use model::transform::{Copying, Mode, Plan, RequestTransform, ResponseTransform};

use crate::fields::Known;
use crate::forward::{RequestRewrite, Trust, write_field};
use crate::forwarded;
use crate::request::Request;
use crate::syntax::is_value;

/// How a request's head is changed for its destination.
#[derive(Clone, Copy, Debug)]
pub struct RequestChanges<'a> {
    /// In place of the request's own method, path and query.
    pub target: Option<NewTarget<'a>>,
    /// The route's transforms.
    pub plan: Option<&'a Plan>,
    /// The values of the route's parameters.
    pub values: &'a [(String, String)],
    /// Name and value of the field that holds the request's id; what came under that name ends here.
    pub id: Option<(&'a str, &'a str)>,
    /// What `Forwarded` may tell.
    pub ends: Ends,
}

/// Another target.
#[derive(Clone, Copy, Debug)]
pub struct NewTarget<'a> {
    /// The method.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// What comes after `?`.
    pub query: Option<&'a str>,
}

/// The ends of the client's connection, and random bits for identifiers in place of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// The peer's port.
    pub peer_port: Option<u16>,
    /// Our own address.
    pub local: Option<SocketAddr>,
    /// For this request alone.
    pub random: u64,
}

/// How a response's head is changed for the client.
#[derive(Clone, Copy, Debug)]
pub struct ResponseChanges<'a> {
    /// The route's transforms.
    pub plan: Option<&'a Plan>,
    /// Name and value of the field that holds the request's id.
    pub id: Option<(&'a str, &'a str)>,
}

type Fields<'a> = Vec<(Cow<'a, [u8]>, Cow<'a, [u8]>)>;

/// The value of Host that a transform sets, if one does; the last one counts.
pub(crate) fn host<'a>(changes: &RequestChanges<'a>) -> Option<Cow<'a, str>> {
    let of = |transform: &'a RequestTransform| match transform {
        RequestTransform::Value { name, value, .. } if name == HOST => Some(Cow::Borrowed(value.as_str())),
        RequestTransform::RouteValue { name, parameter, .. } if name == HOST => {
            // A Host of other characters would be no Host.
            let value = route_value(changes.values, parameter)?;
            let is_host = !value.is_empty() && value.bytes().all(crate::syntax::is_host);
            is_host.then_some(Cow::Borrowed(value))
        }
        RequestTransform::Value { .. }
        | RequestTransform::RouteValue { .. }
        | RequestTransform::Copy(_)
        | RequestTransform::Allowed(_)
        | RequestTransform::Remove(_) => None,
    };
    changes.plan?.request.iter().rev().find_map(of)
}

/// Appends the fields that `passing` yields, changed, and what names the client.
pub(crate) fn request_fields<'a>(
    out: &mut Vec<u8>,
    request: &Request<'a>,
    rewrite: &RequestRewrite<'a>,
    changes: &RequestChanges<'a>,
    passing: impl Iterator<Item = (Known, &'a [u8], &'a [u8])>,
) {
    let is_id = |name: &[u8]| changes.id.is_some_and(|(id, _)| name.eq_ignore_ascii_case(id.as_bytes()));
    let came = passing.filter(|(_, name, _)| !is_id(name));
    let Some(plan) = changes.plan.filter(|plan| plan.changes_request()) else {
        came.for_each(|(_, name, value)| write_field(out, name, value));
        write_id(out, changes.id);
        return crate::forward::write_forwarded(out, request, rewrite);
    };
    let has_own_rules = plan.x_forwarded.is_some() || plan.forwarded.is_some();
    let is_own = |name: &[u8]| plan.x_forwarded.as_ref().is_some_and(|rules| forwarded::is_named(rules, name));
    let mut fields: Fields<'a> = Vec::new();
    for (known, name, value) in came {
        match known {
            // Between the client and the destination; whoever waits for the body has been told of it.
            Known::Expect => write_field(out, name, value),
            // What names the client follows its own rules, whatever transforms say of the client's fields.
            Known::ForwardedProto | Known::ForwardedHost if !has_own_rules => write_field(out, name, value),
            Known::ForwardedProto | Known::ForwardedHost => {}
            Known::ForwardedPrefix if has_own_rules => {}
            Known::Other
            | Known::Host
            | Known::Connection
            | Known::ContentLength
            | Known::TransferEncoding
            | Known::Te
            | Known::Upgrade
            | Known::KeepAlive
            | Known::Hop
            | Known::Forwarded
            | Known::ForwardedFor
            | Known::ForwardedPrefix
            | Known::AltSvc
            | Known::RetryAfter
            | Known::Attempt
            | Known::GrpcTimeout
            | Known::Date => {
                if !is_own(name) {
                    fields.push((name.into(), value.into()));
                }
            }
        }
    }
    for transform in &plan.request {
        change(&mut fields, transform, changes.values);
    }
    fields.iter().for_each(|(name, value)| write_field(out, name, value));
    write_id(out, changes.id);
    forwarded::write(out, request, rewrite, plan, &changes.ends);
}

fn change<'a>(fields: &mut Fields<'a>, transform: &'a RequestTransform, values: &'a [(String, String)]) {
    match transform {
        RequestTransform::Copy(Copying::All) => {}
        RequestTransform::Copy(Copying::Nothing) => fields.clear(),
        RequestTransform::Allowed(names) => keep(fields, names),
        RequestTransform::Remove(name) => remove(fields, name),
        RequestTransform::Value { name, .. } | RequestTransform::RouteValue { name, .. } if name == HOST => {}
        RequestTransform::Value { name, value, mode } => put(fields, name, value.as_bytes().into(), *mode),
        RequestTransform::RouteValue { name, parameter, mode } => {
            if let Some(value) = route_value(values, parameter) {
                put(fields, name, value.as_bytes().into(), *mode);
            }
        }
    }
}

/// Appends the fields of a response, changed.
pub(crate) fn response_fields<'a>(
    out: &mut Vec<u8>,
    status: u16,
    changes: &ResponseChanges<'a>,
    passing: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Dated {
    let is_id = |name: &[u8]| changes.id.is_some_and(|(id, _)| name.eq_ignore_ascii_case(id.as_bytes()));
    let came = passing.filter(|(name, _)| !is_id(name));
    let mut fields: Fields<'a> = came.map(|(name, value)| (name.into(), value.into())).collect();
    for transform in changes.plan.map(|plan| plan.response.as_slice()).unwrap_or_default() {
        match transform {
            ResponseTransform::Copy(Copying::All) => {}
            ResponseTransform::Copy(Copying::Nothing) => fields.clear(),
            ResponseTransform::Allowed(names) => keep(&mut fields, names),
            ResponseTransform::Value { name, value, mode, when } if when.holds(status) => {
                put(&mut fields, name, value.as_bytes().into(), *mode);
            }
            ResponseTransform::Remove { name, when } if when.holds(status) => remove(&mut fields, name),
            ResponseTransform::Value { .. } | ResponseTransform::Remove { .. } => {}
        }
    }
    fields.iter().for_each(|(name, value)| write_field(out, name, value));
    write_id(out, changes.id);
    let is_dated = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"date"));
    if is_dated { Dated::Yes } else { Dated::No }
}

/// Whether a `Date` went with the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dated {
    Yes,
    No,
}

fn write_id(out: &mut Vec<u8>, id: Option<(&str, &str)>) {
    if let Some((name, value)) = id {
        write_field(out, name.as_bytes(), value.as_bytes());
    }
}

/// A parameter's value, where it may stand in a field.
fn route_value<'a>(values: &'a [(String, String)], parameter: &str) -> Option<&'a str> {
    let found = values.iter().find(|(known, _)| known.eq_ignore_ascii_case(parameter));
    found.map(|(_, value)| value.as_str()).filter(|value| value.bytes().all(is_value))
}

fn keep(fields: &mut Fields<'_>, names: &[String]) {
    fields.retain(|(found, _)| names.iter().any(|name| found.eq_ignore_ascii_case(name.as_bytes())));
}

fn remove(fields: &mut Fields<'_>, name: &str) {
    fields.retain(|(found, _)| !found.eq_ignore_ascii_case(name.as_bytes()));
}

fn put<'a>(fields: &mut Fields<'a>, name: &'a str, value: Cow<'a, [u8]>, mode: Mode) {
    match mode {
        Mode::Set => remove(fields, name),
        Mode::Append => {}
    }
    fields.push((name.as_bytes().into(), value));
}

/// Whether what the peer said of the client counts.
pub(crate) fn is_trusted(rewrite: &RequestRewrite<'_>) -> bool {
    match rewrite.trust {
        Trust::Trusted => true,
        Trust::Untrusted => false,
    }
}

const HOST: &str = "host";
